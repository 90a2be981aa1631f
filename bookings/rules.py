"""What may be asked of a booking, apart from whether the slot is free: refusals or None."""

from dataclasses import dataclass
from datetime import UTC, datetime

from django.contrib.auth.models import User
from django.utils import timezone

from bookings.availability import HORIZON
from bookings.states import Kind
from lanes.archived import archived_refusal
from lanes.models import Lane, Preset
from lanes.refusals import Refusal
from wire.words import said

LONGEST_PURPOSE = 200
FIRST_MOMENT = datetime.min.replace(tzinfo=UTC)
LAST_MOMENT = datetime.max.replace(tzinfo=UTC)
NAIVE = Refusal("naive_time", said("Say in which time zone start and end are, such as +02:00."))
ENDS_BEFORE_START = Refusal("ends_before_start", said("A booking must end after it starts."))
ENDS_IN_THE_PAST = Refusal("in_the_past", said("That end is in the past."))
STARTS_IN_THE_PAST = Refusal(
    "in_the_past", said("That start is in the past: leave the start out to begin now.")
)
TOO_FAR = Refusal(
    "too_far", said("A booking can end at most {days} days from now.", days=HORIZON.days)
)
NO_SUCH_KIND = Refusal("wrong_kind", said("Book one model or the whole GPU."))
PRESET_FOR_GPU = Refusal("wrong_kind", said("The whole GPU is booked without a preset."))
NO_PRESET = Refusal("wrong_kind", said("Name the preset to load, or book the whole GPU."))
INACTIVE = Refusal(
    "owner_inactive", said("This member may not log in any more, so nothing is booked for them.")
)
BAD_PURPOSE = Refusal(
    "bad_purpose", said("Say what for in at most {most} characters.", most=LONGEST_PURPOSE)
)


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be booked, in UTC. `is_start_kept`: it may have begun before now."""

    lane: Lane
    kind: str
    preset: Preset | None
    start: datetime
    end: datetime
    is_start_kept: bool = False


def is_naive(*moments: datetime | None) -> bool:
    """Whether one of these times lacks its zone."""
    return any(moment is not None and timezone.is_naive(moment) for moment in moments)


def in_utc(moment: datetime) -> datetime:
    """The moment in UTC; at the ends of the calendar, the last or first moment there is."""
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return FIRST_MOMENT if moment.year == 1 else LAST_MOMENT


def purpose_objection(purpose: str) -> Refusal | None:
    """A purpose that the database would not take."""
    return BAD_PURPOSE if len(purpose) > LONGEST_PURPOSE or "\0" in purpose else None


def time_objection(wish: Wish, now: datetime) -> Refusal | None:
    """Times that cannot be booked at `now`. They are never rounded."""
    if wish.end <= now:
        return ENDS_IN_THE_PAST
    if wish.end <= wish.start:
        return ENDS_BEFORE_START
    if wish.start < now and not wish.is_start_kept:
        return STARTS_IN_THE_PAST
    return TOO_FAR if wish.end > now + HORIZON else None


def kind_objection(wish: Wish) -> Refusal | None:
    """A kind that does not exist, or a preset that does not belong to it."""
    if wish.kind not in Kind.values:
        return NO_SUCH_KIND
    if wish.kind == Kind.GPU:
        return PRESET_FOR_GPU if wish.preset else None
    return None if wish.preset else NO_PRESET


def preset_objection(wish: Wish) -> Refusal | None:
    """A preset that the lane's host cannot load, or that is archived. One query."""
    if wish.preset is None:
        return None
    known = Preset.objects.filter(
        pk=wish.preset.pk, current__model_file__host=wish.lane.host_id
    ).first()
    words = said(
        "{lane} cannot run {preset}: choose a preset of a model file on its host.",
        lane=str(wish.lane),
        preset=str(wish.preset),
    )
    if known is None:
        return Refusal("unknown_preset", words)
    return archived_refusal(known) if known.archived_at else None


def owner_objection(pk: int) -> Refusal | None:
    """A member who was removed. One query; for a decision that is to hold, under their lock."""
    is_member = User.objects.filter(pk=pk, is_active=True).exists()
    return None if is_member else INACTIVE


def lane_objection(lane: Lane) -> Refusal | None:
    """A lane that takes no bookings."""
    words = said("{lane} is disabled and takes no bookings: choose another lane.", lane=str(lane))
    return None if lane.enabled else Refusal("lane_disabled", words)
