"""How soon a booking acts: from its commit to its server's process, and at a slot's boundary.

    .venv/bin/python -m bench.latency [--bookings 20] [--boundaries 20]

On a temporary installation with SQLite, worker and beat as bin/up starts them, and a stand-in for
llama-server. A booking that starts now finds nothing loaded; its figure is the time from its commit
to the first instruction of the server's program, and it is released before the next one. At the
boundary of two back-to-back bookings with different presets the figures are the times from the
boundary to the order of the second preset, and to the drain of the first one's server. The controls
are the bare start of the same program, and the lateness of a thread that sleeps until a time. Fails
when the median of the starts is over 300 ms, or a switch begins later than 200 ms.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from bench.fake_llama_server import write_wrapper
from bench.installation import HOST_KEY, Installation

installation = Installation(
    SLOTSERVE_LLAMA_SERVER="",
    SLOTSERVE_DRAIN_SECONDS="1",
    SLOTSERVE_STOP_TIMEOUT_SECONDS="2",
    SLOTSERVE_PORT_FIRST="22100",
    SLOTSERVE_PORT_LAST="22999",
)

from django.contrib.auth.models import User  # noqa: E402
from django.db import transaction  # noqa: E402

from bookings import services  # noqa: E402
from bookings.models import Booking, Kind  # noqa: E402
from lanes import clock  # noqa: E402
from lanes.models import (  # noqa: E402
    Host,
    Lane,
    LaneEvent,
    ModelFile,
    Order,
    Preset,
    PresetRevision,
    Runtime,
)
from lanes.stopping import stop_all  # noqa: E402

MOST_START_MS, MOST_SWITCH_MS = 300.0, 200.0
STARTS = installation.folder / "starts"
PROGRAM = installation.folder / "llama-server"
WAIT_SECONDS = 60.0
APART_SECONDS = 2.2  # boundaries: one switch at a time, and no divisor of the beat
FIRST_BOUNDARY_SECONDS = 10.0  # until then the first slots' servers load


def main() -> int:
    """Set up, measure, print; 1 when a limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bookings", type=int, default=20)
    parser.add_argument("--boundaries", type=int, default=20)
    wanted = parser.parse_args()
    try:
        installation.migrate()
        control = [bare_start() for _ in range(wanted.bookings)]
        presets = (make_preset("first"), make_preset("second"))
        installation.start_workers(SLOTSERVE_LLAMA_SERVER=str(write_wrapper(PROGRAM, STARTS)))
        lane = make_lane("single")
        starts = [start_after_commit(lane, presets[0]) for _ in range(wanted.bookings + 1)][1:]
        orders, drains = boundaries(wanted.boundaries, presets)
    finally:
        installation.stop_workers()
        list(stop_all(2.0))
        installation.close()
    show("control: bare start of the program", control)
    show("control: lateness of a sleeper", [lateness() for _ in range(wanted.bookings)])
    show("commit -> process", starts)
    show("boundary -> order", orders)
    show("boundary -> drain", drains)
    print(
        f"{'load average of the last minute':36} {os.getloadavg()[0]:14.1f}, {os.cpu_count()} cores"
    )
    is_good = statistics.median(starts) <= MOST_START_MS and max(drains) <= MOST_SWITCH_MS
    return 0 if is_good else 1


def start_after_commit(lane: Lane, preset: Preset) -> float:
    """Milliseconds from the commit of a booking to its server's first instruction."""
    seen, committed = len(noted()), []
    with transaction.atomic():
        transaction.on_commit(lambda: committed.append(time.time()))
        booking = book(lane, preset, None, clock.database_now() + timedelta(hours=1))
    wait_for(lambda: len(noted()) > seen, "the server's start")
    wait_for(lambda: is_ready([lane]), "its being ready")
    services.release(booking, actor=booking.owner)
    wait_for(lambda: not Runtime.objects.filter(lane=lane, ended_at=None).exists(), "its end")
    return (noted()[-1] - committed[0]) * 1000


def boundaries(count: int, presets: tuple[Preset, Preset]) -> tuple[list[float], list[float]]:
    """Milliseconds from each boundary to the order of what follows, and to the drain."""
    lanes = [make_lane(f"pair-{number}") for number in range(count)]
    first = clock.database_now() + timedelta(seconds=FIRST_BOUNDARY_SECONDS)
    moments = [first + timedelta(seconds=APART_SECONDS * number) for number in range(count)]
    for lane, boundary in zip(lanes, moments, strict=True):
        book(lane, presets[0], None, boundary)
        book(lane, presets[1], boundary, boundary + timedelta(hours=1))
    wait_for(lambda: is_ready(lanes[-1:]), "the first slots' servers")
    wait_for(lambda: is_serving(lanes, presets[1]), "the second slots' servers")
    orders = [since(moment, order_at(lane)) for lane, moment in zip(lanes, moments, strict=True)]
    drains = [since(moment, drain_at(lane)) for lane, moment in zip(lanes, moments, strict=True)]
    return orders, drains


def bare_start() -> float:
    """Milliseconds from asking for the program to its first instruction."""
    program = write_wrapper(PROGRAM, STARTS)
    seen, began = len(noted()), time.time()
    with subprocess.Popen([program, "--port", "0", "--host", "127.0.0.1"]) as process:
        wait_for(lambda: len(noted()) > seen, "a bare start")
        process.kill()
    return (noted()[-1] - began) * 1000


def lateness() -> float:
    """Milliseconds by which a sleeper wakes too late."""
    until = time.time() + 0.1
    time.sleep(0.1)
    return (time.time() - until) * 1000


def noted() -> list[float]:
    """When servers were started, as their wrapper wrote it."""
    lines = STARTS.read_text().splitlines() if STARTS.exists() else []
    return [float(line.split()[0]) for line in lines]


def order_at(lane: Lane) -> datetime:
    """When the second preset was ordered."""
    return Order.objects.get(lane=lane).ordered_at


def drain_at(lane: Lane) -> datetime:
    """When the host began to drain the first preset's server."""
    return LaneEvent.objects.filter(lane=lane, kind="draining").latest("pk").at


def is_ready(lanes: list[Lane]) -> bool:
    """Whether every one of them has a server that is ready."""
    ready = Runtime.objects.filter(lane__in=lanes, ended_at=None, phase="ready")
    return ready.count() == len(lanes)


def is_serving(lanes: list[Lane], preset: Preset) -> bool:
    """Whether this preset is ready on all of them."""
    ready = Runtime.objects.filter(lane__in=lanes, ended_at=None, phase="ready")
    return ready.filter(revision__preset=preset).count() == len(lanes)


def book(lane: Lane, preset: Preset, start: datetime | None, end: datetime) -> Booking:
    """Book, or stop with the refusal's words."""
    owner = User.objects.get_or_create(username="owner")[0]
    made = services.book(
        owner=owner, lane=lane, kind=Kind.MODEL, preset=preset, start=start, end=end
    )
    if not isinstance(made, Booking):
        sys.exit(made.words)
    return made


def make_lane(slug: str) -> Lane:
    """A lane of this host without a default."""
    host = Host.objects.get_or_create(key=HOST_KEY, defaults={"name": HOST_KEY})[0]
    return Lane.objects.create(slug=slug, name=slug, host=host)


def make_preset(slug: str) -> Preset:
    """A preset of an empty file."""
    host = Host.objects.get_or_create(key=HOST_KEY, defaults={"name": HOST_KEY})[0]
    path = installation.folder / f"{slug}.gguf"
    path.touch()
    file = ModelFile.objects.create(host=host, path=str(path), name=slug, size_bytes=0)
    preset = Preset.objects.create(slug=slug, name=slug)
    preset.current = PresetRevision.objects.create(preset=preset, number=1, model_file=file)
    preset.save()
    return preset


def since(moment: datetime, later: datetime) -> float:
    """Milliseconds from one to the other."""
    return (later - moment).total_seconds() * 1000


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Poll until it is so, gently: the machine is being measured."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            log = installation.log.read_text()[-3000:] if installation.log.exists() else ""
            sys.exit(f"not within {WAIT_SECONDS:g} s: {what}\n{log}")
        time.sleep(0.02)


def show(name: str, figures: list[float]) -> None:
    """One line."""
    median, longest = statistics.median(figures), max(figures)
    print(f"{name:36} median {median:7.1f} ms   longest {longest:7.1f} ms   of {len(figures)}")


if __name__ == "__main__":
    sys.exit(main())
