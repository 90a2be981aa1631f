"""When models drain, load and are warm around slots. Pure.

`bands`: what the planner will do, as far as the bookings and estimates of now tell. `recorded`:
what model servers did.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from bookings.closures import pieces
from bookings.planner_rules import preload_from, worthwhile_until
from bookings.situation import Claim, Closure, Margins, Target

NOBODY = 0  # whose maintenance is


class BandKind(StrEnum):
    """What goes on in a band."""

    DRAIN = "drain"  # running requests may finish; then the server stops
    LOAD = "load"
    WARM = "warm"  # loaded, ahead of its slot


@dataclass(frozen=True, slots=True)
class Band:
    """[start, end) of one lane; the preset's slug, empty for none; whose slot it is for."""

    kind: BandKind
    start: datetime
    end: datetime
    preset: str
    booking_id: int | None = None


@dataclass(frozen=True, slots=True)
class Course:
    """One lane from `begins` on: what is loaded then (a slug), and what is wanted."""

    begins: datetime
    loaded: str
    claims: tuple[Claim, ...]  # confirmed, not over then, by time
    idle: Target | None  # what runs between slots
    margins: Margins
    drain: float  # seconds, at most
    closures: tuple[Closure, ...] = ()  # maintenance not over then, by start; each with its end


@dataclass(frozen=True, slots=True)
class Run:
    """A model server that ran: when it was started, was ready, began to drain, was gone."""

    preset: str
    started_at: datetime
    loaded_at: datetime  # when it was ready or failed; of one that still loads, when expected
    drained_from: datetime | None
    ended_at: datetime  # of one that still runs: now


def recorded(runs: Iterable[Run], claims: Sequence[Claim], margins: Margins) -> list[Band]:
    """The bands of servers that ran: each load and drain, and being warm ahead of its slots.
    `claims` are by start."""
    found = []
    starts = [claim.start for claim in claims]
    for run in runs:
        if run.started_at < run.loaded_at:
            found.append(Band(BandKind.LOAD, run.started_at, run.loaded_at, run.preset))
        if run.drained_from is not None and run.drained_from < run.ended_at:
            found.append(Band(BandKind.DRAIN, run.drained_from, run.ended_at, run.preset))
        its = range(bisect_right(starts, run.loaded_at), bisect_right(starts, run.ended_at))
        found += _ahead(run, claims, its, margins)
    return found


def _ahead(
    run: Run, claims: Sequence[Claim], its: Iterable[int], margins: Margins
) -> Iterator[Band]:
    """From when it was loaded for a slot that found it there; `its`: which claims began on it."""
    for number in its:
        claim = claims[number]
        if claim.target is None or claim.target.preset != run.preset:
            continue
        before = claims[number - 1].end if number else run.loaded_at
        begins = max(run.loaded_at, before, preload_from(claim, margins))
        if begins < claim.start:
            yield Band(BandKind.WARM, begins, claim.start, run.preset, claim.booking_id)


def warm_at(begins: datetime, load_seconds: float, drain_seconds: float = 0.0) -> datetime:
    """When a model is loaded whose turn begins then."""
    return begins + timedelta(seconds=drain_seconds + load_seconds)


def bands(course: Course) -> list[Band]:
    """The bands before each slot, and after the last one, by time; none in maintenance, before
    which a lane is emptied."""
    if not course.closures:
        return _bands(course, course.claims)
    empty = (
        Claim(NOBODY, NOBODY, closure.start, closure.end, closure.start, None)
        for closure in course.closures
        if closure.end is not None
    )
    claims = [*pieces(course.claims, course.closures), *empty]
    found = _bands(course, sorted(claims, key=lambda claim: claim.start))
    for closure in course.closures:
        found = [part for band in found for part in _outside(band, closure)]
    return found


def _outside(band: Band, closure: Closure) -> Iterator[Band]:
    if band.start < closure.start:
        yield replace(band, end=min(band.end, closure.start))
    if closure.end is not None and band.end > closure.end:
        yield replace(band, start=max(band.start, closure.end))


def _bands(course: Course, claims: Iterable[Claim]) -> list[Band]:
    at, loaded = course.begins, course.loaded
    found: list[Band] = []
    for claim in claims:
        begins, meanwhile = _turn(course, claim, at, loaded)
        if meanwhile != loaded:
            found += _idle(course, at, loaded, until=begins)
        found += _switch(course, claim, begins, meanwhile)
        loaded = claim.target.preset if claim.target else ""
        at = max(at, claim.end)
    return [*found, *_idle(course, at, loaded, until=None)]


def _turn(course: Course, claim: Claim, at: datetime, loaded: str) -> tuple[datetime, str]:
    """When the lane turns to a booking's target, and what is loaded until then."""
    begins = max(at, preload_from(claim, course.margins))
    if begins == at:  # rules 1 and 2
        return at, loaded
    idle = course.idle
    if idle is None:
        return begins, ""
    if idle.preset == loaded or at <= worthwhile_until(idle, claim, course.margins):
        return begins, idle.preset
    return (begins, loaded) if claim.target is None else (at, loaded)  # rule 3


def _switch(course: Course, claim: Claim, begins: datetime, loaded: str) -> Iterator[Band]:
    """From what is loaded to a booking's target."""
    if claim.target is None:
        yield from _draining(course, begins, loaded, "", claim)
        return
    preset, start = claim.target.preset, claim.active_from
    warm = begins
    if loaded != preset:
        yield from _draining(course, begins, loaded, preset, claim)
        free = warm_at(begins, 0.0, course.drain if loaded else 0.0)
        warm = min(warm_at(free, claim.target.load_seconds), claim.end)
        if free < warm:
            yield Band(BandKind.LOAD, free, warm, preset, claim.booking_id)
    if warm < start:
        yield Band(BandKind.WARM, warm, start, preset, claim.booking_id)


def _idle(course: Course, at: datetime, loaded: str, until: datetime | None) -> Iterator[Band]:
    """From what is loaded to what runs between slots."""
    idle = course.idle
    wanted = idle.preset if idle else ""
    if wanted == loaded:
        return
    yield from _draining(course, at, loaded, wanted, None)
    if idle is not None:
        free = warm_at(at, 0.0, course.drain if loaded else 0.0)
        warm = warm_at(free, idle.load_seconds)
        yield Band(BandKind.LOAD, free, min(warm, until or warm), wanted)


def _draining(
    course: Course, at: datetime, loaded: str, preset: str, claim: Claim | None
) -> Iterator[Band]:
    if loaded and course.drain > 0:
        end = warm_at(at, 0.0, course.drain)
        yield Band(BandKind.DRAIN, at, end, preset, claim.booking_id if claim else None)
