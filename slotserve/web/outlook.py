"""What a member should know of a slot before booking it: how long the model loads and when that
can begin, and whether the time is free. Reads and explains; the service decides."""

from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from bookings.availability import closed_words, objection, obstacle
from bookings.foretelling import Foretold, Why
from bookings.foretold import foretold_of
from bookings.policies import Standing
from bookings.policy import Claim
from bookings.policy_words import approval_words, length_words
from bookings.refusals import Offering
from bookings.situation import Closure
from lanes.estimates import mean_loads
from lanes.fitting import is_too_large, warning
from lanes.maintenance import within
from lanes.models import Lane, Preset
from lanes.telling import moment


@dataclass(frozen=True, slots=True)
class Asked:
    """A wish as far as the form says it; no start: now; no preset: the whole GPU."""

    lane: Lane
    preset: Preset | None
    start: datetime | None
    end: datetime | None


@dataclass(frozen=True, slots=True)
class Load:
    """What is known of a load: the model's name (empty: the whole GPU), and seconds."""

    model: str
    seconds: float = 0.0
    is_measured: bool = True  # else a guess from the file's size


def expectations(load: Load, found: Foretold, now: datetime) -> list[str]:
    """What will happen at the start of the slot, in sentences. Pure but for the language."""
    if not load.model:
        return [_emptying(found)]
    if found.why in {Why.SAME_BEFORE, Why.LOADED} and not found.waits:
        return [_no_load(found)]
    return [_estimate(load), _loading(found, now)]


def outlook(asked: Asked, owner: User, now: datetime) -> list[str]:
    """The sentences about this wish of a member."""
    seconds, found = foretold_of(asked.lane, owner, (asked.preset, asked.start, asked.end), now)
    name = asked.preset.name if asked.preset else ""
    pair = (asked.lane.pk, asked.preset.pk if asked.preset else 0)
    said = expectations(Load(name, seconds, bool(mean_loads([pair]))), found, now)
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
    return maintenance_words(asked.lane, start, asked.end, now) if asked.end else []


def maintenance_words(lane: Lane, start: datetime, end: datetime, now: datetime) -> list[str]:
    """What keeps everything off a lane in [start, end), in sentences; one query."""
    if end <= start:
        return []
    rows = within(start, end, [lane.pk]).filter(ended_at=None)
    words = _("Nothing runs then, whoever has booked it.")
    found = (Closure(row.start, row.end, row.reason) for row in rows)
    return [f"{closed_words(lane.name, each, now)} {words}" for each in found]


def in_the_way(asked: Asked, standing: Standing) -> Offering | None:
    """What is in the way of this wish, rules or others, if its times are known and make sense."""
    now = standing.now
    start = asked.start or now
    if asked.end is None or not now <= start < asked.end:
        return None
    preset = asked.preset.pk if asked.preset else None
    claim = Claim(asked.lane.pk, start, asked.end, preset, starts_now=asked.start is None)
    return objection(standing, claim) or obstacle(standing, claim)


def must_wait(asked: Asked, standing: Standing) -> str:
    """Why an administrator has to approve it, as far as its times are known; empty: none has to."""
    start = asked.start or standing.now
    end = asked.end if asked.end and asked.end > start else start
    preset = asked.preset.pk if asked.preset else None
    return approval_words(standing, Claim(asked.lane.pk, start, end, preset))


def _estimate(load: Load) -> str:
    words = (
        _("%(model)s takes about %(time)s to load, as its last loads here did.")
        if load.is_measured
        else _(
            "%(model)s takes about %(time)s to load, guessed from the file's size: it has never "
            "been loaded here."
        )
    )
    return words % {"model": load.model, "time": _seconds(load.seconds)}


def _no_load(found: Foretold) -> str:
    if found.why is Why.SAME_BEFORE:
        return _("No reload: the same model runs before you.")
    return _("No reload: it is loaded by then.")


def _loading(found: Foretold, now: datetime) -> str:
    """When it is warm, or how much of the slot the load takes and why."""
    if not found.waits and not found.drained:
        return _("Warm at %(moment)s, before your slot starts.") % _warm_at(found, now)
    words = {
        Why.OTHER_BEFORE: _(
            "The first %(wait)s of your slot are loading, because the slot before runs another "
            "model."
        ),
        Why.GPU_BEFORE: _(
            "The first %(wait)s of your slot are loading, because the slot before has the whole "
            "GPU."
        ),
        Why.CLOSED_BEFORE: _(
            "The first %(wait)s of your slot are without a model, because of maintenance."
        ),
        Why.OWNER_CHANGES: _(
            "The first %(wait)s of your slot are loading, because this lane restarts its server "
            "for each owner."
        ),
    }
    otherwise = _("The first %(wait)s of your slot are loading, which starts at once.")
    said = words.get(found.why, otherwise) % {"wait": _seconds(found.waits)}
    return f"{said} {_('Warm at %(moment)s.') % _warm_at(found, now)}{_drain(found)}"


def _warm_at(found: Foretold, now: datetime) -> dict[str, str]:
    """To the second, as far as an estimate is worth it."""
    return {"moment": moment(found.warm_at.replace(microsecond=0), now)}


def _emptying(found: Foretold) -> str:
    if found.why is Why.CLOSED_BEFORE:
        return _("The lane is under maintenance at the start of your slot.")
    if found.why in {Why.LOADED, Why.SAME_BEFORE}:
        return _("No model server runs on the lane: the GPU is yours at once.")
    if not found.waits and not found.drained:
        return _("No model server runs on the lane when your slot starts.")
    return _("The model server is stopped when your slot starts.") + _drain(found)


def _drain(found: Foretold) -> str:
    if not found.drained:
        return ""
    words = _("Running requests may finish first, for up to %(seconds)g s.")
    return " " + words % {"seconds": found.drained}


def _seconds(value: float) -> str:
    if value < 120:
        return f"{value:.0f} s"
    return length_words(round(value / 60))
