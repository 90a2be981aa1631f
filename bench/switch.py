"""How much a switch of models takes beyond the loading itself, with a real model server.

    .venv/bin/python -m bench.switch [--switches 20]

An installation as bin/up starts it (SQLite, worker, beat, an edge) with the demo model under two
presets. An administrator chooses the other preset, again and again; a client asks the gateway for
it at once and waits. Measured is the time from the choice's commit to the first piece of text. The
control, right before each switch, is a bare start of the very command line until /health says 200;
what a switch takes beyond it is the overhead: order, drain of nothing, stop, start, noticing that
it is ready, table, first token. Fails when the median is over 0.4 s.
"""

import argparse
import statistics
import sys
import time
from datetime import timedelta

import httpx

from bench.installation import Installation

installation = Installation(
    SLOTSERVE_DRAIN_SECONDS="5",
    SLOTSERVE_STOP_TIMEOUT_SECONDS="5",
    SLOTSERVE_PORT_FIRST="25000",
    SLOTSERVE_PORT_LAST="25499",
)

from bench.model_lanes import (  # noqa: E402
    Command,
    Models,
    first_token,
    is_healthy,
    serving,
    set_up,
    shown,
    wait_for,
)
from bench.soak_parts.edges import Edges  # noqa: E402
from bookings.choices import ChoiceMade, choose  # noqa: E402
from lanes import clock  # noqa: E402
from lanes.models import Preset  # noqa: E402
from lanes.stopping import stop_all  # noqa: E402

MOST_SECONDS = 0.4


def main() -> int:
    """Set up, measure, print; 1 when the overhead is too large."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--switches", type=int, default=20)
    wanted = parser.parse_args()
    edges = None
    try:
        installation.migrate()
        models = set_up()
        installation.start_workers()
        edges = Edges(1, installation.folder / "edge.log")
        url = f"http://127.0.0.1:{edges.ports[0]}"
        with httpx.Client(base_url=url, trust_env=False, timeout=120.0) as client:
            wait_for(lambda: is_healthy(client, "/ready"), "a route table at the gateway")
            commands = [warm_up(models, client, preset) for preset in models.presets]
            pairs = [measured(models, client, commands, n) for n in range(wanted.switches)]
    finally:
        if edges:
            edges.stop()
        installation.stop_workers()
        list(stop_all(2.0))
        installation.close()
    return tell(commands[0].program, pairs)


def warm_up(models: Models, client: httpx.Client, preset: Preset) -> Command:
    """One switch that is not measured, and the command line it led to."""
    switch(models, client, preset)
    wait_for(lambda: serving(models.lane) is not None, "the server")
    runtime = serving(models.lane)
    assert runtime is not None
    assert runtime.pid is not None
    return Command.of(runtime.pid)


def measured(
    models: Models, client: httpx.Client, commands: list[Command], number: int
) -> tuple[float, float]:
    """Seconds of one switch, and of a bare load right before it."""
    which = number % 2
    load = commands[which].load_seconds()
    return switch(models, client, models.presets[which]), load


def switch(models: Models, client: httpx.Client, preset: Preset) -> float:
    """Seconds from the choice's commit to the first piece of text."""
    until = clock.database_now() + timedelta(hours=1)
    made = choose(models.lane, preset=preset, until=until, actor=models.administrator)
    began = time.monotonic()
    assert isinstance(made, ChoiceMade), made
    first_token(client, models.lane, preset.slug, models.token)
    return time.monotonic() - began


def tell(program: str, pairs: list[tuple[float, float]]) -> int:
    """Print all of it; 1 when the promise is broken."""
    overheads = [whole - load for whole, load in pairs]
    median = statistics.median(overheads)
    print(f"model server       {program}")
    print(f"switches, ms       {shown(whole for whole, _ in pairs)}")
    print(f"control, ms        {shown(load for _, load in pairs)}: bare load to /health 200")
    print(f"overhead, ms       {shown(sorted(overheads))}")
    print(f"switch, median     {statistics.median(whole for whole, _ in pairs) * 1000:.0f} ms")
    print(f"control, median    {statistics.median(load for _, load in pairs) * 1000:.0f} ms")
    print(f"overhead, median   {median * 1000:.0f} ms: {MOST_SECONDS * 1000:.0f} ms at most")
    return 0 if median <= MOST_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
