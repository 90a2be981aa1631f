"""The nearest slots that are free and break no rule. Pure, and of bounded work."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from bookings.interval import Interval
from bookings.policy import Broken, Claim, Code, Ledger, Rules, judge, needs_approval
from bookings.policy_runs import BREAK
from bookings.site_days import grid_after, grid_before
from bookings.wall_clock import day_start

MINUTE = timedelta(minutes=1)
MOST_OFFERED = 3
MOST_TRIED = 200  # starts that are judged for one answer
GAPS_TRIED = 40
DAYS_BACK, DAYS_ON = 7, 15  # whose midnights, and same time of day, are tried
HOPELESS = {Code.NOT_ALLOWED, Code.GPU_NOT_ALLOWED, Code.PRESET_NOT_ALLOWED}
QUOTAS = {Code.DAY_FULL, Code.WEEK_FULL}


@dataclass(frozen=True, slots=True)
class Market:
    """What is known of a lane's time: `busy` is disjoint and by start, and nothing else is held in
    [opens, closes)."""

    busy: Sequence[Interval]
    opens: datetime
    closes: datetime

    def gaps(self, length: timedelta) -> Iterator[Interval]:
        """Free time of at least this length."""
        begins = self.opens
        for held in [*self.busy, Interval(self.closes, self.closes)]:
            if held.start - begins >= length:
                yield Interval(begins, held.start)
            begins = max(begins, held.end)


@dataclass(frozen=True, slots=True)
class Judge:
    """Rules, what is used of them, and the moment."""

    rules: Rules
    used: Ledger
    now: datetime

    def broken(self, claim: Claim) -> tuple[Broken, ...]:
        """What this claim breaks."""
        return judge(self.rules, claim, self.used, self.now)

    def needs_approval(self, claim: Claim) -> bool:
        """Whether an administrator must approve it, if it is not an administrator's."""
        return needs_approval(self.rules, claim, self.used)


def nearest_slots(judge: Judge, claim: Claim, market: Market) -> tuple[Interval, ...]:
    """Up to three free slots near the claim that break no rule, by start; none overlap.

    As long as the claim, or as near to that as lengths and grid allow. Where a quota is what stands
    in its way, first what is left of it at the same start.
    """
    broken = judge.broken(claim)
    if any(each.code in HOPELESS for each in broken):
        return ()
    found: list[Interval] = []
    for slot in [*_shortened(judge, claim, broken), *_candidates(judge, claim, market)]:
        if len(found) == MOST_OFFERED:
            break
        if _is_apart(slot, found) and _is_open(slot, market) and _is_fine(judge, claim, slot):
            found.append(slot)
    return tuple(sorted(found, key=lambda slot: slot.start))


def has_slot(judge: Judge, lane: int, free: Interval, length: timedelta) -> bool:
    """Whether these rules let one book a slot in free time of a lane: of this length, or of what
    lengths and quotas make of it."""
    rules = judge.rules
    preset: int | None = next(iter(rules.presets), None) if rules.presets is not None else 0
    claim = Claim(lane, free.start, free.start + length, preset)
    return bool(nearest_slots(judge, claim, Market((), free.start, free.end)))


def _shortened(judge: Judge, claim: Claim, broken: Sequence[Broken]) -> Iterator[Interval]:
    """The same start with what the quotas, and slots that touch it, leave of it."""
    over = max((_hours_over(each) for each in broken), default=0.0)
    length = fitting_length(judge.rules, claim.end - claim.start - timedelta(hours=over))
    if over and timedelta() < length < claim.end - claim.start:
        for start in _on_grid(judge, claim, claim.start):
            yield _slot(judge, start, length)


def _hours_over(broken: Broken) -> float:
    """By how much it would have to be shorter; 0 where that is no help."""
    if broken.code in QUOTAS:
        return broken.over
    return broken.over / 60 if broken.code is Code.TOO_LONG and broken.used else 0.0


def _candidates(judge: Judge, claim: Claim, market: Market) -> list[Interval]:
    """Slots worth a judgement, the nearest first."""
    length = fitting_length(judge.rules, _wanted_length(claim))
    if length <= timedelta():
        return []
    earliest = judge.now + timedelta(minutes=judge.rules.notice_minutes)
    gaps = list(market.gaps(length))
    starts = {
        start
        for point in [earliest, *_points(judge, claim, gaps, length)]
        for start in _on_grid(judge, claim, point)
        if any(gap.start <= start and start + length <= gap.end for gap in gaps)
    }
    nearest = sorted(starts, key=lambda start: (abs(start - claim.start), start))[:MOST_TRIED]
    return [_slot(judge, start, length) for start in nearest]


def _points(
    judge: Judge, claim: Claim, gaps: Sequence[Interval], length: timedelta
) -> Iterator[datetime]:
    """Where a slot may begin to be possible: at the ends of gaps, on other days, as days begin."""
    start = _up(claim.start) if claim.starts_now else claim.start
    yield from (start - length, claim.start, start + length)
    near = sorted(gaps, key=lambda gap: _distance(gap, claim.start))[:GAPS_TRIED]
    for gap in near:
        yield gap.start
        yield gap.end - length
    for own in sorted(judge.used.held, key=lambda each: abs(each.start - claim.start))[:GAPS_TRIED]:
        yield own.end + BREAK
        yield own.start - BREAK - length
    zone = judge.used.zone
    local = start.astimezone(zone)
    for days in range(-DAYS_BACK, DAYS_ON):
        other = local + timedelta(days=days)  # the same time on its clock
        yield other.astimezone(judge.now.tzinfo)
        if judge.rules.day_hours or judge.rules.week_hours:
            yield day_start(other.date(), zone)
            yield day_start(other.date(), zone) - length


def _wanted_length(claim: Claim) -> timedelta:
    """A claim that begins now, within a minute, ends on a whole one: it is up to a minute shorter
    than what was wished for, and what is offered later is not."""
    length = claim.end - claim.start
    return -(-length // MINUTE) * MINUTE if claim.starts_now else length


def _up(moment: datetime) -> datetime:
    """The next whole minute."""
    return (moment + MINUTE - timedelta.resolution).replace(second=0, microsecond=0)


def _on_grid(judge: Judge, claim: Claim, point: datetime) -> tuple[datetime, ...]:
    """The point itself without a grid, and for a claim that begins now; else its neighbours."""
    minutes = judge.rules.grid_minutes
    if not minutes or (claim.starts_now and point == claim.start):
        return (point,)
    zone = judge.used.zone
    return grid_before(point, minutes, zone), grid_after(point, minutes, zone)


def _slot(judge: Judge, start: datetime, length: timedelta) -> Interval:
    is_now = start == judge.now
    end = start + length
    if is_now and judge.rules.grid_minutes:
        end = grid_before(end, judge.rules.grid_minutes, judge.used.zone)
    return Interval(start, end, is_now=is_now)


def fitting_length(rules: Rules, wanted: timedelta) -> timedelta:
    """The length nearest to the wanted one that is on the grid, long and short enough; nothing if
    there is none."""
    shortest = timedelta(minutes=rules.min_minutes)
    longest = timedelta(minutes=rules.max_minutes) if rules.max_minutes else timedelta.max
    length = min(max(wanted, shortest), longest)
    if not rules.grid_minutes:
        return length if length >= shortest else timedelta()
    step = timedelta(minutes=rules.grid_minutes)
    up = -(-length // step) * step
    return up if up <= longest else length // step * step


def _is_fine(judge: Judge, claim: Claim, slot: Interval) -> bool:
    if slot.start < judge.now or slot.start >= slot.end:
        return False
    if slot.is_now and claim.before is not None:  # a move names its start, which will have passed
        return False
    return not judge.broken(replace(claim, start=slot.start, end=slot.end, starts_now=slot.is_now))


def _is_open(slot: Interval, market: Market) -> bool:
    if slot.start < market.opens or slot.end > market.closes:
        return False
    return _is_apart(slot, market.busy)


def _is_apart(slot: Interval, others: Sequence[Interval]) -> bool:
    return all(slot.end <= other.start or other.end <= slot.start for other in others)


def _distance(gap: Interval, moment: datetime) -> timedelta:
    return max(gap.start - moment, moment - gap.end, timedelta())
