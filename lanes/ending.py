"""Ending model servers: signals to one that is known, and the sweep of what was left behind."""

import contextlib
import logging
import os
import signal

from lanes import processes, records
from lanes.containers import asking as containers
from lanes.seeing import leftovers

log = logging.getLogger(__name__)


def signal_server(record: records.Record | None, number: signal.Signals) -> None:
    """Signal the server's process group, if the server is still the process that was recorded."""
    if record is None or record.pid is None or not record.is_server_alive:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(record.pid, number)


def sweep(lane_pk: int) -> list[int]:
    """Kill what is left of a lane's server, its shim last; the pids that were signalled.

    Only processes of the recorded session, or that carry our name and the lane's. The lane's
    containers go when the Docker Engine answers.
    """
    record = records.read_record(lane_pk)
    containers.has_left(record)
    found = leftovers(lane_pk, record)
    is_shim = {s.pid: processes.SHIM in processes.environment(s.pid) for s in found}
    swept = [s for s in sorted(found, key=lambda s: is_shim[s.pid]) if send(s, signal.SIGKILL)]
    if swept:
        log.warning("swept lane=%s pids=%s", lane_pk, [s.pid for s in swept])
    return [s.pid for s in swept]


def send(process: processes.Stat, number: signal.Signals) -> bool:
    """Signal this very process, not another that got its number."""
    if not processes.is_alive(process.pid, process.ticks):
        return False
    try:
        os.kill(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
