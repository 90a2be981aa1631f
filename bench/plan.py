"""How long one planning tick takes: 200 lanes, 20,000 bookings, nothing to change.

    .venv/bin/python bench/plan.py [--lanes 200] [--bookings 20000] [--loads 20000] [--ticks 30]

SQLite in a temporary folder; with SLOTSERVE_TEST_POSTGRES, a test database there. In the same run
a control reads the same rows as plain tuples: the ratio of the two says more than the seconds do.
Fails when a tick takes more than ten queries, or its median is over 250 ms. With SQLite the whole
tick is this process's work, so where others keep the cores busy its time on a core is what counts.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

folder = tempfile.TemporaryDirectory(prefix="ss-bench-")
postgres = os.environ.get("SLOTSERVE_TEST_POSTGRES")
os.environ["SLOTSERVE_DATA"] = folder.name
os.environ["SLOTSERVE_TABLE_KEYS"] = "bench-" + "k" * 40
os.environ["SLOTSERVE_LOG_LEVEL"] = "CRITICAL"
os.environ["REDIS_URL"] = f"unix://{folder.name}/nobody.sock?db=0"
os.environ["DATABASE_URL"] = postgres or f"sqlite:///{folder.name}/bench.sqlite3"
os.environ["DJANGO_SETTINGS_MODULE"] = "slotserve.settings"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import django  # noqa: E402

django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402

from bookings.facts import read_facts  # noqa: E402
from bookings.models import Booking  # noqa: E402
from bookings.planning import plan_lanes  # noqa: E402
from lanes import clock  # noqa: E402
from lanes.models import (  # noqa: E402
    Host,
    Lane,
    LoadRecord,
    ModelFile,
    Order,
    Preset,
    PresetRevision,
    Runtime,
)

MOST_QUERIES = 10
MOST_TICK_MS = 250.0
PRESETS = 40
PAST_RUNTIMES = 20  # of each lane


def main() -> int:
    """Set up, measure, print; 1 when a tick takes too many queries or too long."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("lanes", 200), ("bookings", 20_000), ("loads", 20_000), ("ticks", 30)):
        parser.add_argument(f"--{name}", type=int, default=default)
    wanted = parser.parse_args()
    if postgres:
        before = connection.settings_dict["NAME"]
        connection.creation.create_test_db(verbosity=0, autoclobber=True)
    else:
        call_command("migrate", verbosity=0)
    try:
        _fill(wanted)
        return _measure(wanted.ticks)
    finally:
        if postgres:
            connection.creation.destroy_test_db(before, verbosity=0)
        connection.close()


def _fill(wanted: argparse.Namespace) -> None:
    """Lanes with their shares of bookings and loads, half of them over, and what ran before."""
    now = clock.database_now()
    owner = User.objects.create(username="owner")
    host = Host.objects.create(key="bench", name="bench")
    file = ModelFile.objects.create(host=host, path="/m.gguf", name="m", size_bytes=4 * 10**9)
    presets = [_preset(f"preset-{n}", file) for n in range(PRESETS)]
    lanes = Lane.objects.bulk_create(
        Lane(slug=f"lane-{n}", name=f"lane-{n}", host=host, default_preset=presets[n % PRESETS])
        for n in range(wanted.lanes)
    )
    for lane in lanes:
        share = wanted.bookings // wanted.lanes
        Booking.objects.bulk_create(
            _booking(lane, owner, presets[n % PRESETS], now + timedelta(hours=n - share / 2))
            for n in range(share)
        )
        LoadRecord.objects.bulk_create(
            _load(lane, presets[n % PRESETS], now - timedelta(hours=n))
            for n in range(wanted.loads // wanted.lanes)
        )
        Runtime.objects.bulk_create(_past(lane, presets[0], now) for _ in range(PAST_RUNTIMES))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")  # as PostgreSQL's autovacuum would before long


def _preset(slug: str, file: ModelFile) -> Preset:
    preset = Preset.objects.create(slug=slug, name=slug)
    for number in (1, 2):
        preset.current = PresetRevision.objects.create(
            preset=preset, number=number, model_file=file
        )
    preset.save()
    return preset


def _booking(lane: Lane, owner: User, preset: Preset, hour: datetime) -> Booking:
    start, end = hour + timedelta(minutes=5), hour + timedelta(minutes=50)
    return Booking(
        lane=lane,
        owner=owner,
        preset=preset,
        start=start,
        end=end,
        original_end=end,
        created_at=start - timedelta(days=30),
        confirmed_at=start - timedelta(days=30),
    )


def _load(lane: Lane, preset: Preset, started_at: datetime) -> LoadRecord:
    return LoadRecord(
        lane=lane,
        revision=preset.current,
        generation=1,
        started_at=started_at,
        seconds=30 + lane.pk % 7,
        succeeded=True,
    )


def _past(lane: Lane, preset: Preset, now: datetime) -> Runtime:
    assert preset.current is not None
    return Runtime(
        lane=lane,
        revision=preset.current,
        generation=0,
        phase="stopped",
        phase_since=now,
        started_at=now,
        ended_at=now,
        address="127.0.0.1",
        port=1,
    )


def _measure(ticks: int) -> int:
    first = _seconds(plan_lanes)
    plan_lanes()
    with CaptureQueriesContext(connection) as queries:
        outcome = plan_lanes()
    rows = _control_rows()
    tick, control = _medians(plan_lanes, rows, ticks)
    on_core = statistics.median(_core_seconds(plan_lanes) for _ in range(ticks))
    print(f"database          {connection.vendor}")
    print(f"lanes, bookings   {len(outcome.decisions)}, {Booking.objects.count()}")
    print(f"first tick        {first * 1000:.0f} ms, writing every order")
    print(f"queries           {len(queries)} in a tick that changes nothing")
    print(f"tick, median      {tick * 1000:.1f} ms of {ticks}: {MOST_TICK_MS:.0f} ms at most")
    print(f"on a core, median {on_core * 1000:.1f} ms")
    print(f"control, median   {control * 1000:.1f} ms: the same rows as plain tuples")
    print(f"ratio             {tick / control:.1f}")
    for query in queries:
        print(f"  {float(query['time']) * 1000:5.0f} ms  {' '.join(query['sql'].split())[:60]}")
    counted = min(tick, on_core) if connection.vendor == "sqlite" else tick
    is_kept = len(queries) <= MOST_QUERIES and counted * 1000 <= MOST_TICK_MS
    return 0 if is_kept and not outcome.failed else 1


def _control_rows() -> Callable[[], None]:
    """Read, by key and without joins, every row that a tick looks at."""
    facts = read_facts(None, clock.database_now()).values()
    bookings = {booking.pk for each in facts for booking in each.bookings}
    runtimes = {each.runtime.pk for each in facts if each.runtime}

    def read() -> None:
        for table in (Host, Lane, Order, ModelFile, Preset, PresetRevision):
            list(table.objects.values_list())
        list(Booking.objects.filter(pk__in=bookings).values_list())
        list(Runtime.objects.filter(pk__in=runtimes).values_list())

    return read


def _medians(
    first: Callable[[], object], second: Callable[[], object], times: int
) -> tuple[float, float]:
    """Seconds of each, taken in turns so that both meet the same machine."""
    pairs = [(_seconds(first), _seconds(second)) for _ in range(times)]
    return statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs)


def _seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _core_seconds(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


if __name__ == "__main__":
    sys.exit(main())
