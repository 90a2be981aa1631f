"""Which rules hold where several say something: per field, the most specific that says it. Pure.

Levels: a lane for a group, a lane, a group, everybody everywhere. Of several at one level, which
are a member's several groups, the most generous wins.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bookings.policy import Approval, Rules


@dataclass(frozen=True, slots=True)
class Said:
    """What one row says; None: nothing. `presets`: only these, or, with `is_any_preset`, all."""

    is_of_lane: bool = False
    is_of_group: bool = False
    may_book: bool | None = None
    may_book_gpu: bool | None = None
    is_any_preset: bool | None = None
    presets: frozenset[int] = frozenset()
    grid_minutes: int | None = None
    min_minutes: int | None = None
    max_minutes: int | None = None
    notice_minutes: int | None = None
    ahead_days: int | None = None
    day_hours: float | None = None
    week_hours: float | None = None
    bookings_ahead: int | None = None
    approval: Approval | None = None
    approval_hours: float = 0.0
    pending_hours: float | None = None
    no_show_minutes: int | None = None
    late_cancel_minutes: int | None = None

    @property
    def level(self) -> int:
        """How specific it is."""
        return 2 * self.is_of_lane + self.is_of_group


def _roomiest(values: Iterable[float]) -> float:
    """Of limits the highest; 0 is none at all."""
    return max(values, key=lambda value: value or float("inf"))


# How to choose among those of one level.
_GENEROUS: dict[str, Callable[[Iterable[Any]], Any]] = {
    "may_book": any,
    "may_book_gpu": any,
    "grid_minutes": min,
    "min_minutes": min,
    "notice_minutes": min,
    "late_cancel_minutes": min,
    "max_minutes": _roomiest,
    "ahead_days": _roomiest,
    "day_hours": _roomiest,
    "week_hours": _roomiest,
    "bookings_ahead": _roomiest,
    "pending_hours": _roomiest,
    "no_show_minutes": _roomiest,
}
_QUOTAS = ("day_hours", "week_hours", "bookings_ahead")
_STRICTNESS = list(Approval)


def resolve(rows: Sequence[Said]) -> Rules:
    """The rules that these rows make together; all of them apply to the member and the lane."""
    found: dict[str, Any] = {}
    of_lane = set()
    for name, generous in _GENEROUS.items():
        sayers = _most_specific(rows, name)
        if sayers:
            found[name] = generous([getattr(row, name) for row in sayers])
            if name in _QUOTAS and sayers[0].is_of_lane:
                of_lane.add(name)
    return Rules(**found, **_approval(rows), presets=_presets(rows), of_lane=frozenset(of_lane))


def _most_specific(rows: Sequence[Said], name: str) -> list[Said]:
    """Those that say it, of the most specific level that does."""
    sayers = [row for row in rows if getattr(row, name) is not None]
    level = max((row.level for row in sayers), default=0)
    return [row for row in sayers if row.level == level]


def approval_from(rows: Sequence[Said]) -> Said | None:
    """The row that says which bookings need approval; None: no row does."""
    said = [
        (_STRICTNESS.index(row.approval), -row.approval_hours, row)
        for row in _most_specific(rows, "approval")
        if row.approval is not None
    ]
    return min(said, key=lambda each: each[:2])[2] if said else None


def _approval(rows: Sequence[Said]) -> dict[str, Any]:
    mildest = approval_from(rows)
    if mildest is None:
        return {}
    return {"approval": mildest.approval, "approval_hours": mildest.approval_hours}


def _presets(rows: Sequence[Said]) -> frozenset[int] | None:
    sayers = _most_specific(rows, "is_any_preset")
    if not sayers or any(row.is_any_preset for row in sayers):
        return None
    return frozenset().union(*(row.presets for row in sayers))
