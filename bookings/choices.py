"""An administrator's word on a lane: run this until then, unload, or load anew."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from bookings.models import Booking, State
from lanes import audit, clock, ticks
from lanes.archived import archived_objection
from lanes.events import add_event
from lanes.locking import lock_lane
from lanes.maintenance import within
from lanes.models import (
    Lane,
    Maintenance,
    ManualChoice,
    Preset,
    PresetFailure,
    ReloadRequest,
    Subject,
)
from lanes.refusals import NOT_ADMINISTRATOR, Refusal
from wire.words import At, said

NOT_YOURS = Refusal(
    "not_yours",
    said("Only administrators and whoever has the lane booked now can have it tried again."),
)
DELETED = Refusal("not_found", said("This lane has been deleted meanwhile."))


@dataclass(frozen=True, slots=True)
class ChoiceMade:
    """A choice, from when it can take effect, and when it will end at the latest."""

    choice: ManualChoice
    begins_at: datetime
    ends_at: datetime  # its own time, or the start of the next booking
    words: str


def choose(
    lane: Lane, *, preset: Preset | None, until: datetime, actor: User
) -> ChoiceMade | Refusal:
    """Have the lane run a preset, or nothing, until a time or the next booking's start.

    Replaces the choice in force. With a booking in progress, or during maintenance, it takes effect
    after that one's end.
    Refusals: not_administrator, naive_time, unknown_preset, lane_disabled, in_the_past, archived,
    not_found.
    """
    if not actor.is_staff:
        return NOT_ADMINISTRATOR
    if timezone.is_naive(until):
        return Refusal("naive_time", said("Say which time zone the end is in, such as +02:00."))
    refusal = _target_objection(lane, preset)
    if refusal:
        return refusal
    with transaction.atomic():
        locked = lock_lane(lane)
        if locked is None:
            return DELETED
        now = clock.database_now()
        if not locked.enabled:
            return Refusal(
                "lane_disabled", said("{lane} is disabled: enable it first.", lane=str(lane))
            )
        if until <= now:
            return Refusal("in_the_past", said("A choice must end in the future."))
        refusal = archived_objection(preset) if preset else None
        if refusal:
            return refusal
        ManualChoice.objects.filter(lane=lane, ended_at=None).update(ended_at=now)
        choice = ManualChoice.objects.create(
            lane=lane, preset=preset, made_at=now, until=until.astimezone(UTC), made_by=actor
        )
        made = _made(choice)
        _tell(lane, "choice", said("chosen: {choice}", choice=made.words), actor, now)
    return made


def clear_choice(lane: Lane, *, actor: User) -> Refusal | None:
    """End the choice in force.

    Refusals: not_administrator, wrong_state when there is none, not_found.
    """
    if not actor.is_staff:
        return NOT_ADMINISTRATOR
    with transaction.atomic():
        if lock_lane(lane) is None:
            return DELETED
        now = clock.database_now()
        in_force = ManualChoice.objects.filter(lane=lane, ended_at=None)
        if not in_force.update(ended_at=now):
            return Refusal("wrong_state", said("No choice is in force on {lane}.", lane=str(lane)))
        _tell(lane, "choice", said("the choice in force was ended"), actor, now)
    return None


def reload(lane: Lane, *, actor: User) -> Refusal | None:
    """Restart the lane's server at once, on its preset's newest revision, and forget failures.

    Refusals: not_administrator, not_found.
    """
    if not actor.is_staff:
        return NOT_ADMINISTRATOR
    with transaction.atomic():
        if lock_lane(lane) is None:
            return DELETED
        _ask_for_reload(lane, actor, said("a reload was asked for"))
    return None


def retry(lane: Lane, *, actor: User) -> Refusal | None:
    """Try at once what failed, without waiting for its next attempt. A default that serves in its
    place is stopped without a drain.

    For administrators and whoever has the lane now. Refusals: not_yours, not_found, wrong_state
    when nothing is failing.
    """
    with transaction.atomic():
        if lock_lane(lane) is None:
            return DELETED
        if not may_retry(lane, actor, clock.database_now()):
            return NOT_YOURS
        if not PresetFailure.objects.filter(lane=lane, count__gt=0).exists():
            return Refusal("wrong_state", said("Nothing is failing on {lane}.", lane=str(lane)))
        _ask_for_reload(lane, actor, said("another try was asked for"))
    return None


def may_retry(lane: Lane, actor: User, now: datetime) -> bool:
    """Whether this person may have a failed preset tried again: administrators, and the owner of
    the slot in progress, which nobody else is served in."""
    if actor.is_staff:
        return True
    own = Booking.objects.filter(lane=lane, owner=actor, state=State.CONFIRMED)
    return own.filter(start__lte=now, end__gt=now).exists()


def _ask_for_reload(lane: Lane, actor: User, sentence: str) -> None:
    now = clock.database_now()
    ReloadRequest.objects.update_or_create(lane=lane, defaults={"asked_at": now, "asked_by": actor})
    _tell(lane, "reload", sentence, actor, now)


def _target_objection(lane: Lane, preset: Preset | None) -> Refusal | None:
    revision = preset.current if preset else None
    if preset is None or (revision and revision.model_file.host_id == lane.host_id):
        return None
    words = said(
        "{lane} cannot run {preset}: its file is not on the host.",
        lane=str(lane),
        preset=str(preset),
    )
    return Refusal("unknown_preset", words)


def _made(choice: ManualChoice) -> ChoiceMade:
    """When a choice just made begins and ends, and that in words."""
    claims = Booking.objects.filter(
        lane=choice.lane, state=State.CONFIRMED, end__gt=choice.made_at
    ).order_by("end")[:2]
    present = [booking for booking in claims if booking.start <= choice.made_at]
    following = [booking for booking in claims if booking.start > choice.made_at]
    free_at = present[0].end if present else choice.made_at
    ends_at = min([choice.until, *(booking.start for booking in following[:1])])
    closed = list(within(choice.made_at, ends_at, [choice.lane_id]).filter(ended_at=None))
    begins_at = _open_from(free_at, ends_at, closed)
    zone = timezone.get_default_timezone()
    if begins_at > free_at:
        words = _waiting_words(choice, begins_at, ends_at, zone)
    else:
        words = _words(choice, begins_at, ends_at, zone)
    later = [each for each in closed if begins_at < each.start < ends_at]
    if later:
        words = _with_break(words, later[0], choice.made_at, zone)
    return ChoiceMade(choice, begins_at, ends_at, words)


def _open_from(moment: datetime, ends_at: datetime, closed: Iterable[Maintenance]) -> datetime:
    """When maintenance leaves the lane open, from a moment on; `ends_at` at the latest."""
    for each in sorted(closed, key=lambda one: one.start):
        if each.start <= moment and (each.end is None or each.end > moment):
            moment = each.end or max(ends_at, moment)
    return moment


def _waiting_words(
    choice: ManualChoice, begins_at: datetime, ends_at: datetime, zone: tzinfo
) -> str:
    """That a choice waits for maintenance."""
    values: dict[str, str | At] = {
        "what": choice.preset.slug if choice.preset else said("nothing (unloaded)"),
        "begins": At(begins_at, choice.made_at, zone),
        "ends": At(ends_at, choice.made_at, zone),
    }
    if begins_at >= ends_at:
        return said(
            "{what} until {ends}; it will not take effect: the lane is under maintenance for as "
            "long",
            **values,
        )
    return said("{what}, after the maintenance that ends at {begins}, until {ends}", **values)


def _with_break(words: str, closed: Maintenance, now: datetime, zone: tzinfo) -> str:
    """That nothing runs for a while of it."""
    start = At(closed.start, now, zone)
    return said(
        "{sentence}; nothing runs from {start} on, while the lane is under maintenance",
        sentence=words,
        start=start,
    )


def _words(choice: ManualChoice, begins_at: datetime, ends_at: datetime, zone: tzinfo) -> str:
    what = choice.preset.slug if choice.preset else said("nothing (unloaded)")
    begins = At(begins_at, choice.made_at, zone)
    ends = At(ends_at, choice.made_at, zone)
    if begins_at >= ends_at:
        return said(
            "{what} until {ends}; it will not take effect: a booking lasts until {begins}",
            what=what,
            ends=ends,
            begins=begins,
        )
    if begins_at > choice.made_at:
        what = said("{what}, after the booking that ends at {begins},", what=what, begins=begins)
    words = said("{what} until {ends}", what=what, ends=ends)
    if ends_at < choice.until:
        return said("{sentence} when the next booking starts", sentence=words)
    return words


def _tell(lane: Lane, kind: str, sentence: str, actor: User, now: datetime) -> None:
    """Write the event, and have the lanes planned when this transaction commits."""
    add_event(lane, now, kind, sentence, actor=actor)
    about = audit.About(Subject.LANE, lane.pk, lane.name)
    audit.note("lane.choice", actor, about, what=sentence)
    ticks.plan_soon()
