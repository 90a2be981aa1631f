"""A naive model of bookings: a list in memory, minutes for times, every rule spelled out.

Written from the rules and not from the services, to be compared with them step by step.
"""

from dataclasses import dataclass, replace

HORIZON = 366 * 24 * 60
GPU = ""  # the "preset" of a booking of the whole GPU


@dataclass(frozen=True)
class Row:
    """One booking, in minutes after noon."""

    owner: str
    lane: str
    preset: str
    start: int
    end: int
    original_end: int
    state: str
    confirmed: int | None
    released: int | None = None


class NaiveBookings:
    """Every method answers "" when it did what was asked, or the code of the refusal."""

    def __init__(self, lanes_that_ask: set[str], staff: set[str]) -> None:
        self.rows: dict[int, Row] = {}
        self.now = 0
        self.asks = lanes_that_ask
        self.staff = staff
        self.closed: set[str] = set()

    def clash(self, lane: str, start: int, end: int, but: int = -1) -> bool:
        """Whether any minute of [start, end) is somebody else's."""
        return any(
            minute in range(start, end)
            for number, row in self.rows.items()
            if number != but and row.lane == lane and row.state in {"pending", "confirmed"}
            for minute in range(row.start, row.end)
        )

    def bad_times(self, start: int, end: int, *, is_kept: bool = False) -> str:
        """Why these cannot be booked now."""
        if end <= self.now:
            return "in_the_past"
        if end <= start:
            return "ends_before_start"
        if start < self.now and not is_kept:
            return "in_the_past"
        return "too_far" if end > self.now + HORIZON else ""

    def book(
        self, number: int, owner: str, lane: str, preset: str, start: int | None, end: int
    ) -> str:
        """Book; without a start from now."""
        begin = self.now if start is None else start
        if code := self.bad_times(begin, end):
            return code
        if lane in self.closed:
            return "lane_disabled"
        if self.clash(lane, begin, end):
            return "slot_taken"
        asks = lane in self.asks and owner not in self.staff
        state, confirmed = ("pending", None) if asks else ("confirmed", self.now)
        self.rows[number] = Row(owner, lane, preset, begin, end, end, state, confirmed)
        return ""

    def is_in_progress(self, row: Row) -> bool:
        """Confirmed, begun, not over."""
        if row.state != "confirmed" or row.confirmed is None:
            return False
        return max(row.start, row.confirmed) <= self.now < row.end

    def may_not_change(self, number: int, actor: str) -> str:
        """Why this person cannot change it at all."""
        row = self.rows[number]
        if actor != row.owner and actor not in self.staff:
            return "not_yours"
        if row.state in {"cancelled", "rejected"}:
            return "wrong_state"
        return "too_late" if self.now >= row.end else ""

    def move(self, number: int, actor: str, lane: str, preset: str, start: int, end: int) -> str:
        """Move to another lane, preset and time."""
        if code := self.may_not_change(number, actor):
            return code
        row = self.rows[number]
        must_ask = self.must_ask(row, actor, lane, preset, start, end)
        if self.is_in_progress(row):
            if start != row.start or lane != row.lane:
                return "wrong_state"
            if must_ask:
                return "needs_approval"
        return self.put(number, lane, preset, start, end, must_ask=must_ask)

    def extend(self, number: int, actor: str, end: int) -> str:
        """A later end."""
        if code := self.may_not_change(number, actor):
            return code
        row = self.rows[number]
        if end <= row.end:
            return "not_later"
        if self.must_ask(row, actor, row.lane, row.preset, row.start, end):
            return "needs_approval"
        return self.put(number, row.lane, row.preset, row.start, end, must_ask=False)

    def is_less(self, row: Row, lane: str, preset: str, start: int, end: int) -> bool:
        """Whether it is a part of what the booking holds."""
        is_same = (lane, preset) == (row.lane, row.preset)
        return is_same and row.start <= start and end <= row.end

    def must_ask(self, row: Row, actor: str, lane: str, preset: str, start: int, end: int) -> bool:
        """A member's confirmed booking wants more than it has, on a lane that asks."""
        is_more = not self.is_less(row, lane, preset, start, end)
        is_member = actor not in self.staff
        return row.state == "confirmed" and lane in self.asks and is_member and is_more

    def put(
        self, number: int, lane: str, preset: str, start: int, end: int, *, must_ask: bool
    ) -> str:
        """Change it, if it fits."""
        row = self.rows[number]
        if code := self.bad_times(start, end, is_kept=start == row.start):
            return code
        if not self.is_less(row, lane, preset, start, end) and lane in self.closed:
            return "lane_disabled"
        if self.clash(lane, start, end, but=number):
            return "slot_taken"
        state, confirmed = row.state, row.confirmed
        if must_ask:
            state, confirmed = "pending", None
        elif state == "pending" and lane not in self.asks:
            state, confirmed = "confirmed", self.now
        self.rows[number] = Row(row.owner, lane, preset, start, end, end, state, confirmed)
        return ""

    def release(self, number: int, actor: str) -> str:
        """Give the rest back."""
        if code := self.may_not_change(number, actor):
            return code
        row = self.rows[number]
        if self.is_in_progress(row) and row.start < self.now:
            self.rows[number] = replace(row, end=self.now, released=self.now)
        else:
            self.rows[number] = replace(row, state="cancelled")
        return ""

    def cancel(self, number: int, actor: str) -> str:
        """Give up what has not begun."""
        if code := self.may_not_change(number, actor):
            return code
        if self.is_in_progress(self.rows[number]):
            return "wrong_state"
        self.rows[number] = replace(self.rows[number], state="cancelled")
        return ""

    def may_not_decide(self, number: int, actor: str) -> str:
        """Why this person cannot decide about it."""
        if actor not in self.staff:
            return "not_administrator"
        if code := self.may_not_change(number, actor):
            return code
        return "" if self.rows[number].state == "pending" else "wrong_state"

    def reject(self, number: int, actor: str) -> str:
        """Turn it down."""
        if code := self.may_not_decide(number, actor):
            return code
        self.rows[number] = replace(self.rows[number], state="rejected")
        return ""

    def approve(self, number: int, actor: str) -> str:
        """Confirm it from now."""
        if code := self.may_not_decide(number, actor):
            return code
        row = self.rows[number]
        if row.lane in self.closed:
            return "lane_disabled"
        self.rows[number] = replace(row, state="confirmed", confirmed=self.now)
        return ""

    def restore(self, number: int, actor: str) -> str:
        """Bring back what is left."""
        row = self.rows[number]
        if actor != row.owner and actor not in self.staff:
            return "not_yours"
        if row.state in {"pending", "confirmed"}:
            return "wrong_state"
        if row.state == "rejected" and actor not in self.staff:
            return "not_administrator"
        if self.now >= row.end:
            return "too_late"
        start = max(row.start, self.now)
        if row.lane in self.closed:
            return "lane_disabled"
        if self.clash(row.lane, start, row.end, but=number):
            return "slot_taken"
        asks = row.lane in self.asks and actor not in self.staff
        state, confirmed = ("pending", None) if asks else ("confirmed", self.now)
        self.rows[number] = replace(row, start=start, state=state, confirmed=confirmed)
        return ""
