"""What its lanes did: loads, requests, events, a week of the cards."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import chain
from typing import Any
from uuid import UUID

from bookings.models import Booking, State
from gateway.models import ApiToken, UsageRecord
from lanes.gpus import weeks
from lanes.models import (
    Lane,
    LaneEvent,
    LaneMinute,
    LaneStretch,
    LoadRecord,
    Phase,
    Runtime,
)
from lanes.models.gpus import MINUTES_KEPT, STRETCH_MINUTES
from slotserve.demo.bookings import BATCH
from slotserve.demo.cast import Model
from slotserve.demo.company import Company
from slotserve.demo.scale import Demo, sure
from wire.words import kept_of, said

READ_BYTES_PER_SECOND = 1.1e9
FAILED_SHARE = 0.03
IDLE_SHARE = 0.1  # of the bookings, in which nobody asked
ONE_DAY = timedelta(days=1)


def make_history(demo: Demo, company: Company) -> None:
    """Of all bookings that have begun."""
    begun = Booking.objects.filter(state=State.CONFIRMED, start__lte=demo.now, preset__isnull=False)
    bookings = list(begun.select_related("preset__current", "lane").order_by("start"))
    tokens = _tokens(demo, company)
    loads = [_load(demo, company, booking) for booking in bookings]
    _save(LoadRecord, iter(loads))
    over = [pair for pair in zip(bookings, loads, strict=True) if pair[0].end <= demo.now]
    _save(Runtime, (_run(booking, load) for booking, load in over))
    _save(UsageRecord, _requests(demo, company, bookings, tokens))
    events = (_events(demo, booking, load) for booking, load in zip(bookings, loads, strict=True))
    _save(LaneEvent, chain.from_iterable(events))
    for lane in company.lanes:
        _save(LaneMinute, _minutes(demo, company, lane, bookings))
        _save(LaneStretch, _stretches(demo, company, lane, bookings))
    weeks.fold([lane.pk for lane in company.lanes], demo.now, back=ONE_DAY)


def _save(model: type, rows: Iterator[object]) -> None:
    model.objects.bulk_create(list(rows), batch_size=BATCH)  # type: ignore[attr-defined]


def load_seconds(model: Model) -> float:
    """How long the disk takes, and some seconds."""
    return 6 + model.size_bytes / READ_BYTES_PER_SECOND


def _tokens(demo: Demo, company: Company) -> dict[int, ApiToken]:
    """One for each member: nobody knows the secret of its digest."""
    tokens = [
        ApiToken(
            owner=member,
            name="notebook",
            prefix=f"ss_{demo.dice.getrandbits(32):08x}"[:8],
            digest=f"{demo.dice.getrandbits(256):064x}",
            scopes=["inference"],
            created_at=demo.now - timedelta(days=demo.dice.randint(1, demo.scale.days)),
            last_used_at=demo.now - timedelta(minutes=demo.dice.randint(1, 3000)),
        )
        for member in company.members
    ]
    made = ApiToken.objects.bulk_create(tokens, batch_size=BATCH)
    return {token.owner_id: token for token in made}


def _load(demo: Demo, company: Company, booking: Booking) -> LoadRecord:
    preset = sure(booking.preset)
    seconds = load_seconds(company.models[preset.pk]) * demo.dice.uniform(0.9, 1.25)
    is_well = demo.dice.random() > FAILED_SHARE
    return LoadRecord(
        lane=booking.lane,
        revision=sure(preset.current),
        generation=1,
        started_at=booking.start - timedelta(seconds=seconds + 60),
        seconds=seconds if is_well else seconds / 3,
        succeeded=is_well,
        reason="" if is_well else "The GPU ran out of memory.",
    )


def _run(booking: Booking, load: LoadRecord) -> Runtime:
    """The server of a slot that is over: ready from shortly before it, if it loaded at all."""
    return Runtime(
        lane=booking.lane,
        revision=load.revision,
        generation=1,
        phase=Phase.STOPPED if load.succeeded else Phase.FAILED,
        phase_since=booking.end,
        started_at=load.started_at,
        ready_at=load.started_at + timedelta(seconds=load.seconds) if load.succeeded else None,
        ended_at=booking.end,
        address="127.0.0.1",
        port=18000,
        sealed_key="-",
        reason=load.reason,
    )


def _requests(
    demo: Demo, company: Company, bookings: list[Booking], tokens: dict[int, ApiToken]
) -> Iterator[UsageRecord]:
    for booking in bookings:
        if demo.dice.random() < IDLE_SHARE:
            continue
        model = company.models[sure(booking.preset).pk]
        until = min(booking.end, demo.now)
        for _ in range(demo.dice.randint(0, 2 * demo.scale.requests)):
            at = booking.start + (until - booking.start) * demo.dice.random()
            yield _request(demo, booking, tokens[booking.owner_id], model, at)


def _request(
    demo: Demo, booking: Booking, token: ApiToken, model: Model, at: datetime
) -> UsageRecord:
    told = demo.dice.randint(200, 4000)
    return UsageRecord(
        request_id=str(UUID(int=demo.dice.getrandbits(128), version=4)),
        at=at,
        owner_id=booking.owner_id,
        token=token,
        lane=booking.lane,
        booking_id_for=booking.pk,
        preset=sure(booking.preset).slug,
        route="/v1/chat/completions",
        status=200,
        duration_ms=180 + 1000 * told / model.tokens_per_second,
        first_byte_ms=demo.dice.uniform(90, 400),
        bytes_in=demo.dice.randint(300, 9000),
        bytes_out=told * 5,
        prompt_tokens=demo.dice.randint(60, 3000),
        completion_tokens=told,
    )


def _events(demo: Demo, booking: Booking, load: LoadRecord) -> Iterator[LaneEvent]:
    """Of the last days' loads that succeeded: loading, and ready."""
    if booking.start < demo.now - timedelta(days=3) or not load.succeeded:
        return
    preset, ready_at = sure(booking.preset).slug, load.started_at + timedelta(seconds=load.seconds)
    ready = said("{preset} is ready after {seconds:.1f} s", preset=preset, seconds=load.seconds)
    for at, kind, sentence in (
        (load.started_at, "order", said("loading {preset}", preset=preset)),
        (ready_at, "ready", ready),
    ):
        yield LaneEvent(
            lane=booking.lane, at=at, kind=kind, sentence=sentence, words=kept_of(sentence)
        )


def _minutes(
    demo: Demo, company: Company, lane: Lane, bookings: list[Booking]
) -> Iterator[LaneMinute]:
    """Of the last day."""
    first = demo.now - timedelta(minutes=MINUTES_KEPT - 1)
    own = [booking for booking in bookings if booking.lane_id == lane.pk and booking.end > first]
    for number in range(MINUTES_KEPT):
        minute = (first + timedelta(minutes=number)).replace(second=0, microsecond=0)
        slot, seen = minute.hour * 60 + minute.minute, _seen(demo, company, lane, own, minute)
        yield LaneMinute(lane=lane, slot=slot, minute=minute, samples=12, **seen)


def _stretches(
    demo: Demo, company: Company, lane: Lane, bookings: list[Booking]
) -> Iterator[LaneStretch]:
    """Of the six days before that, whose minutes are written over."""
    first = weeks.begin_of(demo.now - weeks.WEEK) + weeks.STRETCH
    last = weeks.begin_of(demo.now - ONE_DAY)
    own = [booking for booking in bookings if booking.lane_id == lane.pk and booking.end > first]
    for number in range((last - first) // weeks.STRETCH):
        minute = first + number * weeks.STRETCH
        slot, seen = weeks.slot_of(minute), _seen(demo, company, lane, own, minute)
        samples = 12 * STRETCH_MINUTES
        yield LaneStretch(lane=lane, slot=slot, minute=minute, samples=samples, **seen)


def _seen(
    demo: Demo, company: Company, lane: Lane, own: list[Booking], minute: datetime
) -> dict[str, Any]:
    """Memory by what was booked, else by the default; use in waves while somebody asked."""
    on = next((booking for booking in own if booking.start <= minute < booking.end), None)
    preset = sure(on.preset) if on else sure(lane.default_preset)
    return {
        "used_bytes": int(company.models[preset.pk].size_bytes * 1.18),
        "outside_bytes": 0,
        "utilisation": demo.dice.uniform(55, 98) if on else demo.dice.uniform(0, 4),
        "power_watts": demo.dice.uniform(180, 290) if on else 25.0,
    }
