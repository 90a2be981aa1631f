"""When models of some lanes drain, load and are warm: what was recorded, then what is expected."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings

from bookings.facts import margins
from bookings.models import Kind, State
from bookings.situation import Claim, Closure, Target
from bookings.warmth import Band, Course, Run, bands, recorded
from lanes import estimates
from lanes.models import Lane, ManualChoice, Phase
from slotserve.calendar import reading
from slotserve.calendar.entries import Booked
from slotserve.calendar.reading import Closed, Ran

LOADED = (Phase.STARTING, Phase.READY)


@dataclass(frozen=True, slots=True)
class Known:
    """What bears on the bands of some lanes from `start` on."""

    now: datetime
    start: datetime
    rows: Mapping[int, list[Booked]]  # confirmed, by lane, by start
    runs: Mapping[int, list[Ran]]
    choices: Mapping[int, ManualChoice]
    seconds: Mapping[tuple[int, int], float]  # expected of a load, by lane and preset
    closures: Mapping[int, list[Closure]]
    targets: dict[tuple[int, int], Target] = field(default_factory=dict)  # made so far


def lane_bands(
    lanes: Sequence[Lane],
    rows: Collection[Booked],
    closed: Iterable[Closed],
    within: tuple[datetime, datetime],
    now: datetime,
) -> dict[int, list[Band]]:
    """The bands in [start, end), by lane; four queries. `rows` are by start, and like `closed`
    reach back by `reading.reach()`."""
    start, end = within
    known = _known(lanes, rows, closed, within, now)
    found = {lane.pk: [*_past(lane, known), *_future(lane, known)] for lane in lanes}
    return {
        pk: [band for band in drawn if band.start < end and band.end > start]
        for pk, drawn in found.items()
    }


def _known(
    lanes: Sequence[Lane],
    rows: Collection[Booked],
    closed: Iterable[Closed],
    within: tuple[datetime, datetime],
    now: datetime,
) -> Known:
    start, end = within
    by_lane = defaultdict(list)
    for row in rows:
        if row.state == State.CONFIRMED:
            by_lane[row.lane_id].append(row)
    runs = defaultdict(list)
    for run in reading.runtimes(lanes, start, min(end, now)):
        runs[run.lane_id].append(run)
    chosen = reading.choices(lanes, now)
    pairs = {(row.lane_id, row.preset_id) for row in rows if row.preset_id}
    pairs |= {(lane.pk, lane.default_preset_id) for lane in lanes if lane.default_preset_id}
    pairs |= {(pk, choice.preset_id) for pk, choice in chosen.items() if choice.preset_id}
    pairs |= {(run.lane_id, run.preset_id) for found in runs.values() for run in found}
    closures = defaultdict(list)
    for maintenance, begins, ends in closed:
        closures[maintenance.lane_id].append(Closure(begins, ends))
    return Known(now, start, by_lane, runs, chosen, estimates.load_estimates(pairs), closures)


def _past(lane: Lane, known: Known) -> list[Band]:
    claims = [_claim(row, known) for row in known.rows.get(lane.pk, ()) if row.start <= known.now]
    return recorded((_run(run, known) for run in known.runs.get(lane.pk, ())), claims, margins())


def _run(run: Ran, known: Known) -> Run:
    ended = run.ended_at or known.now
    loaded = run.ready_at or run.ended_at or run.started_at
    if run.phase == Phase.STARTING and run.ended_at is None:
        expected = known.seconds.get((run.lane_id, run.preset_id), 0.0)
        loaded = estimates.eta(run.started_at, expected, known.now)
    drain = timedelta(seconds=settings.SLOTSERVE_DRAIN_SECONDS)
    drained = max(run.drain_until - drain, run.started_at) if run.drain_until else None
    return Run(run.preset, run.started_at, loaded, drained, ended)


def _future(lane: Lane, known: Known) -> list[Band]:
    """From now, or from shortly before the span: what runs between slots is loaded then."""
    begins = max(known.now, known.start - reading.reach())
    idle = _idle(lane, known, begins)
    loaded = _loaded(lane, known) if begins == known.now else idle.preset if idle else ""
    rows = [row for row in known.rows.get(lane.pk, ()) if row.end > begins]
    return bands(
        Course(
            begins=begins,
            loaded=loaded,
            claims=tuple(_claim(row, known) for row in rows),
            idle=idle,
            margins=margins(),
            drain=settings.SLOTSERVE_DRAIN_SECONDS,
            closures=tuple(
                each for each in known.closures.get(lane.pk, ()) if each.end and each.end > begins
            ),
        )
    )


def _idle(lane: Lane, known: Known, moment: datetime) -> Target | None:
    """An administrator's choice while it lasts, else the lane's default."""
    choice = known.choices.get(lane.pk)
    preset = choice.preset if choice and moment < choice.until else lane.default_preset
    if preset is None:
        return None
    return _target(lane.pk, preset.pk, preset.slug, known)


def _loaded(lane: Lane, known: Known) -> str:
    living = (run for run in known.runs.get(lane.pk, ()) if run.ended_at is None)
    return next((run.preset for run in living if run.phase in LOADED), "")


def _claim(row: Booked, known: Known) -> Claim:
    target = None
    if row.kind == Kind.MODEL and row.preset_id and row.preset:
        target = _target(row.lane_id, row.preset_id, row.preset, known)
    return Claim(row.pk, row.owner_id, row.start, row.end, row.late or row.start, target)


def _target(lane: int, preset: int, slug: str, known: Known) -> Target:
    """One for each lane and preset."""
    found = known.targets.get((lane, preset))
    if found is None:
        found = Target(preset, slug, known.seconds.get((lane, preset), 0.0))
        known.targets[lane, preset] = found
    return found
