"""What a member should know of a slot before booking it: how long the model loads and when that
can begin, and whether the time is free. Reads and explains; the service decides."""

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.utils.translation import gettext as _

from bookings.availability import closed_words, objection, obstacle
from bookings.models import Booking, Kind, State
from bookings.policies import Standing
from bookings.policy import Claim
from bookings.refusals import Offering
from bookings.situation import Closure
from bookings.warmth import warm_at
from lanes.estimates import load_estimates, mean_loads
from lanes.fitting import is_too_large, warning
from lanes.maintenance import within
from lanes.models import Lane, Phase, Preset, Runtime
from lanes.telling import moment


@dataclass(frozen=True, slots=True)
class Asked:
    """A wish as far as the form says it; no start: now; no preset: the whole GPU."""

    lane: Lane
    preset: Preset | None
    start: datetime | None
    end: datetime | None


@dataclass(frozen=True, slots=True)
class Scene:
    """What bears on the wait at the start of a slot."""

    model: str  # its name; empty: the whole GPU
    estimate: float  # seconds
    is_measured: bool  # else a guess from the file's size
    now: datetime
    start: datetime
    is_loaded: bool = False  # by now, or by the slot before
    is_running: bool = False  # some model server runs now
    before_ends: datetime | None = None  # the last slot that ends between now and the start


def expectations(scene: Scene) -> list[str]:
    """What will happen at the start of the slot, in sentences. Pure."""
    if not scene.model:
        return [_emptying(scene)]
    load = (
        _("%(model)s takes about %(time)s to load, as its last loads here did.")
        if scene.is_measured
        else _("%(model)s takes about %(time)s to load, guessed from the file's size.")
    )
    values = {"model": scene.model, "time": _seconds(scene.estimate)}
    return [load % values, _waiting(scene)]


def outlook(asked: Asked, now: datetime) -> list[str]:
    """The sentences about this wish."""
    said = expectations(_scene(asked, now))
    current = asked.preset.current if asked.preset else None
    if current and current.model_file.warning:
        said.insert(0, current.model_file.warning)
    if asked.preset and is_too_large(asked.lane, asked.preset):
        words = warning(_("this lane"), asked.preset.name)
        said.append(f"{words} {_('You can book it all the same.')}")
    return [*said, *_closures(asked, now)]


def _closures(asked: Asked, now: datetime) -> list[str]:
    """Of maintenance in its time, for administrators: nobody else may book that."""
    start = asked.start or now
    if asked.end is None or asked.end <= start:
        return []
    rows = within(start, asked.end, [asked.lane.pk])
    words = _("Nothing runs then, whoever has booked it.")
    found = (Closure(row.start, row.end, row.reason) for row in rows.filter(ended_at=None))
    return [f"{closed_words(asked.lane.name, each, now)} {words}" for each in found]


def in_the_way(asked: Asked, standing: Standing) -> Offering | None:
    """What is in the way of this wish, rules or others, if its times are known and make sense."""
    now = standing.now
    start = asked.start or now
    if asked.end is None or not now <= start < asked.end:
        return None
    preset = asked.preset.pk if asked.preset else None
    claim = Claim(asked.lane.pk, start, asked.end, preset, starts_now=asked.start is None)
    return objection(standing, claim) or obstacle(standing, claim)


def must_wait(asked: Asked, standing: Standing) -> bool:
    """Whether an administrator has to approve it, as far as its times are known."""
    start = asked.start or standing.now
    end = asked.end if asked.end and asked.end > start else start
    preset = asked.preset.pk if asked.preset else None
    claim = Claim(asked.lane.pk, start, end, preset)
    return not standing.owner.is_staff and standing.judge.needs_approval(claim)


def _waiting(scene: Scene) -> str:
    """How much of the slot the load takes."""
    if scene.is_loaded:
        return _("It is loaded by then: your slot starts without a load.")
    begins = max(scene.now, scene.before_ends or scene.now)
    wait = (warm_at(begins, scene.estimate) - scene.start).total_seconds()
    if wait <= 0:
        return _("It is loaded before your slot starts.")
    if scene.before_ends is not None:
        words = _(
            "Loading can only start when the slot before ends, at %(end)s: "
            "about %(wait)s of your slot."
        )
        return words % {"end": moment(scene.before_ends, scene.now), "wait": _seconds(wait)}
    drain = _drain() if scene.is_running else ""
    words = _("Loading starts at once and takes about %(wait)s of your slot.")
    return words % {"wait": _seconds(wait)} + drain


def _emptying(scene: Scene) -> str:
    lead = settings.SLOTSERVE_STOP_TIMEOUT_SECONDS + settings.SLOTSERVE_BUFFER_SECONDS
    begins = max(scene.now, scene.before_ends or scene.now)
    if (scene.start - begins).total_seconds() >= lead:
        return _("No model server runs on the lane when your slot starts.")
    if not scene.is_running and scene.before_ends is None:
        return _("No model server runs on the lane: the GPU is yours at once.")
    return _("The model server is stopped when your slot starts.") + _drain()


def _drain() -> str:
    words = _("Running requests may finish first, for up to %(seconds)g s.")
    return " " + words % {"seconds": settings.SLOTSERVE_DRAIN_SECONDS}


def _seconds(value: float) -> str:
    if value < 120:
        return f"{value:.0f} s"
    return _("%(minutes).0f minutes") % {"minutes": value / 60}


def _scene(asked: Asked, now: datetime) -> Scene:
    start = max(asked.start or now, now)
    before = _slot_before(asked.lane, start, now)
    preset = asked.preset
    pair = (asked.lane.pk, preset.pk if preset else 0)
    runs = Runtime.objects.filter(lane=asked.lane, ended_at=None).exists()
    return Scene(
        model=preset.name if preset else "",
        estimate=load_estimates([pair]).get(pair, 0.0),
        is_measured=bool(mean_loads([pair])),
        now=now,
        start=start,
        is_loaded=preset is not None and _is_loaded(asked.lane, preset, before),
        is_running=runs,
        before_ends=before.end if before else None,
    )


def _slot_before(lane: Lane, start: datetime, now: datetime) -> Booking | None:
    """The last confirmed slot between now and the start; pending ones load nothing."""
    slots = Booking.objects.filter(lane=lane, state=State.CONFIRMED, end__gt=now, end__lte=start)
    return slots.select_related("preset").order_by("-end").first()


def _is_loaded(lane: Lane, preset: Preset, before: Booking | None) -> bool:
    """Whether the slot before runs this preset, or, without one, whether it is ready now."""
    if before is not None:
        return before.kind == Kind.MODEL and before.preset_id == preset.pk
    ready = Runtime.objects.filter(lane=lane, ended_at=None, phase=Phase.READY)
    return ready.filter(revision=preset.current_id).exists()
