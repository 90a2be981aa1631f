"""What stands against each occurrence of a series, all of them counted together."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.utils.translation import gettext as _

from bookings.availability import held_words, under_maintenance
from bookings.models import Booking, State
from bookings.names import names_for
from bookings.policies import Standing
from bookings.policy import Claim, Counted, grown
from bookings.policy_words import told
from bookings.recurrence import Occurrence
from bookings.refusals import Hold, Interval, RulesBroken, SlotTaken
from bookings.rules import Wish, time_objection
from lanes.refusals import Refusal
from lanes.telling import moment


@dataclass(frozen=True, slots=True)
class Judged:
    """An occurrence, and what stands against it; `is_asked`: an administrator must approve it."""

    occurrence: Occurrence
    refusal: Refusal | None = None
    is_asked: bool = False


@dataclass(frozen=True, slots=True)
class _Held:
    """Time that is taken: by a booking of somebody, or (no name) by the series itself; `until`:
    held for the very member by the waitlist."""

    interval: Interval
    who: str = ""
    until: datetime | None = None


def judged(
    standing: Standing, wish: Wish, found: Sequence[Occurrence], but: Collection[int] = ()
) -> tuple[Judged, ...]:
    """Each with what stands against it: times, rules, others than `but`. What is fine counts for
    those after it. One query, however many; one more where only groups share names."""
    held = _held(standing, wish, found, but)
    answers = []
    for occurrence in found:
        each = replace(wish, start=occurrence.start, end=occurrence.end)
        claim = Claim(wish.lane.pk, each.start, each.end, wish.preset.pk if wish.preset else None)
        refusal = (
            time_objection(each, standing.now)
            or _broken(standing, claim)
            or under_maintenance(standing, claim)
            or _taken(standing, claim, held)
        )
        is_asked = not standing.owner.is_staff and standing.judge.needs_approval(claim)
        if refusal is None:
            held.append(_Held(Interval(claim.start, claim.end)))
            standing = _with(standing, claim)
        answers.append(Judged(occurrence, refusal, is_asked))
    return tuple(answers)


def _held(
    standing: Standing, wish: Wish, found: Sequence[Occurrence], but: Collection[int]
) -> list[_Held]:
    names, me, now = names_for(standing.owner), standing.owner.username, standing.now
    first, last = min(each.start for each in found), max(each.end for each in found)
    rows = Booking.objects.others(but).in_the_way(wish.lane.pk, first, last)
    columns = ("start", "end", "pk", "owner__username", "state", "held_until")
    return [
        _Held(
            Interval(start, end, pk),
            names.of(who),
            until if who == me and state == State.HELD and until and until > now else None,
        )
        for start, end, pk, who, state, until in rows.values_list(*columns)
    ]


def _with(standing: Standing, claim: Claim) -> Standing:
    """As if this claim were booked."""
    rules, judge = standing.rules, standing.judge
    if not rules.counts_others:
        return standing
    counted = Counted(claim.lane, claim.start, claim.end)
    used = grown(judge.used, rules, claim.lane, counted, standing.now)
    return replace(standing, judge=replace(judge, used=used))


def _broken(standing: Standing, claim: Claim) -> RulesBroken | None:
    rules = tuple(told(each, standing, claim) for each in standing.judge.broken(claim))
    if not rules:
        return None
    return RulesBroken("rules_broken", " ".join(each.words for each in rules), broken=rules)


def _taken(standing: Standing, claim: Claim, held: Iterable[_Held]) -> SlotTaken | None:
    found = [h for h in held if h.interval.start < claim.end and claim.start < h.interval.end]
    if not found:
        return None
    own = next((h for h in found if h.until), None)
    hold = Hold(own.interval, own.until) if own and own.until else None
    others = [h for h in found if h is not own]
    words = [_taken_words(others)] if others else []
    if hold:
        words.append(held_words(standing, hold))
    conflicts = tuple(h.interval for h in found)
    return SlotTaken("slot_taken", " ".join(words), conflicts=conflicts, hold=hold)


def _taken_words(found: Sequence[_Held]) -> str:
    first = found[0]
    values = {
        "who": first.who,
        "start": moment(first.interval.start),
        "end": moment(first.interval.end),
    }
    if not first.who:
        return _("Another one of this series lasts from %(start)s to %(end)s.") % values
    return _("Taken by %(who)s from %(start)s to %(end)s.") % values
