"""A preset's own way to end its server: a command in place of the first TERM.

It is run once, as the server's user and with its variables. The second TERM and the KILL of the
stop time-out come as ever, so a command that does nothing holds no lane up; what is left of it then
is swept with the lane.
"""

import logging
import subprocess

from lanes import records, starting, watch
from lanes.engines import registry
from lanes.models import Lane, Runtime
from wire.sealing import Sealer, read_table_keys

log = logging.getLogger(__name__)


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
        with (records.folder() / f"{lane.pk}.stop").open("wb") as output:
            child = subprocess.Popen(
                launch.argv,
                env=starting.environment(lane.pk, spec, launch),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                **(starting.as_user() or {}),
            )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        log.warning("stop command not run lane=%s reason=%s", lane.slug, error)
        return False
    watch.bury_later(child)
    log.info("stop command started lane=%s pid=%s", lane.slug, child.pid)
    return True
