"""The receipt of a booking: what it held, what it asked for, and what exactly ran."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q, Sum

from bookings.models import Booking, Kind, State
from gateway.models import UsageRecord
from gateway.shares import Shares, shares_of
from gateway.usage_facts import busy_times, held, ready_times
from lanes.models import PresetRevision


@dataclass(frozen=True, slots=True)
class Receipt:
    """Of one booking, until its end or until `at`, when it is still in progress."""

    booking: Booking
    at: datetime
    shares: Shares  # seconds
    requests: int  # refused ones are counted too
    refused: int
    prompt_tokens: int
    completion_tokens: int
    revision: PresetRevision | None  # what ran, with its arguments; None: a whole GPU, or nothing

    @property
    def is_final(self) -> bool:
        """Whether the booking is over; requests that end later are still added."""
        return self.at >= self.booking.end


def receipt_of(booking: Booking, now: datetime) -> Receipt:
    """The receipt at `now`; four queries. One that never was in progress held no time."""
    first, last = booking.active_from, min(booking.end, now)
    records = UsageRecord.objects.filter(booking_id_for=booking.pk)
    counted = records.aggregate(
        requests=Count("pk"),
        refused=Count("pk", filter=~Q(code="")),
        prompt=Sum("prompt_tokens"),
        completion=Sum("completion_tokens"),
    )
    return Receipt(
        booking=booking,
        at=now,
        shares=_shares(booking, first, last),
        requests=counted["requests"],
        refused=counted["refused"],
        prompt_tokens=counted["prompt"] or 0,
        completion_tokens=counted["completion"] or 0,
        revision=_revision(booking),
    )


@dataclass(frozen=True, slots=True)
class PersonUse:
    """What one person asked for in a booking's slot; its owner, a guest, or one removed since."""

    name: str  # empty: of somebody whose account was deleted
    requests: int
    refused: int
    prompt_tokens: int
    completion_tokens: int


def use_by_person(booking: Booking) -> tuple[PersonUse, ...]:
    """Who asked for how much, by name; one query."""
    records = UsageRecord.objects.filter(booking_id_for=booking.pk)
    counted = records.values("owner__username").annotate(
        requests=Count("pk"),
        refused=Count("pk", filter=~Q(code="")),
        prompt=Sum("prompt_tokens"),
        completion=Sum("completion_tokens"),
    )
    return tuple(
        PersonUse(
            row["owner__username"] or "",
            row["requests"],
            row["refused"],
            row["prompt"] or 0,
            row["completion"] or 0,
        )
        for row in counted.order_by("owner__username")
    )


def _shares(booking: Booking, first: datetime, last: datetime) -> Shares:
    if booking.state != State.CONFIRMED or last <= first:
        return Shares()
    return shares_of(
        held(booking, first, last),
        busy=busy_times([booking.pk], first, last).get(booking.pk, []),
        ready=ready_times([booking.lane_id], first, last).get(booking.lane_id, []),
        is_measured=booking.kind == Kind.MODEL,
    )


def _revision(booking: Booking) -> PresetRevision | None:
    """The one that was pinned when the slot's model was ordered."""
    pinned = PresetRevision.objects.filter(pk=booking.pinned_revision_id or 0)
    return pinned.select_related("preset", "model_file").first()
