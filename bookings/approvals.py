"""The bookings that wait for an administrator, with what helps to decide about them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from bookings.feasible import Judge
from bookings.models import Booking, Policy, State
from bookings.policies import Rulebook, Standing, claim_of, counted_of_all, said_by
from bookings.policy import Approval, Counted, Rules, ledger, pending_ends
from bookings.policy_levels import Said, approval_from
from bookings.policy_runs import minutes_beside
from bookings.policy_words import left_parts, length_words


@dataclass(frozen=True, slots=True)
class Waiting:
    """One of them. `reason`: why it waits, in words; `policy`: the row of rules that says so, None:
    the lane's own setting. `others`: what else its owner holds that is not over."""

    booking: Booking
    reason: str
    policy: int | None
    since: datetime
    expires_at: datetime
    others: int
    other_time: str
    left: str  # of quotas, this one counted; empty without quotas


def pending(now: datetime) -> QuerySet[Booking]:
    """Those that wait, by start."""
    found = Booking.objects.filter(state=State.PENDING, end__gt=now).order_by("start", "pk")
    return found.select_related("lane", "preset", "owner").prefetch_related("owner__groups")


def queue(waiting: Iterable[Booking], now: datetime) -> list[Waiting]:
    """These of `pending` with what helps to decide; five queries at most, however many."""
    found = list(waiting)
    if not found:
        return []
    book = Rulebook.read()
    counted = counted_of_all({booking.owner_id for booking in found}, now)
    return [_waiting(booking, book, counted[booking.owner_id], now) for booking in found]


def _waiting(
    booking: Booking, book: Rulebook, counted: Mapping[int, Counted], now: datetime
) -> Waiting:
    rules = book.rules(booking.owner, booking.lane)
    since = booking.asked_at or booking.created_at
    others = [each for pk, each in counted.items() if pk != booking.pk]
    held = [each for each in others if each.is_claim and each.end > now]
    row = _source(book.rows_for(booking.owner, booking.lane), booking)
    return Waiting(
        booking=booking,
        reason=_reason(rules, row, booking, _judge(rules, booking, others, now)),
        policy=row.pk if row else None,
        since=since,
        expires_at=pending_ends(rules, since, booking.start) or booking.end,
        others=len(held),
        other_time=length_words(sum(_minutes(each, now) for each in held)),
        left=_left(rules, booking, counted, now),
    )


def _minutes(each: Counted, now: datetime) -> float:
    return (each.end - max(each.start, now)) / timedelta(minutes=1)


def _left(rules: Rules, booking: Booking, counted: Mapping[int, Counted], now: datetime) -> str:
    if not rules.has_quota:
        return ""
    standing = Standing(booking.owner, booking.lane, _judge(rules, booking, counted.values(), now))
    return ", ".join(left_parts(standing, booking.start))


def _judge(rules: Rules, booking: Booking, others: Iterable[Counted], now: datetime) -> Judge:
    zone = timezone.get_default_timezone()
    return Judge(rules, ledger(rules, booking.lane_id, others, now, zone), now)


def _source(rows: list[Policy], booking: Booking) -> Policy | None:
    """The row that says which bookings need approval; None: none does, or the lane's setting."""
    said = [said_by(row) for row in rows]
    own = [Said(is_of_lane=True, approval=Approval.ALWAYS)] if booking.lane.needs_approval else []
    chosen = approval_from([*said, *own])
    return next((row for row, each in zip(rows, said, strict=True) if each is chosen), None)


def _reason(rules: Rules, row: Policy | None, booking: Booking, judge: Judge) -> str:
    claim = claim_of(booking, judge.now)
    if not judge.needs_approval(claim):
        return _("No rule asks for it any more.")
    values = {
        "source": _source_words(row, booking),
        "limit": length_words(rules.approval_hours * 60),
    }
    words = {
        Approval.ALWAYS: _("Every booking needs it: %(source)s."),
        Approval.GPU: _("Whole GPUs need it: %(source)s."),
        Approval.BEYOND: _("It is longer than %(limit)s: %(source)s."),
    }
    if minutes_beside(claim, judge.used.held) and rules.approval is Approval.BEYOND:
        beside = _(
            "With the member's slots that touch it, it is longer than %(limit)s: %(source)s."
        )
        return beside % values
    return words[rules.approval] % values


def _source_words(row: Policy | None, booking: Booking) -> str:
    if row is None:
        return _("a setting of %(lane)s") % {"lane": booking.lane.name}
    names = {
        "lane": row.lane.name if row.lane else "",
        "group": row.group.name if row.group else "",
    }
    if row.lane and row.group:
        return _("rules of %(lane)s for %(group)s") % names
    if row.lane:
        return _("rules of %(lane)s") % names
    return _("rules for %(group)s") % names if row.group else _("rules for everybody")
