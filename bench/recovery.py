"""How soon a model server that was killed serves again, with a real one.

    .venv/bin/python -m bench.recovery [--lanes 5]

An installation as bin/up starts it (SQLite, worker, beat, an edge), and some lanes whose default is
the demo model. After each has been ready for over a minute its server is killed with KILL, one lane
after the other, and a client asks for an answer until it has one. Measured is the time from the
signal to the first piece of text. The control, before each, is a bare start of the very command
line until /health says 200. Fails when the median is over the control and one second.
"""

import argparse
import os
import signal
import statistics
import sys
import time

import httpx

from bench.installation import Installation

installation = Installation(SLOTSERVE_PORT_FIRST="25500", SLOTSERVE_PORT_LAST="25999")

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
from lanes.lifecycle import STEADY_SECONDS  # noqa: E402
from lanes.models import Lane  # noqa: E402
from lanes.stopping import stop_all  # noqa: E402

MOST_SECONDS = 1.0  # beyond the load


def main() -> int:
    """Set up, measure, print; 1 when it takes too long."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lanes", type=int, default=5)
    wanted = parser.parse_args()
    edges = None
    try:
        installation.migrate()
        models = set_up()
        lanes = [models.lane, *(add_lane(models, number) for number in range(1, wanted.lanes))]
        installation.start_workers()
        edges = Edges(1, installation.folder / "edge.log")
        url = f"http://127.0.0.1:{edges.ports[0]}"
        with httpx.Client(base_url=url, trust_env=False, timeout=120.0) as client:
            wait_for(lambda: is_healthy(client, "/ready"), "a route table at the gateway")
            wait_for(lambda: all(serving(lane) for lane in lanes), "all lanes", poll=0.5)
            time.sleep(STEADY_SECONDS + 1)
            pairs = [measured(models, client, lane) for lane in lanes]
    finally:
        if edges:
            edges.stop()
        installation.stop_workers()
        list(stop_all(2.0))
        installation.close()
    return tell(pairs)


def add_lane(models: Models, number: int) -> Lane:
    """Another lane with the same default."""
    return Lane.objects.create(
        slug=f"more-{number}",
        name=f"More {number}",
        host=models.lane.host,
        default_preset=models.presets[0],
    )


def measured(models: Models, client: httpx.Client, lane: Lane) -> tuple[float, float]:
    """Seconds from the kill to the first piece of text, and of a bare load right before it."""
    runtime = serving(lane)
    assert runtime is not None
    assert runtime.pid is not None
    load = Command.of(runtime.pid).load_seconds()
    began = time.monotonic()
    os.kill(runtime.pid, signal.SIGKILL)
    first_token(client, lane, models.presets[0].slug, models.token)
    return time.monotonic() - began, load


def tell(pairs: list[tuple[float, float]]) -> int:
    """Print all of it; 1 when the promise is broken."""
    more = statistics.median(whole - load for whole, load in pairs)
    print(f"served again, ms   {shown(whole for whole, _ in pairs)}")
    print(f"control, ms        {shown(load for _, load in pairs)}: bare load to /health 200")
    print(f"served, median     {statistics.median(whole for whole, _ in pairs) * 1000:.0f} ms")
    print(f"control, median    {statistics.median(load for _, load in pairs) * 1000:.0f} ms")
    print(f"more, median       {more * 1000:.0f} ms: {MOST_SECONDS * 1000:.0f} ms at most")
    return 0 if more <= MOST_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
