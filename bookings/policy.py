"""The rules of booking, judged: what of a claim breaks which, with numbers. Pure.

The one place that knows them: pages, REST, the admin and every edit ask here. Rules bind whose
booking it is, whoever acts. Administrators need no approval: who calls `needs_approval` says so.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo

from bookings.policy_runs import minutes_beside
from bookings.policy_terms import Approval, Broken, Claim, Code, Counted, Rules
from bookings.site_days import Week, day_parts, is_on_grid, week_of

__all__ = [
    "Approval",
    "Broken",
    "Claim",
    "Code",
    "Counted",
    "Ledger",
    "Left",
    "Rules",
    "grown",
    "is_late_cancel",
    "judge",
    "ledger",
    "left_of",
    "needs_approval",
    "pending_ends",
]

HOUR = 3600.0
MOST_TOLD = 7  # days, and weeks, of one claim that are told as too full


@dataclass(frozen=True, slots=True)
class Ledger:
    """What a member's other bookings use up: seconds by day and week, how many lie ahead, and which
    are held on the lane itself."""

    zone: tzinfo
    days: Mapping[date, float]
    weeks: Mapping[Week, float]
    ahead: int
    held: tuple[Counted, ...] = ()


@dataclass(frozen=True, slots=True)
class Left:
    """What is left of quotas, in hours and bookings; None: there is no such quota."""

    day_hours: float | None
    week_hours: float | None
    bookings_ahead: float | None


def ledger(
    rules: Rules, lane: int, others: Iterable[Counted], now: datetime, zone: tzinfo
) -> Ledger:
    """What `others` use up of these rules' quotas on this lane."""
    others = list(others)
    days = _by_day(_counted_for("day_hours", rules, lane, others), zone)
    weeks = _weekly(_by_day(_counted_for("week_hours", rules, lane, others), zone))
    ahead = _counted_for("bookings_ahead", rules, lane, others)
    held = tuple(each for each in others if each.is_claim and each.lane == lane)
    return Ledger(zone, days, weeks, sum(o.is_claim and o.start > now for o in ahead), held)


def grown(used: Ledger, rules: Rules, lane: int, claim: Counted, now: datetime) -> Ledger:
    """What is used up with one more claim of the member."""
    more = ledger(rules, lane, [claim], now, used.zone)
    return Ledger(
        used.zone,
        {
            day: used.days.get(day, 0.0) + more.days.get(day, 0.0)
            for day in {*used.days, *more.days}
        },
        {w: used.weeks.get(w, 0.0) + more.weeks.get(w, 0.0) for w in {*used.weeks, *more.weeks}},
        used.ahead + more.ahead,
        (*used.held, *more.held),
    )


def judge(rules: Rules, claim: Claim, used: Ledger, now: datetime) -> tuple[Broken, ...]:
    """Every rule that this claim breaks; nothing where it is fine.

    A change that only gives time back is always fine: its caller does not ask.
    """
    return (
        *_rights(rules, claim),
        *_length(rules, claim, used),
        *_times(rules, claim, used.zone, now),
        *_days(rules, claim, used),
        *_weeks(rules, claim, used),
        *_count(rules, claim, used, now),
    )


def left_of(rules: Rules, used: Ledger, day: date) -> Left:
    """What is left of the quotas on that day and in its week."""
    weekly = used.weeks.get(week_of(day), 0.0)
    return Left(
        day_hours=_left(rules.day_hours, used.days.get(day, 0.0) / HOUR),
        week_hours=_left(rules.week_hours, weekly / HOUR),
        bookings_ahead=_left(rules.bookings_ahead, used.ahead),
    )


def _left(limit: float, used: float) -> float | None:
    return max(limit - used, 0.0) if limit else None


def needs_approval(rules: Rules, claim: Claim, used: Ledger) -> bool:
    """Whether these rules make a member's booking wait for an administrator: "beyond so many hours"
    counts the member's slots that touch it."""
    match rules.approval:
        case Approval.ALWAYS:
            return True
        case Approval.GPU:
            return claim.preset is None
        case Approval.BEYOND:
            length = claim.minutes + minutes_beside(claim, used.held)
            return length > rules.approval_hours * 60
    return False


def pending_ends(rules: Rules, asked_at: datetime, start: datetime) -> datetime | None:
    """When a booking that nobody approved lapses: so long after it was asked for, and at its start
    at the latest; None: it waits until its end."""
    if not rules.pending_hours:
        return None
    return min(asked_at + timedelta(hours=rules.pending_hours), max(start, asked_at))


def is_late_cancel(rules: Rules, start: datetime, now: datetime) -> bool:
    """Whether giving it up now is too late for the time to count as unused."""
    minutes = rules.late_cancel_minutes
    return bool(minutes) and now > start - timedelta(minutes=minutes)


def _rights(rules: Rules, claim: Claim) -> Iterator[Broken]:
    if not rules.may_book:
        yield Broken(Code.NOT_ALLOWED)
    elif claim.preset is None and not rules.may_book_gpu:
        yield Broken(Code.GPU_NOT_ALLOWED)
    elif claim.preset is not None and not rules.may_load(claim.preset):
        yield Broken(Code.PRESET_NOT_ALLOWED)


def _length(rules: Rules, claim: Claim, used: Ledger) -> Iterator[Broken]:
    """Too short by itself, or too long with the member's slots that touch it."""
    if claim.minutes < rules.min_minutes and not (claim.is_start_kept and claim.is_end_kept):
        yield Broken(Code.TOO_SHORT, limit=rules.min_minutes, asked=claim.minutes)
    beside = minutes_beside(claim, used.held) if rules.max_minutes else 0.0
    if rules.max_minutes and beside + claim.minutes > rules.max_minutes:
        yield Broken(Code.TOO_LONG, rules.max_minutes, beside, claim.minutes)


def _times(rules: Rules, claim: Claim, zone: tzinfo, now: datetime) -> Iterator[Broken]:
    if _is_off_grid(rules, claim, zone):
        yield Broken(Code.OFF_GRID, limit=rules.grid_minutes)
    if claim.is_start_kept:
        return
    ahead = (claim.start - now).total_seconds()
    if ahead < rules.notice_minutes * 60:
        yield Broken(Code.TOO_SOON, limit=rules.notice_minutes, asked=ahead / 60)
    if rules.ahead_days and ahead > rules.ahead_days * 24 * HOUR:
        yield Broken(Code.TOO_FAR_AHEAD, limit=rules.ahead_days, asked=ahead / 24 / HOUR)


def _is_off_grid(rules: Rules, claim: Claim, zone: tzinfo) -> bool:
    """Whether a start or end that was chosen is. "Now" is no choice; its end is one."""
    if not rules.grid_minutes:
        return False
    chosen = []
    if not (claim.starts_now or claim.is_start_kept):
        chosen.append(claim.start)
    if not claim.is_end_kept:
        chosen.append(claim.end)
    return any(not is_on_grid(moment, rules.grid_minutes, zone) for moment in chosen)


def _days(rules: Rules, claim: Claim, used: Ledger) -> tuple[Broken, ...]:
    """Days that would be too full, of those in which it claims more than it had."""
    if not rules.day_hours:
        return ()
    had = _had("day_hours", rules, claim, used.zone)
    found = [
        _quota(Code.DAY_FULL, rules.day_hours, used.days.get(day, 0.0), seconds, day)
        for day, seconds in day_parts(claim.start, claim.end, used.zone)
        if seconds > had.get(day, 0.0)
    ]
    return tuple(each for each in found if each.used + each.asked > each.limit)[:MOST_TOLD]


def _weeks(rules: Rules, claim: Claim, used: Ledger) -> tuple[Broken, ...]:
    """The same of weeks."""
    if not rules.week_hours:
        return ()
    had = _weekly(_had("week_hours", rules, claim, used.zone))
    asked = _weekly(dict(day_parts(claim.start, claim.end, used.zone)))
    found = [
        _quota(
            Code.WEEK_FULL,
            rules.week_hours,
            used.weeks.get(week, 0.0),
            seconds,
            date.fromisocalendar(*week, 1),
        )
        for week, seconds in asked.items()
        if seconds > had.get(week, 0.0)
    ]
    return tuple(each for each in found if each.used + each.asked > each.limit)[:MOST_TOLD]


def _count(rules: Rules, claim: Claim, used: Ledger, now: datetime) -> Iterator[Broken]:
    """One more that lies ahead, where there are enough; one that was among them is none more."""
    if not rules.bookings_ahead or claim.start <= now:
        return
    before = _before("bookings_ahead", rules, claim)
    if before is not None and before.start > now:
        return
    if used.ahead + 1 > rules.bookings_ahead:
        yield Broken(Code.TOO_MANY_AHEAD, rules.bookings_ahead, used.ahead, 1)


def _quota(code: Code, limit: float, used: float, asked: float, day: date) -> Broken:
    return Broken(code, limit, used / HOUR, asked / HOUR, day)


def _had(name: str, rules: Rules, claim: Claim, zone: tzinfo) -> dict[date, float]:
    before = _before(name, rules, claim)
    return dict(day_parts(before.start, before.end, zone)) if before else {}


def _before(name: str, rules: Rules, claim: Claim) -> Counted | None:
    """The booking as it is, if this quota counts it."""
    before = claim.before
    if before is None or not before.is_claim:
        return None
    return before if _counted_for(name, rules, claim.lane, [before]) else None


def _counted_for(name: str, rules: Rules, lane: int, others: Iterable[Counted]) -> list[Counted]:
    return [each for each in others if name not in rules.of_lane or each.lane == lane]


def _by_day(counted: Iterable[Counted], zone: tzinfo) -> dict[date, float]:
    days: dict[date, float] = {}
    for each in counted:
        for day, seconds in day_parts(each.start.astimezone(UTC), each.end, zone):
            days[day] = days.get(day, 0.0) + seconds
    return days


def _weekly(days: Mapping[date, float]) -> dict[Week, float]:
    weeks: dict[Week, float] = {}
    for day, seconds in days.items():
        weeks[week_of(day)] = weeks.get(week_of(day), 0.0) + seconds
    return weeks
