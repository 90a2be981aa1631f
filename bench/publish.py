"""How long one publication of the route table takes: 20,000 grants on 200 lanes, 1,000 tokens, 50
presets with 10,000 loads.

    .venv/bin/python -m bench.publish

Prints, for a first table, for unchanged facts and for one changed lane, the median and the longest
of some runs, and of it the one write, which gives the number (on SQLite all writers wait for it).
The control figure is the bare reading of the bookings' rows.
"""

import hashlib
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta

from bench.installation import Installation

installation = Installation()

from django.contrib.auth.models import User  # noqa: E402

from bookings.models import Booking  # noqa: E402
from gateway import publish  # noqa: E402
from gateway.models import ApiToken, TableState  # noqa: E402
from lanes import clock, ticks  # noqa: E402
from lanes.models import (  # noqa: E402
    Host,
    Lane,
    LoadRecord,
    ModelFile,
    Preset,
    PresetRevision,
)
from wire.edges import TABLE_PARTS  # noqa: E402

LANES, GRANTS, TOKENS, RUNS = 200, 20_000, 1_000, 10
PRESETS, LOADS = 50, 10_000


def main() -> None:
    """Fill a database, publish, print."""
    try:
        installation.migrate()
        fill()
        measure()
    finally:
        installation.close()


def measure() -> None:
    """The table of figures, in milliseconds."""
    valkey, slug = ticks.valkey(), Lane.objects.values_list("slug", flat=True)[0]

    def change() -> None:
        lane = Lane.objects.get(slug=slug)
        Lane.objects.filter(slug=slug).update(enabled=not lane.enabled)

    show("control: the bookings' rows", lambda: len(Booking.objects.values_list("pk", "start")))
    show("facts read, encoded, numbered", lambda: publish.number(is_new=True))
    table = publish.encode_facts(clock.database_now())
    show("of it: the number given", lambda: give_number(table))
    show("publish, Valkey empty", publish.publish, before=valkey.flushdb)
    show("publish, unchanged", publish.publish)
    show("publish, one lane changed", publish.publish, before=change)
    parts = valkey.hgetall(TABLE_PARTS)
    print(f"{'parts':30} {sum(map(len, parts.values())) / 1e6:8.1f} MB")
    valkey.close()


def give_number(table: publish.Encoded) -> None:
    """What `number` does of writing."""
    last = TableState.objects.get()
    if not publish._take_number(last, last.version + 1, table):
        raise RuntimeError("somebody else publishes here")


def show(name: str, call: Callable[[], object], before: Callable[[], object] = bool) -> None:
    """One line: median and longest of RUNS calls."""
    taken = []
    for _ in range(RUNS):
        before()
        began = time.perf_counter()
        call()
        taken.append((time.perf_counter() - began) * 1000)
    print(f"{name:30} {statistics.median(taken):8.1f} ms median {max(taken):8.1f} ms longest")


def fill() -> None:
    """Lanes, hourly bookings of the next days, loads, tokens."""
    now = clock.database_now()
    host = Host.objects.create(key="bench", name="bench")
    presets = [make_preset(host, number) for number in range(PRESETS)]
    Lane.objects.bulk_create(
        Lane(slug=f"lane-{n}", name=f"Lane {n}", host=host) for n in range(LANES)
    )
    User.objects.bulk_create(User(username=f"member-{n}") for n in range(TOKENS))
    people, lanes = list(User.objects.all()), list(Lane.objects.all())
    for lane in lanes:
        Booking.objects.bulk_create(bookings(lane, presets[0], people, now))
    LoadRecord.objects.bulk_create(loads(lanes, presets, now))
    ApiToken.objects.bulk_create(token(person, now) for person in people)


def bookings(
    lane: Lane, preset: Preset, people: Sequence[User], now: datetime
) -> Iterator[Booking]:
    """One lane's, an hour each, by one member after another."""
    for n in range(GRANTS // LANES):
        start = now + timedelta(hours=n)
        end = start + timedelta(hours=1)
        yield Booking(
            lane=lane,
            owner=people[n % TOKENS],
            preset=preset,
            start=start,
            end=end,
            original_end=end,
            created_at=now,
            confirmed_at=now,
        )


def loads(lanes: Sequence[Lane], presets: Sequence[Preset], now: datetime) -> Iterator[LoadRecord]:
    """A load a minute, on one lane after another."""
    for n in range(LOADS):
        yield LoadRecord(
            lane=lanes[n % LANES],
            revision=presets[n % PRESETS].current,
            generation=n,
            started_at=now - timedelta(minutes=n),
            seconds=30 + n % 7,
            succeeded=True,
        )


def token(person: User, now: datetime) -> ApiToken:
    """A member's token, whose text nobody needs."""
    digest = hashlib.sha256(person.username.encode()).hexdigest()
    return ApiToken(
        owner=person,
        name="bench",
        prefix="ss_",
        digest=digest,
        scopes=["inference"],
        created_at=now,
    )


def make_preset(host: Host, number: int) -> Preset:
    """A preset of a file of its own."""
    path = f"/{number}.gguf"
    file = ModelFile.objects.create(host=host, path=path, name="m", size_bytes=10**9)
    preset = Preset.objects.create(slug=f"model-{number}", name="Model")
    preset.current = PresetRevision.objects.create(preset=preset, number=1, model_file=file)
    preset.save()
    return preset


if __name__ == "__main__":
    main()
