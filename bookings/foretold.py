"""How a slot that is wished would begin: the facts for `foretell`, read."""

from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User

from bookings.facts import read_facts, situation_of
from bookings.foretelling import Foretold, Running, Wished, foretell
from bookings.foretelling import Lane as LaneNow
from bookings.models import Booking, Kind, State
from bookings.situation import Claim, Situation, Target
from lanes.estimates import eta, load_estimates
from lanes.models import Lane, Phase, Preset, Runtime

NOBODY = 0  # the key of a booking that is none yet
USUAL = timedelta(hours=1)  # how long a slot is whose end is not known yet
Times = tuple[Preset | None, datetime | None, datetime | None]


def foretold_of(lane: Lane, owner: User, asked: Times, now: datetime) -> tuple[float, Foretold]:
    """How a slot of this preset (None: the whole GPU) would begin; no start is now. Also the
    seconds that its model is expected to load."""
    preset, start, end = asked
    begins = max(start or now, now)
    ends = end if end and end > begins else begins + USUAL
    before, after = _neighbours(lane, begins, ends, now)
    presets = {each.preset_id for each in (before, after) if each and each.preset_id}
    presets |= {preset.pk} if preset else set()
    seconds = load_estimates((lane.pk, each) for each in presets)
    target = None
    if preset and preset.current_id:
        load = seconds.get((lane.pk, preset.pk), 0.0)
        target = Target(preset.current_id, preset.slug, load)
    claim = Claim(NOBODY, owner.pk, begins, ends, now, target)
    wished = Wished(
        claim,
        _claim(before, seconds) if before else None,
        _claim(after, seconds) if after else None,
    )
    return target.load_seconds if target else 0.0, foretell(wished, _lane_now(lane, now))


def _neighbours(
    lane: Lane, start: datetime, end: datetime, now: datetime
) -> tuple[Booking | None, Booking | None]:
    """The last confirmed slot that is not over before it, and the first after; pending ones load
    nothing."""
    slots = Booking.objects.filter(lane=lane, state=State.CONFIRMED, end__gt=now)
    slots = slots.select_related("preset")
    before = slots.filter(end__lte=start).order_by("-end").first()
    return before, slots.filter(start__gte=end).order_by("start").first()


def _claim(booking: Booking, seconds: dict[tuple[int, int], float]) -> Claim:
    target = None
    if booking.kind == Kind.MODEL and booking.preset:
        revision = booking.pinned_revision_id or booking.preset.current_id or 0
        load = seconds.get((booking.lane_id, booking.preset.pk), 0.0)
        target = Target(revision, booking.preset.slug, load)
    confirmed = booking.confirmed_at or booking.start
    return Claim(booking.pk, booking.owner_id, booking.start, booking.end, confirmed, target)


def _lane_now(lane: Lane, now: datetime) -> LaneNow:
    facts = read_facts({lane.pk}, now)[lane.pk]
    situation = situation_of(facts)
    return LaneNow(
        situation=situation,
        running=_running(facts.runtime, situation, now),
        now=now,
        drain=settings.SLOTSERVE_DRAIN_SECONDS,
        restarts=facts.lane.restart_on_owner_change,
    )


def _running(runtime: Runtime | None, situation: Situation, now: datetime) -> Running:
    """What runs, if it is what is ordered; what is on its way out is nothing."""
    ordered = situation.order.target if situation.order else None
    if ordered is None:
        return Running(None, now)
    is_it = runtime is not None and runtime.revision_id == ordered.revision_id
    phase = runtime.phase if runtime and is_it and runtime.ended_at is None else Phase.STOPPED
    if runtime and phase == Phase.STARTING:
        return Running(ordered, eta(runtime.started_at, ordered.load_seconds, now))
    is_ready = phase == Phase.READY
    return Running(ordered, now + timedelta(seconds=0 if is_ready else ordered.load_seconds))
