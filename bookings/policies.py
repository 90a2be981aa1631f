"""The rules that hold for a member on a lane, and what is used of them, read from the tables."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Q
from django.utils import timezone

from bookings.feasible import Judge
from bookings.models import Booking, Policy
from bookings.policy import Approval, Claim, Counted, Rules, ledger
from bookings.policy_levels import Said, resolve
from bookings.policy_rows import PresetChoice
from bookings.querysets import BookingQuerySet
from bookings.situation import Closure
from bookings.states import OCCUPYING, State
from lanes.maintenance import not_over
from lanes.models import Lane

LOOKED_BACK = timedelta(days=8)  # no quota reaches further back than the week that has begun
LIMITS = (
    *("may_book", "may_book_gpu", "grid_minutes", "min_minutes", "max_minutes", "notice_minutes"),
    *("ahead_days", "day_hours", "week_hours", "bookings_ahead", "pending_hours"),
    *("no_show_minutes", "late_cancel_minutes"),
)
COUNTED = ("lane_id", "start", "end", "original_end", "lapse", "state")


@dataclass(frozen=True, slots=True)
class Standing:
    """A member before the rules of a lane at a moment."""

    owner: User
    lane: Lane
    judge: Judge
    closures: tuple[Closure, ...] = ()  # maintenance in its way, by start; none for administrators

    @property
    def rules(self) -> Rules:
        """What holds."""
        return self.judge.rules

    @property
    def now(self) -> datetime:
        """The moment."""
        return self.judge.now


def standing_of(
    owner: User, lane: Lane, now: datetime, *, but: int | Collection[int] | None = None
) -> Standing:
    """What holds for this member there, and what bookings other than `but` use of it.

    Two queries without rules; one more for listed presets, one more for quotas and lengths. For a
    decision that is to hold, under the member's lock.
    """
    rules = rules_for(owner, lane)
    others = counted(owner, now, but=but) if rules.counts_others else []
    zone = timezone.get_default_timezone()
    judge = Judge(rules, ledger(rules, lane.pk, others, now, zone), now)
    closed = () if owner.is_staff else not_over(now, {lane.pk})
    return Standing(owner, lane, judge, tuple(Closure(c.start, c.end, c.reason) for c in closed))


@dataclass(frozen=True, slots=True)
class Rulebook:
    """All rows at once, to judge many bookings."""

    rows: tuple[Policy, ...]

    @classmethod
    def read(cls) -> "Rulebook":
        """As they are now; two queries."""
        return cls(
            tuple(Policy.objects.select_related("lane", "group").prefetch_related("presets"))
        )

    def rules(self, owner: User, lane: Lane) -> Rules:
        """What holds for this member on this lane. Give it an owner with groups prefetched."""
        return rules_of(self.rows_for(owner, lane), lane)

    def rows_for(self, owner: User, lane: Lane) -> list[Policy]:
        """The rows that apply, for an owner with groups prefetched."""
        groups = {None, *(group.pk for group in owner.groups.all())}
        lanes = {None, lane.pk}
        return [row for row in self.rows if row.lane_id in lanes and row.group_id in groups]


def rules_for(owner: User, lane: Lane) -> Rules:
    """What holds for this member on this lane."""
    rows = Policy.objects.filter(
        Q(lane=None) | Q(lane=lane), Q(group=None) | Q(group__in=owner.groups.all())
    )
    return rules_of(rows, lane)


def rules_of(rows: Iterable[Policy], lane: Lane) -> Rules:
    """What these rows, all of which apply, make of the lane."""
    said = [said_by(row) for row in rows]
    if lane.needs_approval:  # as if a row of the lane said so, unless one says something milder
        said.append(Said(is_of_lane=True, approval=Approval.ALWAYS))
    return resolve(said)


def said_by(row: Policy) -> Said:
    """What this row says. A query where it lists presets."""
    is_listed = row.preset_choice == PresetChoice.LISTED
    listed = frozenset(each.pk for each in row.presets.all()) if is_listed else frozenset()
    return Said(
        is_of_lane=row.lane_id is not None,
        is_of_group=row.group_id is not None,
        is_any_preset=not is_listed if row.preset_choice else None,
        presets=listed,
        approval=Approval(row.approval) if row.approval else None,
        approval_hours=row.approval_hours or 0.0,
        **{name: getattr(row, name) for name in LIMITS},
    )


def counted(
    owner: User, now: datetime, *, but: int | Collection[int] | None = None
) -> list[Counted]:
    """The member's bookings that quotas count, from last week on."""
    found = _that_count(now).others(but).filter(owner=owner)
    return [_counted(row) for row in found.values_list(*COUNTED)]


def counted_of_all(owners: Collection[int], now: datetime) -> dict[int, dict[int, Counted]]:
    """The same of several members: member -> booking -> what counts. One query."""
    found: dict[int, dict[int, Counted]] = {owner: {} for owner in owners}
    rows = _that_count(now).filter(owner__in=owners)
    for pk, owner, *row in rows.values_list("pk", "owner_id", *COUNTED):
        found[owner][pk] = _counted(row)
    return found


def _that_count(now: datetime) -> BookingQuerySet:
    is_kept = Q(state__in=OCCUPYING) & ~Q(state=State.PENDING, end__lte=now)
    return Booking.objects.filter(is_kept | ~Q(lapse=""), original_end__gt=now - LOOKED_BACK)


def _counted(row: Sequence[Any]) -> Counted:
    lane, start, end, original_end, lapse, state = row
    return Counted(
        lane=lane,
        start=start.astimezone(UTC),
        end=original_end if lapse else end,
        is_claim=state in OCCUPYING and not lapse,
    )


def claim_of(booking: Booking, now: datetime, *, is_kept: bool = False) -> Claim:
    """A booking as a claim. `is_kept`: it was given up, so that its times are not chosen anew, and
    count towards nothing."""
    kept = Counted(0, booking.start, booking.end, is_claim=False)
    return Claim(
        lane=booking.lane_id,
        start=booking.start,
        end=booking.end,
        preset=booking.preset_id,
        starts_now=booking.start == now,
        before=kept if is_kept else None,
    )
