"""What people are to be told of a booking as it is now. Pure.

Nothing is remembered but what a booking was when it was last told of (`Was`), and the keys of what
a person was told: asked again at any time, after any crash, the answer is what is true then.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

OCCUPYING = ("pending", "confirmed", "held")
GIVEN_UP = frozenset(("rejected", "cancelled", "expired"))
OF_CHANGES = GIVEN_UP | {"confirmed", "changed", "decision_needed", "approved", "released"}
OF_BOOKINGS = OF_CHANGES | {"offered", "warm", "starting", "ending"}
OVER_ANYWAY = timedelta(minutes=15)  # so long after its end nobody is told of a slot any more


@dataclass(frozen=True, slots=True)
class Was:
    """What a booking was when it was last told of."""

    lane: int
    preset: int | None
    start: datetime
    end: datetime
    state: str
    sequence: int
    owner: int | None = None  # not known of what was told of before it was kept


@dataclass(frozen=True, slots=True)
class Facts:
    """A booking now, and what is around it. `is_warm`: its model is loaded for it; `goes_on`: the
    same member has the next slot on the lane with the same target."""

    booking: int
    lane: int
    preset: int | None
    start: datetime
    end: datetime
    state: str
    confirmed_at: datetime | None = None
    released_at: datetime | None = None
    owner: int | None = None
    is_decided: bool = False
    is_warm: bool = False
    goes_on: bool = False
    reminder: timedelta = timedelta(minutes=10)
    was: Was | None = None

    @property
    def sequence(self) -> int:
        """SEQUENCE of the calendar: rises with each change that people were told of."""
        if self.was is None:
            return 0
        return self.was.sequence + (1 if self.is_changed else 0)

    @property
    def is_changed(self) -> bool:
        """Whether it is other than it was told."""
        return self.is_other or self.has_new_owner

    @property
    def is_other(self) -> bool:
        """Whether the slot is, whoever has it."""
        was = self.was
        now = (self.lane, self.preset, self.start, self.end, self.state)
        return was is None or now != (was.lane, was.preset, was.start, was.end, was.state)

    @property
    def has_new_owner(self) -> bool:
        """Whether it was transferred, which both are told by whoever did it."""
        return self.was is not None and self.was.owner not in {None, self.owner}

    @property
    def active_from(self) -> datetime:
        """From when it is in progress, once it is confirmed."""
        return max(self.start, self.confirmed_at) if self.confirmed_at else self.start


@dataclass(frozen=True, slots=True)
class Due:
    """One thing to tell. `key`: the event, the booking, and the time that it came up."""

    event: str
    key: str


def due(facts: Facts, now: datetime) -> tuple[Due, ...]:
    """All that is to be told; who was told a key before is not told again."""
    return tuple(_due(facts, now))


def still_holds(
    event: str, key: str, facts: Facts, now: datetime, reader: int | None = None
) -> bool:
    """Whether what was to be told this person is still so, right before it is sent."""
    if event not in OF_BOOKINGS:
        return True
    if event != "decision_needed" and facts.owner != reader:
        return False  # it was given to somebody else meanwhile
    if event in {"warm", "starting", "ending"}:
        return any(each.key == key for each in _of_the_time(facts, now))
    is_newest = not facts.is_changed and key == _key(event, facts, facts.sequence)
    needed = {"decision_needed": "pending", "offered": "held"}
    return is_newest and facts.state == needed.get(event, facts.state)


def freed(facts: Facts, now: datetime) -> tuple[int, datetime, datetime] | None:
    """The lane and the time that a change has given back: the longest piece, None without one."""
    was = facts.was
    if was is None or was.state not in OCCUPYING:
        return None
    is_kept = facts.state in OCCUPYING and facts.lane == was.lane
    start = max(was.start, now)
    pieces = [(start, was.end)]
    if is_kept:
        pieces = [(start, min(was.end, facts.start)), (max(start, facts.end), was.end)]
    longest = max(pieces, key=lambda piece: piece[1] - piece[0])
    return (was.lane, *longest) if longest[1] > longest[0] else None


def _due(facts: Facts, now: datetime) -> Iterator[Due]:
    if now >= facts.end + OVER_ANYWAY:
        return
    for event in _changes(facts) if facts.is_changed else ():
        yield Due(event, _key(event, facts, facts.sequence))
    yield from _of_the_time(facts, now)


def _changes(facts: Facts) -> Iterator[str]:
    """What has happened to it since it was last told of."""
    if facts.state == "pending":
        yield "decision_needed"
        if facts.was is not None and facts.was.state != "held" and facts.is_other:
            yield "changed"  # its owner, too, is to know that it waits
    elif event := _change(facts):
        yield event


def _change(facts: Facts) -> str | None:
    """The same of one that waits for nobody's approval."""
    was = facts.was
    if facts.state == "held":
        return "offered"
    if facts.state == "confirmed":
        return _confirmed(facts, was)
    # A hold that nobody confirmed, or declined, was no booking: its end is no news.
    is_news = was is not None and was.state in {"pending", "confirmed"}
    is_news = is_news or facts.state == "rejected"  # so soon that nobody looked before
    return facts.state if is_news and facts.state in GIVEN_UP else None


def _confirmed(facts: Facts, was: Was | None) -> str | None:
    if was is not None and was.state == "confirmed":
        if not facts.is_other:
            return None
        is_released = facts.released_at is not None and facts.end == facts.released_at
        return "released" if is_released else "changed"
    # It may have been decided so soon that nobody looked while it was pending.
    could_be_asked = was is None or was.state in {"held", "pending"}
    return "approved" if facts.is_decided and could_be_asked else "confirmed"


def _of_the_time(facts: Facts, now: datetime) -> Iterator[Due]:
    """What is due because of the time, or of what the lane runs."""
    if facts.state != "confirmed" or now >= facts.end:
        return
    begins_at, ends_at = facts.start - facts.reminder, facts.end - facts.reminder
    if begins_at <= now < facts.start and _before(facts.confirmed_at, begins_at):
        yield Due("starting", _key("starting", facts, facts.start))
    is_near_end = ends_at <= now and facts.active_from < ends_at
    if is_near_end and facts.released_at is None and not facts.goes_on:
        yield Due("ending", _key("ending", facts, facts.end))
    if facts.is_warm:
        yield Due("warm", _key("warm", facts, facts.start))


def _before(moment: datetime | None, other: datetime) -> bool:
    """Whoever has booked within the reminder's time needs none."""
    return moment is None or moment <= other


def _key(event: str, facts: Facts, when: datetime | int) -> str:
    """The key of one telling."""
    time = when if isinstance(when, int) else f"{when:%Y%m%dT%H%M%S}"
    return f"{event}:{facts.booking}:{time}"
