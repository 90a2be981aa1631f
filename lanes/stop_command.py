"""A preset's own way to end its server: a command in place of the first TERM.

It is run once, as the server's user and with its variables. The second TERM and the KILL of the
stop time-out come as ever, so a command that does nothing holds no lane up: its group is killed
when its server is, and what has left the group is swept with the lane. The beginning of what it
says is added, without the server's key, to the server's log once that has ended.
"""

import logging
import subprocess
import time
from threading import Thread

from django.conf import settings

from lanes import logs, records, short_programs, starting
from lanes.engines import registry
from lanes.lifecycle import KILL_AFTER
from lanes.logs import without_secret
from lanes.models import Lane, Runtime
from wire.sealing import Sealer, read_table_keys

log = logging.getLogger(__name__)
MOST_BYTES = 65536
SHIM_SECONDS = 5.0  # after the KILL: a shim that lives on then is stuck
LOOK_SECONDS = 0.1


def run(lane: Lane, runtime: Runtime, record: records.Record | None) -> bool:
    """Whether there is such a command for a server that lives, and it was started.

    A container is ended by TERM: the command would run outside of it.
    """
    if record is None or not record.is_server_alive or record.is_container:
        return False
    key = Sealer(read_table_keys()).open(runtime.sealed_key) or ""
    revision = runtime.revision
    spec = starting.server_spec(lane, revision, runtime.address, runtime.port, key)
    adapter = registry.engine_of(revision)
    launch = adapter.stop(spec)
    if launch is None or adapter.refusal(spec):
        return False
    try:
        variables = starting.environment(lane.pk, spec, launch)
        child = short_programs.start(launch.argv, variables, starting.as_user())
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        log.warning("stop command not run lane=%s reason=%s", lane.slug, error)
        return False
    log.info("stop command started lane=%s pid=%s", lane.slug, child.pid)
    # Beside the look, which waits for nothing; with the worker it dies, and the child is swept.
    told = (runtime, record, child, key.encode())
    Thread(target=_see_through, args=told, daemon=True).start()
    return True


def _see_through(
    runtime: Runtime, record: records.Record, child: "subprocess.Popen[bytes]", key: bytes
) -> None:
    """Wait for its end, for as long as its server may live, and note down what it said."""
    limit = settings.SLOTSERVE_STOP_TIMEOUT_SECONDS
    began, seconds = time.monotonic(), limit * KILL_AFTER
    said = short_programs.finish(child, seconds=seconds, most=MOST_BYTES)
    told, held = without_secret(said.text, key)
    end = b"\n[cut off here]\n" if said.is_cut else held  # what is held may begin the key
    log.info("stop command ended runtime=%s status=%s", runtime.pk, said.status)
    while record.is_shim_alive and time.monotonic() < began + limit + SHIM_SECONDS:
        time.sleep(LOOK_SECONDS)  # until then the log is the shim's alone
    is_ours = said.status is None or said.status < 0
    how = "was ended with its server" if is_ours else f"ended with status {said.status}"
    words = f"\n[slotserve: the stop command {how}; it said:]\n".encode()
    try:
        logs.add(runtime.log_path, words + told + end)
    except OSError as error:
        log.warning("output of stop command lost runtime=%s reason=%s", runtime.pk, error)
