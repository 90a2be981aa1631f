"""Notices of bookings as sentences that each reader is told in their language and zone, with the
zone named."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from bookings.models import Booking, Lapse, State
from lanes.models import Lane, Maintenance
from wire.words import Day, Slot, Value, marked, said

SENTENCES: Mapping[str, str] = {
    "confirmed": marked("Your booking of {what} on {lane} is confirmed: {slot}."),
    "changed": marked("Your booking of {what} on {lane} is now: {slot}."),
    "decision_needed": marked("{owner} asks for {what} on {lane}: {slot}."),
    "approved": marked("Your booking of {what} on {lane} was approved: {slot}."),
    "rejected": marked("Your booking of {what} on {lane} was rejected: {slot}."),
    "cancelled": marked("Your booking of {what} on {lane} was cancelled: {slot}."),
    "expired": marked("Nobody approved your booking of {what} on {lane} in time: {slot}."),
    "warm": marked("{what} is loaded on {lane} for your slot: {slot}."),
    "starting": marked("Your slot with {what} on {lane} begins at {start}."),
    "ending": marked("Your slot with {what} on {lane} ends at {end}."),
    "offered": marked(
        "{lane} is held for you with {what} until {held}: {slot}. Take it, or it passes on."
    ),
    "released": marked("Your slot with {what} on {lane} was released; it ended at {end}."),
}
NO_SHOW = marked(
    "Your slot with {what} on {lane} was released, as nobody sent a request in time; it ended at "
    "{end}."
)
WAITS = marked(
    "Your booking of {what} on {lane} is now: {slot}. It waits for an administrator's approval."
)
MAINTENANCE: Mapping[str, str] = {
    "planned": marked("{lane} is under maintenance {when}{why}: your slot is {slot}."),
    "changed": marked("The maintenance of {lane} is now {when}{why}: your slot is {slot}."),
    "over": marked("No maintenance of {lane} is in the way of your slot any more: {slot}."),
}
ADVICE: Mapping[str, str] = {
    "decision_needed": marked("Approve or reject it under Administration, Approvals."),
    "rejected": marked("Ask an administrator why, or book another time."),
    "ending": marked(
        "What still runs then is ended. Extend the slot if nobody has the time after it."
    ),
    "offered": marked("Take it under My bookings."),
    "starting": marked("Release it if you do not need it: others can have the time."),
}


@dataclass(frozen=True, slots=True)
class Words:
    """What a person reads: sentences of `wire.words.said`, in English until they are told."""

    sentence: str
    advice: str = ""


def words_of(event: str, booking: Booking, *, has_comment: bool = True) -> Words:
    """What an event of a booking is in words; what was said with a decision is for its owner and
    administrators alone."""
    text = SENTENCES[event]
    if event == "released" and booking.lapse == Lapse.NO_SHOW:
        text = NO_SHOW
    if event == "changed" and booking.state == State.PENDING:
        text = WAITS
    comment = _decision(event, booking) if has_comment else ""
    return Words(said(text, **_values(booking)), comment or said(ADVICE.get(event, "")))


def freed_words(lane: Lane, start: datetime, end: datetime) -> Words:
    """That time has become free."""
    zone = timezone.get_default_timezone()
    return Words(
        said("{lane} has become free: {slot}.", lane=lane.name, slot=Slot(start, end, zone)),
        said("Whoever books it first has it."),
    )


def recovered_words(lane: Lane, preset: str) -> Words:
    """That what had failed runs."""
    return Words(said("{preset} runs on {lane} again.", preset=preset, lane=lane.name))


def maintenance_words(told: str, booking: Booking, row: Maintenance) -> Words:
    """What maintenance means for a booking: `told` is planned, changed or over."""
    zone = timezone.get_default_timezone()
    from_on = said("from {start} on", start=Day(row.start, zone))
    when = Slot(row.start, row.end, zone) if row.end else from_on
    why = f" ({row.reason})" if row.reason else ""
    sentence = said(MAINTENANCE[told], **_values(booking), when=when, why=why)
    advice = said(
        "The booking stays: what lies outside the maintenance is yours. Move it if you can."
    )
    return Words(sentence, "" if told == "over" else advice)


def _values(booking: Booking) -> dict[str, Value]:
    zone = timezone.get_default_timezone()
    return {
        "what": booking.called,
        "lane": booking.lane.name,
        "owner": booking.owner.get_username(),
        "slot": Slot(booking.start, booking.end, zone),
        "start": Day(booking.start, zone),
        "end": Day(booking.end, zone),
        "held": Day(booking.held_until or booking.end, zone),
    }


def _decision(event: str, booking: Booking) -> str:
    """What was said by whoever decided; empty if nothing was."""
    if event not in {"approved", "rejected"} or not booking.decision_comment:
        return ""
    by = booking.decided_by.get_username() if booking.decided_by else said("An administrator")
    return said("{by} says: {comment}", by=by, comment=booking.decision_comment)
