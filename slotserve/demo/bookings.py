"""Its bookings: those that are over, what is on now, and what is ahead."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from bookings.models import Booking, Kind, State
from lanes.models import Lane
from notices.models import Entry
from slotserve.demo.cast import PURPOSES
from slotserve.demo.company import Company
from slotserve.demo.scale import Demo

BATCH = 500
QUARTER = timedelta(minutes=15)
LENGTHS = (30, 60, 60, 90, 120, 120, 180, 240)  # minutes
SHARE_AHEAD = 0.2
UNASKED = timedelta(hours=1)  # of a lane that needs approval: longer ones wait for it
UNDECIDED = timedelta(hours=24)  # longer they do not wait
STATES = (State.CONFIRMED,) * 17 + (State.CANCELLED, State.CANCELLED, State.REJECTED)


def make_bookings(demo: Demo, company: Company) -> None:
    """So many in all, spread over the lanes; each lane has one now, but for every third."""
    each, more = divmod(demo.scale.bookings, len(company.lanes))
    rows: list[Booking] = []
    for number, lane in enumerate(company.lanes):
        count = each + (number < more)
        rows += _of_lane(demo, company, lane, count, is_on_now=number % 3 != 2)
    made = Booking.objects.bulk_create(rows, batch_size=BATCH)
    Entry.objects.bulk_create([_told(booking) for booking in made], batch_size=BATCH)


def _told(booking: Booking) -> Entry:
    """Nobody is told of it: as if all had been."""
    return Entry(
        booking=booking,
        lane_id_then=booking.lane_id,
        preset_id_then=booking.preset_id,
        start=booking.start,
        end=booking.end,
        state=booking.state,
        changed_at=booking.created_at,
    )


def _of_lane(
    demo: Demo, company: Company, lane: Lane, count: int, *, is_on_now: bool
) -> Iterator[Booking]:
    """The one of now, those before it backwards, those after it forwards; never two at once."""
    if not count:
        return
    quarter = demo.now.replace(minute=demo.now.minute // 15 * 15, second=0, microsecond=0)
    begun = quarter - demo.dice.choice((1, 2, 4)) * QUARTER
    until = quarter + demo.dice.choice((2, 5, 7)) * QUARTER
    if is_on_now:
        yield _booking(demo, company, lane, begun, until)
    ahead = max(1, round((count - is_on_now) * SHARE_AHEAD))
    yield from _walk(demo, company, lane, until, ahead, forwards=True)
    yield from _walk(demo, company, lane, begun, count - is_on_now - ahead, forwards=False)


def _walk(
    demo: Demo, company: Company, lane: Lane, edge: datetime, count: int, *, forwards: bool
) -> Iterator[Booking]:
    days = demo.scale.days / 4 if forwards else demo.scale.days
    room = timedelta(days=days) / max(count, 1)
    grain = QUARTER if room > 8 * QUARTER else timedelta(minutes=1)
    for _ in range(count):
        length = min(timedelta(minutes=demo.dice.choice(LENGTHS)), max(grain, room * 0.8))
        length -= length % grain
        gap = max(timedelta(), room - length) * demo.dice.random()
        gap -= gap % grain
        start = edge + gap if forwards else edge - gap - length
        end = start + length
        yield _booking(demo, company, lane, start, end)
        edge = end if forwards else start


def _booking(demo: Demo, company: Company, lane: Lane, start: datetime, end: datetime) -> Booking:
    owner = demo.dice.choice(company.members)
    preset = demo.dice.choice(company.presets[lane.pk])
    is_over, is_ahead = end <= demo.now, start > demo.now
    state = demo.dice.choice(STATES) if is_over else State.CONFIRMED
    is_asked = is_ahead and lane.needs_approval and demo.dice.random() < 0.5
    if is_asked and end - start > UNASKED:
        state = State.PENDING
    is_whole = demo.dice.random() < 0.1
    age = timedelta(hours=demo.dice.randint(1, 60))
    made_at = min(start, demo.now) - (age / 3 if state == State.PENDING else age)
    cut = end - (end - start) * 0.3 if is_over and demo.dice.random() < 0.15 else None
    cut = cut if state == State.CONFIRMED else None
    return Booking(
        lane=lane,
        owner=owner,
        kind=Kind.GPU if is_whole else Kind.MODEL,
        preset=None if is_whole else preset,
        start=start,
        end=cut or end,
        original_end=end,
        released_at=cut,
        state=state,
        purpose=demo.dice.choice(PURPOSES),
        created_at=made_at,
        confirmed_at=made_at if state == State.CONFIRMED else None,
    )
