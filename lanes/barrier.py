"""Whether requests may still run at a server: what edges report, and what sockets show.

An edge leaves only by saying goodbye. Those this host has seen are kept in a file, so that an
emptied Valkey cannot make one disappear.
"""

import json
import logging
import os
import threading
from dataclasses import dataclass
from pathlib import Path

import redis

from lanes import records, sockets, ticks
from lanes.steps import Barrier
from wire.edges import EDGES, SILENT_AFTER_SECONDS, EdgeReport, decode_report

log = logging.getLogger(__name__)
_file_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Reports:
    """What Valkey says now. `now_ms` is its clock."""

    now_ms: int
    by_edge: dict[str, EdgeReport]


def read_reports() -> Reports | None:
    """The edges' reports, or None when Valkey cannot be read."""
    try:
        pipe = ticks.valkey().pipeline(transaction=True)
        pipe.time()
        pipe.hgetall(EDGES)
        (seconds, micros), raw = pipe.execute()
    except redis.RedisError as error:
        log.warning("edge reports not read reason=%s", error)
        return None
    decoded = (decode_report(name.decode(), payload) for name, payload in raw.items())
    reports = {report.edge_id: report for report in decoded if report is not None}
    return Reports(int(seconds) * 1000 + int(micros) // 1000, reports)


def remember_edges(reports: Reports | None) -> frozenset[str]:
    """Edges that have been heard of and have not said goodbye, kept over restarts."""
    with _file_lock:
        known = _known_edges()
        if reports is None:
            return known
        present = {name for name, report in reports.by_edge.items() if not report.goodbye}
        gone = {name for name, report in reports.by_edge.items() if report.goodbye}
        newer = frozenset((known | present) - gone)
        if newer != known:
            _keep(newer)
        return newer


def judge(
    known: frozenset[str], reports: Reports | None, lane_slug: str, generation: int
) -> Barrier:
    """ZERO when every known edge has echoed this generation with nothing in flight.

    An edge that is silent, unreadable or forgotten is UNKNOWN, as is having no edge at all.
    """
    if reports is None or not known:
        return Barrier.UNKNOWN
    words = {_judge_one(reports, name, lane_slug, generation) for name in known}
    for worst in (Barrier.BUSY, Barrier.UNKNOWN):
        if worst in words:
            return worst
    return Barrier.ZERO


def see(lane_slug: str, generation: int, pid: int, port: int) -> Barrier:
    """The barrier of one server: unknown edges are excused when nobody is connected to it."""
    reports = read_reports()
    barrier = judge(remember_edges(reports), reports, lane_slug, generation)
    if barrier is Barrier.UNKNOWN and not sockets.has_connections(pid, port):
        return Barrier.ZERO
    return barrier


def _judge_one(reports: Reports, name: str, lane_slug: str, generation: int) -> Barrier:
    report = reports.by_edge.get(name)
    if report is None or abs(reports.now_ms - report.at_ms) > SILENT_AFTER_SECONDS * 1000:
        return Barrier.UNKNOWN
    count = report.lanes.get(lane_slug)
    if count is None:
        return Barrier.UNKNOWN  # its table does not have the lane yet
    if count.generation < generation or count.in_flight:
        return Barrier.BUSY
    return Barrier.ZERO


def _path() -> Path:
    return records.folder() / "known-edges"


def _known_edges() -> frozenset[str]:
    try:
        return frozenset(json.loads(_path().read_text()))
    except (OSError, ValueError, TypeError):
        return frozenset()


def _keep(names: frozenset[str]) -> None:
    """On a full disk the next look tries again: no look may fail for want of it."""
    draft = _path().with_suffix(f".{os.getpid()}")
    try:
        draft.write_text(json.dumps(sorted(names)))
        draft.replace(_path())
    except OSError as error:
        log.warning("known edges not kept reason=%s", error)
