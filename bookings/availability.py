"""What is in the way of an interval, and the nearest free slots of the same length."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from django.utils import timezone

from bookings.models import Booking
from bookings.querysets import BookingQuerySet
from bookings.refusals import Interval, SlotTaken
from lanes.models import Lane
from wire.words import clock as words_of

HORIZON = timedelta(days=366)  # how far ahead a booking may end
_CHUNK = 200  # rows; the search for a gap stops at the first


def obstacle(
    lane: Lane, wanted: Interval, now: datetime, *, but: int | None = None
) -> SlotTaken | None:
    """The refusal when others hold some of `wanted`; the booking `but` is no obstacle to itself."""
    found = Booking.objects.others(but).in_the_way(lane.pk, wanted.start, wanted.end)
    conflicts = tuple(Interval(*row) for row in found.values_list("start", "end", "pk"))
    return slot_taken(lane, wanted, now, conflicts, but=but) if conflicts else None


def slot_taken(
    lane: Lane,
    wanted: Interval,
    now: datetime,
    conflicts: tuple[Interval, ...],
    *,
    but: int | None = None,
) -> SlotTaken:
    """The refusal in words, with the free slots just before and just after."""
    nearest = _nearest(Booking.objects.others(but).filter(lane=lane), wanted, now)
    words = f"{lane} is taken {_when(conflicts, now)}. {_advice(nearest, now)}"
    return SlotTaken("slot_taken", words, conflicts=conflicts, nearest=nearest)


def free_after(busy: Iterable[Interval], wanted: Interval) -> Interval:
    """The first slot as long as `wanted` that starts no earlier; `busy` is disjoint, by start."""
    length, start = wanted.end - wanted.start, wanted.start
    for held in busy:
        if held.start - start >= length:
            break
        start = max(start, held.end)
    return Interval(start, start + length)


def free_before(busy: Iterable[Interval], wanted: Interval) -> Interval:
    """The last slot as long as `wanted` that ends no later; `busy` is disjoint, the last first."""
    length, end = wanted.end - wanted.start, wanted.end
    for held in busy:
        if end - held.end >= length:
            break
        end = min(end, held.start)
    return Interval(end - length, end)


def _nearest(others: BookingQuerySet, wanted: Interval, now: datetime) -> tuple[Interval, ...]:
    """One before, unless it is past, and one after, unless it is too far ahead."""
    held = others.current(now)
    before = free_before(_read(held.filter(start__lt=wanted.end).order_by("-start")), wanted)
    after = free_after(_read(held.filter(end__gt=wanted.start).order_by("start")), wanted)
    slots = []
    if now <= before.start < wanted.start:
        slots.append(before)
    if after.end <= now + HORIZON:
        slots.append(after)
    return tuple(slots)


def _read(bookings: BookingQuerySet) -> Iterator[Interval]:
    rows = bookings.values_list("start", "end", "pk").iterator(chunk_size=_CHUNK)
    return (Interval(*row) for row in rows)


def _when(conflicts: tuple[Interval, ...], now: datetime) -> str:
    if not conflicts:
        return "by somebody who was a moment faster"
    zone = timezone.get_current_timezone()
    start, end = words_of(conflicts[0].start, now, zone), words_of(conflicts[-1].end, now, zone)
    if len(conflicts) > 1:
        return f"{len(conflicts)} times between {start} and {end}"
    return f"from {start} to {end}"


def _advice(nearest: tuple[Interval, ...], now: datetime) -> str:
    if not nearest:
        return "No slot of that length is free."
    zone = timezone.get_current_timezone()
    starts = " or ".join(words_of(slot.start, now, zone) for slot in nearest)
    return f"It is free for as long from {starts}."
