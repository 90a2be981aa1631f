"""What edges report to hosts, in Valkey: the other half of the drain barrier.

Hash EDGES: field = edge id, value = one report. An edge writes its field when a count or a
generation changes and every HEARTBEAT_SECONDS. It leaves by a report with `goodbye`; silence
is not leaving. An edge's id is stable over its restarts; each start has an incarnation of its own.

Edges know each other by LIVING: a sorted set of incarnations, scored with Valkey's milliseconds
at their last word.
"""

import json
from dataclasses import dataclass

EDGES = "ss:edges"
LIVING = "ss:edges:living"
EDGE_NEWS = "ss:edges:news"  # pub/sub: "join <incarnation>" and "leave <incarnation>"
FREED_PREFIX = "ss:edges:freed:"  # pub/sub, per incarnation: the slug of a lane to ask for again
SLOTS_PREFIX = "ss:slots:"  # hash per lane: what each incarnation holds, and who was refused
RATE_PREFIX = "ss:rate:"  # hash per bucket of a rate limit
HEARTBEAT_SECONDS = 1.0
SILENT_AFTER_SECONDS = 5.0
TABLE_CHANNEL = "ss:table"  # pub/sub: a new head has been stored
TABLE_HEAD = "ss:table:head"
TABLE_PARTS = "ss:table:parts"  # hash: part name -> JSON bytes
USAGE_STREAM = "ss:usage"


@dataclass(frozen=True, slots=True)
class LaneCount:
    """The newest order generation an edge has seen of a lane, its requests in flight there, and
    those that wait for it (these as they were when something else changed, or at the heartbeat)."""

    generation: int
    in_flight: int
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class EdgeReport:
    """One edge's word. `at_ms` is Valkey's clock, milliseconds since 1970."""

    edge_id: str
    at_ms: int
    lanes: dict[str, LaneCount]  # by lane slug
    goodbye: bool = False
    incarnation: str = ""  # random, of the process that wrote it; empty: of an older release
    number: int = 0  # reports of one incarnation in their order


def encode_report(report: EdgeReport) -> bytes:
    """The report as compact JSON, without its edge id (that is the hash field)."""
    lanes = {
        slug: [count.generation, count.in_flight, *([count.waiting] if count.waiting else ())]
        for slug, count in report.lanes.items()
    }
    raw = {"at": report.at_ms, "lanes": lanes, "goodbye": report.goodbye}
    return json.dumps(raw | {"incarnation": report.incarnation, "number": report.number}).encode()


def decode_report(edge_id: str, payload: bytes) -> EdgeReport | None:
    """The report, or None when the payload is not one: a reader then knows nothing of this edge."""
    try:
        raw = json.loads(payload)
        lanes = {str(s): LaneCount(*map(int, c[:3])) for s, c in raw["lanes"].items()}
        return EdgeReport(
            edge_id,
            int(raw["at"]),
            lanes,
            goodbye=bool(raw["goodbye"]),
            incarnation=str(raw.get("incarnation", "")),
            number=int(raw.get("number", 0)),
        )
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return None
