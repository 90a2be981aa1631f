"""Giving time that is free to those who wait for it, the first who fits before the next.

Looked at again and again; safe to skip, to repeat and to run twice at once. Who gets what is
decided from one look at each lane's time, so that nobody overtakes another by time that becomes
free between the two; under lock it is only done or, when it is not so any more, left.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from bookings.availability import HORIZON, objection
from bookings.closures import joined
from bookings.facts import closure_of
from bookings.feasible import Judge, Market, nearest_slots
from bookings.interval import Interval
from bookings.models import Booking, State, Waiting
from bookings.policies import Rulebook, claim_of, counted_of_all, standing_of
from bookings.policy import Claim, Counted, ledger
from bookings.rules import Wish, lane_objection, preset_objection, time_objection
from bookings.settling import (
    GONE,
    Answer,
    Held,
    hold,
    lock,
    place,
    settle,
    tell_rule,
)
from lanes import clock
from lanes.maintenance import not_over
from lanes.models import Lane
from lanes.refusals import Refusal
from wire.words import said

MOST_JUDGED = 2000  # for whom there is time, whether or not their rules let them have it
NOT_DUE = Refusal("wrong_state", said("This is not what it was: nothing is done."))


def end_holds(now: datetime) -> int:
    """Free what was held too long without being confirmed; how many."""
    due = Booking.objects.filter(Q(held_until__lte=now) | Q(end__lte=now), state=State.HELD)
    found = due.select_related("owner")
    return sum(isinstance(settle(partial(_end, each)), Booking) for each in found)


def offer_freed(now: datetime) -> int:
    """Hold free time for the first who wait for it and fit, one hold for each member; how many."""
    waiting = list(
        Waiting.objects.unserved(now)
        .select_related("owner")
        .prefetch_related("lanes", "owner__groups")
    )
    if not waiting:
        return 0
    look = _Look(now, Rulebook.read(), {each.owner_id for each in waiting})
    served: set[int] = set()
    for each in waiting:
        if look.judged >= MOST_JUDGED:
            break
        found = look.slot_for(each) if each.owner_id not in served else None
        if found is None:
            continue
        lane, slot = found
        held = settle(partial(_hold, each.pk, lane.pk, slot))
        # Held or not, what was seen of it is gone: by us, or by somebody who was faster.
        look.take(lane, slot)
        if isinstance(held, Booking):
            served.add(each.owner_id)
    return len(served)


@dataclass(slots=True)
class _Look:
    """What one look shows: rules, and each lane's and member's bookings, read once."""

    now: datetime
    book: Rulebook
    owners: Collection[int]
    busy: dict[int, list[Interval]] = field(default_factory=dict)
    used: dict[int, dict[int, Counted]] = field(default_factory=dict)
    judged: int = 0

    def slot_for(self, waiting: Waiting) -> tuple[Lane, Interval] | None:
        """The earliest free time that fits, and breaks none of the rules."""
        found = [
            (lane, slot)
            for lane in waiting.lanes.all()
            if lane.enabled
            for slot in self._slots(waiting, lane)
        ]
        return min(found, key=lambda each: each[1].start, default=None)

    def take(self, lane: Lane, slot: Interval) -> None:
        """It is not free any more."""
        busy = self.busy[lane.pk]
        busy.append(slot)
        busy.sort(key=lambda each: each.start)

    def _slots(self, waiting: Waiting, lane: Lane) -> Iterator[Interval]:
        opens = max(waiting.opens, self.now)
        length = timedelta(minutes=waiting.minutes)
        if opens + length > waiting.closes:
            return
        closes = waiting.closes
        busy = [each for each in self._busy(lane) if each.end > opens and each.start < closes]
        market = Market(busy, opens, closes)
        if not any(market.gaps(length)):
            return
        self.judged += 1
        claim = Claim(
            lane.pk, opens, opens + length, waiting.preset_id, starts_now=opens == self.now
        )
        for slot in nearest_slots(self._judge(waiting, lane), claim, market):
            if slot.end - slot.start >= length:
                yield slot

    def _judge(self, waiting: Waiting, lane: Lane) -> Judge:
        rules, owner = self.book.rules(waiting.owner, lane), waiting.owner
        if rules.counts_others and not self.used:
            self.used = counted_of_all(self.owners, self.now)
        others = self.used[owner.pk].values() if rules.counts_others else ()
        zone = timezone.get_default_timezone()
        return Judge(rules, ledger(rules, lane.pk, others, self.now, zone), self.now)

    def _busy(self, lane: Lane) -> list[Interval]:
        if lane.pk not in self.busy:
            rows = Booking.objects.in_the_way(lane.pk, self.now, self.now + HORIZON)
            held = [Interval(*row) for row in rows.values_list("start", "end", "pk")]
            closures = [closure_of(each) for each in not_over(self.now, [lane.pk])]
            self.busy[lane.pk] = list(joined(held, closures, self.now + HORIZON))
        return self.busy[lane.pk]


def _hold(waiting_pk: int, lane_pk: int, slot: Interval) -> Answer:
    """Lock, then check again, then hold it."""
    owner_pk = Waiting.objects.filter(pk=waiting_pk).values_list("owner", flat=True).first()
    lane = lock(owner_pk or 0, {lane_pk}).get(lane_pk)
    now = clock.database_now()
    found = Waiting.objects.filter(pk=waiting_pk).unserved(now)
    waiting = found.select_for_update(no_key=True, of=("self",)).select_related("owner").first()
    if lane is None or waiting is None:
        return GONE
    booking = _drafted(waiting, lane, slot, now)
    wish = Wish(lane, waiting.kind, waiting.preset, booking.start, booking.end)
    standing, claim = standing_of(waiting.owner, lane, now), claim_of(booking, now)
    refusal = (
        time_objection(wish, now)
        or lane_objection(lane)
        or preset_objection(wish)
        or objection(standing, claim)
        or place(booking, standing, claim)
    )
    if refusal:
        return refusal
    waiting.hold = booking
    waiting.save(update_fields=["hold"])
    tell_rule(booking, "held", now)
    return booking


def _drafted(waiting: Waiting, lane: Lane, slot: Interval, now: datetime) -> Booking:
    """A hold of the slot; one that begins now begins when it is written."""
    late = max(now - slot.start, timedelta())
    start, end = slot.start + late, slot.end + late
    if end > waiting.closes:
        end = slot.end
    minutes = timedelta(minutes=settings.SLOTSERVE_HOLD_MINUTES)
    return Booking(
        lane=lane,
        owner=waiting.owner,
        kind=waiting.kind,
        preset=waiting.preset,
        start=start,
        end=end,
        original_end=end,
        state=State.HELD,
        held_until=min(now + minutes, end),
        created_at=now,
        purpose=waiting.purpose,
    )


def _end(booking: Booking) -> Answer:
    held = hold(booking, booking.owner)
    if not isinstance(held, Held):
        return held
    fresh, now = held.booking, held.now
    if fresh.state != State.HELD or (fresh.held_until or now) > now:
        return NOT_DUE
    fresh.state = State.EXPIRED
    fresh.save(update_fields=["state"])
    tell_rule(fresh, "hold_ended", now)
    return fresh
