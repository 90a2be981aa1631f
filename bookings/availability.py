"""What is in the way of a claim, rules or others, and the nearest slots without either."""

from dataclasses import replace
from datetime import datetime, timedelta

from django.utils.translation import gettext as _

from bookings.closures import is_closed, joined
from bookings.feasible import Market, nearest_slots
from bookings.models import Booking, State
from bookings.policies import Standing
from bookings.policy import Claim
from bookings.policy_words import told
from bookings.querysets import BookingQuerySet
from bookings.refusals import (
    Hold,
    Interval,
    Offering,
    RulesBroken,
    SlotTaken,
    UnderMaintenance,
)
from bookings.situation import Closure
from lanes.telling import moment

HORIZON = timedelta(days=366)  # how far ahead a booking may end
_READ = 100  # bookings before and after the claim among which free time is looked for


def objection(standing: Standing, claim: Claim, *, but: int | None = None) -> Offering | None:
    """The refusal when the claim breaks rules: all of them, and who holds the time besides; else
    when the lane is closed for some of it."""
    broken = standing.judge.broken(claim)
    if not broken:
        return _closed(standing, claim, but)
    conflicts = _conflicts(claim, but)
    nearest = _nearest(standing, claim, but)
    sentences = [told(each, standing, claim) for each in broken]
    hold = _hold(standing, conflicts)
    taken = _taken(standing, conflicts, hold) if conflicts else ""
    why = " ".join([*(each.words for each in sentences), *([taken] if taken else [])])
    return RulesBroken(
        "rules_broken",
        f"{why} {advice(nearest, standing.now)}" if nearest else why,
        why=why,
        conflicts=conflicts,
        nearest=nearest,
        hold=hold,
        broken=tuple(sentences),
        taken=taken,
    )


def obstacle(standing: Standing, claim: Claim, *, but: int | None = None) -> SlotTaken | None:
    """The refusal when others hold some of it; the booking `but` is no obstacle to itself."""
    conflicts = _conflicts(claim, but)
    return slot_taken(standing, claim, conflicts, but=but) if conflicts else None


def slot_taken(
    standing: Standing, claim: Claim, conflicts: tuple[Interval, ...], *, but: int | None = None
) -> SlotTaken:
    """The refusal in words, with the nearest slots that are free and break no rule."""
    nearest, hold = _nearest(standing, claim, but), _hold(standing, conflicts)
    why = _taken(standing, conflicts, hold)
    words = f"{why} {advice(nearest, standing.now)}"
    return SlotTaken("slot_taken", words, why, conflicts, nearest, hold)


def _closed(standing: Standing, claim: Claim, but: int | None) -> UnderMaintenance | None:
    """The same, with the nearest slots that are free and break no rule."""
    refusal = under_maintenance(standing, claim)
    if refusal is None:
        return None
    nearest = _nearest(standing, claim, but)
    sentence = f"{refusal.words} {advice(nearest, standing.now)}"
    return replace(refusal, sentence=sentence, why=refusal.words, nearest=nearest)


def under_maintenance(standing: Standing, claim: Claim) -> UnderMaintenance | None:
    """The refusal when maintenance closes the lane for some of the claim."""
    found = [each for each in standing.closures if is_closed(each, claim.start, claim.end)]
    if not found:
        return None
    words = [closed_words(standing.lane.name, each, standing.now) for each in found]
    conflicts = tuple(Interval(each.start, each.end or claim.end) for each in found)
    return UnderMaintenance("maintenance", " ".join(words), conflicts=conflicts)


def closed_words(lane: str, closure: Closure, now: datetime) -> str:
    """That maintenance closes a lane, from when to when, and why."""
    values = {"lane": lane, "start": moment(closure.start, now), "why": ""}
    if closure.reason:
        values["why"] = f" ({closure.reason})"
    if closure.end is None:
        return _("%(lane)s is under maintenance from %(start)s on%(why)s.") % values
    values["end"] = moment(closure.end, now)
    return _("%(lane)s is under maintenance from %(start)s to %(end)s%(why)s.") % values


def _conflicts(claim: Claim, but: int | None) -> tuple[Interval, ...]:
    found = Booking.objects.others(but).in_the_way(claim.lane, claim.start, claim.end)
    return tuple(Interval(*row) for row in found.values_list("start", "end", "pk"))


def _hold(standing: Standing, conflicts: tuple[Interval, ...]) -> Hold | None:
    """The member's own among them, as long as it may be taken. A query if there are any."""
    slots = {each.booking_id: each for each in conflicts if each.booking_id}
    own = Booking.objects.filter(owner=standing.owner, state=State.HELD, pk__in=slots)
    found = own.filter(held_until__gt=standing.now).values_list("pk", "held_until").first()
    if found is None or found[1] is None:
        return None
    return Hold(slots[found[0]], found[1])


def _nearest(standing: Standing, claim: Claim, but: int | None) -> tuple[Interval, ...]:
    return nearest_slots(standing.judge, claim, _market(standing, claim, but))


def _market(standing: Standing, claim: Claim, but: int | None) -> Market:
    """The lane's time around the claim; what lies beyond what is read counts as unknown."""
    now = standing.now
    held = Booking.objects.others(but).filter(lane=claim.lane).current(now)
    before = _read(held.filter(end__lte=claim.start).reverse())[::-1]
    after = _read(held.filter(end__gt=claim.start))
    return Market(
        busy=joined([*before, *after], standing.closures, now + HORIZON),
        opens=before[0].end if len(before) == _READ else now,
        closes=after[-1].start if len(after) == _READ else now + HORIZON,
    )


def _read(held: BookingQuerySet) -> tuple[Interval, ...]:
    return tuple(Interval(*row) for row in held.values_list("start", "end", "pk")[:_READ])


def _taken(standing: Standing, conflicts: tuple[Interval, ...], hold: Hold | None) -> str:
    if hold is None:
        return _taken_by_others(standing, conflicts)
    others = tuple(each for each in conflicts if each != hold.slot)
    words = [_taken_by_others(standing, others)] if others else []
    return " ".join((*words, held_words(standing, hold)))


def held_words(standing: Standing, hold: Hold) -> str:
    """That the waitlist holds it for the very member, and until when."""
    values = {
        "lane": standing.lane.name,
        "start": moment(hold.slot.start, standing.now),
        "end": moment(hold.slot.end, standing.now),
        "until": moment(hold.until, standing.now),
    }
    words = _(
        "%(lane)s is held for you from %(start)s to %(end)s. Take it under My bookings by "
        "%(until)s."
    )
    return words % values


def _taken_by_others(standing: Standing, conflicts: tuple[Interval, ...]) -> str:
    lane, now = standing.lane.name, standing.now
    if not conflicts:
        return _("%(lane)s is taken by somebody who was a moment faster.") % {"lane": lane}
    values = {
        "lane": lane,
        "count": len(conflicts),
        "start": moment(conflicts[0].start, now),
        "end": moment(conflicts[-1].end, now),
    }
    if len(conflicts) > 1:
        return _("%(lane)s is taken %(count)s times between %(start)s and %(end)s.") % values
    return _("%(lane)s is taken from %(start)s to %(end)s.") % values


def advice(nearest: tuple[Interval, ...], now: datetime) -> str:
    """From when these free slots are; that there is none."""
    if not nearest:
        return _("No slot of that length is free.")
    starts = [_("now") if slot.is_now else moment(slot.start, now) for slot in nearest]
    several = _("%(some)s or %(last)s") % {"some": ", ".join(starts[:-1]), "last": starts[-1]}
    start = several if len(starts) > 1 else starts[0]
    return _("The nearest free: from %(start)s.") % {"start": start}
