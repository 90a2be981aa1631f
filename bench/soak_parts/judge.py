"""What must be true after a soak, from three sides: members, model servers, the database."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.soak_parts.edges import KNOWN_SECONDS
from bench.soak_parts.members import Asked

TOLERANCE = 0.15  # seconds between a decision at the edge and the model server's own clock reading


@dataclass(frozen=True, slots=True)
class Slot:
    """A booking as it was."""

    lane: str
    user: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Server:
    """A model server's life."""

    lane: str
    port: int
    start: float
    end: float
    drain_until: float | None


@dataclass(frozen=True, slots=True)
class Served:
    """A request as its model server saw it."""

    id: str
    user: str
    alias: str
    port: int
    at: float
    end: float
    how: str  # whole, or cut
    lane: str = ""  # its primary key


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is known of the run."""

    asked: list[Asked]
    served: list[Served]
    slots: list[Slot]
    servers: list[Server]
    kills: list[tuple[int, float]]  # port of an edge that was killed, and when
    stops: list[tuple[int, float]]  # and of one that was stopped
    drain_seconds: float

    def server_of(self, one: Served) -> Server | None:
        """Which life of which server it was."""
        fits = (s for s in self.servers if s.port == one.port and s.start <= one.at <= s.end + 1)
        return next(fits, None)


def read_served(log: Path) -> list[Served]:
    """The model servers' notes."""
    return [Served(**json.loads(line)) for line in log.read_text().splitlines()]


def faults(evidence: Evidence) -> list[str]:
    """Every broken promise, a sentence each."""
    return [*_strangers(evidence), *_cuts(evidence), *_lost(evidence), *_errors(evidence)]


def _strangers(evidence: Evidence) -> Iterable[str]:
    """Requests that a model server got while its lane was another's."""
    for one in evidence.served:
        server = evidence.server_of(one)
        if server is None:
            yield f"request {one.id} ran on port {one.port}, where no server of ours was"
            continue
        for slot in evidence.slots:
            is_then = slot.start + TOLERANCE <= one.at <= slot.end - TOLERANCE
            if slot.lane == server.lane and slot.user != one.user and is_then:
                late = one.at - slot.start
                yield f"{one.user} was served on {server.lane} {late:.2f} s into {slot.user}'s slot"


def _cuts(evidence: Evidence) -> Iterable[str]:
    """Requests that were cut although neither a deadline had come nor the client had left."""
    by_id = {one.id: one for one in evidence.asked}
    for one in evidence.served:
        asked = by_id.get(one.id)
        if one.how == "whole" or asked is None or asked.way == "leaves":
            continue
        if _was_killed(evidence, asked):
            continue
        server = evidence.server_of(one)
        deadlines = list(_deadlines(evidence, one, server)) if server else []
        if not any(one.end >= deadline - TOLERANCE for deadline in deadlines):
            yield f"{one.user}'s request {one.id} ({asked.way}) was cut at {one.end:.2f}: " + (
                f"it was told {asked.status} {asked.code} {asked.trouble}; deadlines {deadlines}"
            )


def _deadlines(evidence: Evidence, one: Served, server: Server) -> Iterable[float]:
    """When this request might be ended."""
    if server.drain_until is not None:
        yield server.drain_until
    for slot in evidence.slots:
        if slot.lane == server.lane and slot.user != one.user and slot.end > one.at:
            yield slot.start + evidence.drain_seconds


def _lost(evidence: Evidence) -> Iterable[str]:
    """Requests without a whole answer, a refusal or a reason."""
    for one in evidence.asked:
        if one.way == "leaves" or _was_killed(evidence, one) or _never_arrived(one):
            continue
        if one.trouble or (one.status == 200 and not one.is_whole and not one.code):
            words = one.trouble or "half an answer without a word"
            words += _before(evidence, one)
            yield f"{one.user}'s request {one.id} ({one.way}) at {one.at:.2f} was lost: {words}"


def _errors(evidence: Evidence) -> Iterable[str]:
    for one in evidence.asked:
        if one.status in (500, 502):
            yield f"{one.user}'s request {one.id} ({one.way}) was answered {one.status} {one.code}"


def _was_killed(evidence: Evidence, one: Asked) -> bool:
    """While it ran, or before anybody knew: its connection was from before the kill."""
    since = one.at - KNOWN_SECONDS - TOLERANCE
    return any(port == one.edge and since <= at <= one.end for port, at in evidence.kills)


def _before(evidence: Evidence, one: Asked) -> str:
    """What had happened to its edge last."""
    words = {"killed": evidence.kills, "stopped": evidence.stops}
    found = [(at, word) for word, all_ in words.items() for port, at in all_ if port == one.edge]
    earlier = [(at, word) for at, word in found if at <= one.end]
    if not earlier:
        return ""
    at, word = max(earlier)
    return f"; its edge was {word} {one.at - at:.3f} s before"


def _never_arrived(one: Asked) -> bool:
    """Nobody listened: the edge was away, which a balancer would have known."""
    return one.trouble.startswith("ClientConnectorError")


def outcomes(asked: Iterable[Asked]) -> list[tuple[str, int]]:
    """How requests ended, most frequent first."""
    return Counter(_outcome(one) for one in asked).most_common()


def _outcome(one: Asked) -> str:
    if one.trouble:
        return "edge away" if _never_arrived(one) else f"trouble: {one.trouble[:60]}"
    if one.way == "leaves" and one.status == 200:
        return "left on purpose"
    return f"{one.status} {one.code or ('whole' if one.is_whole else '')}".strip()
