"""The receipt of a booking: what it held, what it asked for, and what exactly ran."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.db.models import Count, OuterRef, Q, Subquery, Sum

from bookings.models import Booking, Kind, State
from gateway.models import UsageDay, UsageRecord
from gateway.shares import Shares, shares_of
from gateway.usage_day_rows import TIMES
from gateway.usage_facts import busy_times, held, ready_times
from gateway.usage_forgetting import is_known_by_day_alone
from lanes.models import PresetRevision, Runtime


@dataclass(frozen=True, slots=True)
class Ran:
    """A model that was ready in a booking's time, with its arguments, and for how many seconds."""

    revision: PresetRevision
    seconds: float


@dataclass(frozen=True, slots=True)
class Receipt:
    """Of one booking, until its end or until `at`, when it is still in progress."""

    booking: Booking
    at: datetime
    is_by_day: bool  # its requests are forgotten
    shares: Shares  # seconds
    requests: int  # refused ones are counted too
    refused: int
    prompt_tokens: int
    completion_tokens: int
    ran: tuple[Ran, ...]  # the booked model, what was loaded instead of it, a default in its place

    @property
    def is_final(self) -> bool:
        """Whether the booking is over; requests that end later are still added."""
        return self.at >= self.booking.end


def receipt_of(booking: Booking, now: datetime) -> Receipt:
    """The receipt at `now`; four queries. One that never was in progress held no time and
    ran nothing. Of one whose requests are forgotten it is what its days have kept."""
    first, last = booking.active_from, min(booking.end, now)
    is_by_day = is_known_by_day_alone(booking, now)
    if is_by_day:
        days = UsageDay.objects.filter(booking_id_for=booking.pk)
        sums = days.aggregate(**{name: Sum(name, default=0.0) for name in TIMES})
        shares = Shares(**{name.removesuffix("_seconds"): sums[name] for name in TIMES})
        counted = days.aggregate(**_OF_DAYS)
    else:
        counted = UsageRecord.objects.filter(booking_id_for=booking.pk).aggregate(**_OF_RECORDS)
        shares = _shares(booking, first, last)
    ran = _ran(booking, first, last)
    return Receipt(booking=booking, at=now, is_by_day=is_by_day, shares=shares, ran=ran, **counted)


# In the order of PersonUse.
_OF_RECORDS = {
    "requests": Count("pk"),
    "refused": Count("pk", filter=~Q(code="")),
    "prompt_tokens": Sum("prompt_tokens", default=0),
    "completion_tokens": Sum("completion_tokens", default=0),
}
_OF_DAYS = {name: Sum(name, default=0) for name in _OF_RECORDS}


@dataclass(frozen=True, slots=True)
class PersonUse:
    """What one person asked for in a booking's slot; its owner, a guest, or one removed since."""

    name: str  # empty: of somebody whose account was deleted
    requests: int
    refused: int
    prompt_tokens: int
    completion_tokens: int


def use_by_person(receipt: Receipt) -> tuple[PersonUse, ...]:
    """Who asked for how much in its booking, by the name of today; one query."""
    booking = receipt.booking.pk
    rows: Iterable[tuple[str | None, int, int, int, int]]
    if receipt.is_by_day:
        people = User.objects.filter(pk=OuterRef("owner_id_for")).values("username")
        days = UsageDay.objects.filter(booking_id_for=booking, requests__gt=0)
        named = days.annotate(person=Subquery(people)).order_by("person")
        rows = named.values_list("person").annotate(**_OF_DAYS)
    else:
        records = UsageRecord.objects.filter(booking_id_for=booking)
        names = records.order_by("owner__username").values_list("owner__username")
        rows = names.annotate(**_OF_RECORDS)
    return tuple(PersonUse(name or "", *counts) for name, *counts in rows)


def _shares(booking: Booking, first: datetime, last: datetime) -> Shares:
    if booking.state != State.CONFIRMED or last <= first:
        return Shares()
    return shares_of(
        held(booking, first, last),
        busy=busy_times([booking.pk], first, last).get(booking.pk, []),
        ready=ready_times([booking.lane_id], first, last).get(booking.lane_id, []),
        is_measured=booking.kind == Kind.MODEL,
    )


def _ran(booking: Booking, first: datetime, last: datetime) -> tuple[Ran, ...]:
    """In the order in which each was ready first."""
    if booking.state != State.CONFIRMED or booking.kind != Kind.MODEL:
        return ()
    alive = Q(ended_at=None) | Q(ended_at__gt=first)
    servers = Runtime.objects.filter(alive, lane=booking.lane_id, ready_at__lt=last)
    found: dict[PresetRevision, float] = {}
    for server in servers.select_related("revision__preset").order_by("ready_at", "pk"):
        end = min(server.term_at or last, server.ended_at or last, last)
        seconds = (end - max(server.ready_at or end, first)).total_seconds()
        if seconds > 0:
            found[server.revision] = found.get(server.revision, 0.0) + seconds
    return tuple(Ran(revision, seconds) for revision, seconds in found.items())
