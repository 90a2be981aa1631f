"""A preset's own way to end its server: a command in place of the first TERM.

It is run once, as the server's user and with its variables. The second TERM and the KILL of the
stop time-out come as ever, so a command that does nothing holds no lane up: its group is killed
when its server is, and what has left the group is swept with the lane. The beginning of what it
says is kept, without the server's key, as `<lane>.stop` in the folder of the lanes' records.
"""

import logging
import subprocess
from threading import Thread

from django.conf import settings

from lanes import records, short_programs, starting
from lanes.engines import registry
from lanes.lifecycle import KILL_AFTER
from lanes.logs import without_secret
from lanes.models import Lane, Runtime
from wire.sealing import Sealer, read_table_keys

log = logging.getLogger(__name__)
MOST_BYTES = 65536


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
    Thread(target=_see_through, args=(lane, child, key.encode()), daemon=True).start()
    return True


def _see_through(lane: Lane, child: "subprocess.Popen[bytes]", key: bytes) -> None:
    """Wait for its end, for as long as its server may live, and note down what it said."""
    seconds = settings.SLOTSERVE_STOP_TIMEOUT_SECONDS * KILL_AFTER
    said = short_programs.finish(child, seconds=seconds, most=MOST_BYTES)
    told, held = without_secret(said.text, key)
    end = b"\n[cut off here]\n" if said.is_cut else held  # what is held may begin the key
    log.info("stop command ended lane=%s status=%s", lane.slug, said.status)
    try:
        (records.folder() / f"{lane.pk}.stop").write_bytes(told + end)
    except OSError as error:
        log.warning("output of stop command lost lane=%s reason=%s", lane.slug, error)
