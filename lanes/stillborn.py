"""Why a server never came to be: its shim could not be started, or ended before it wrote a record.

Such a start has failed like any other: it backs off, and who waits for it is told why.
"""

import errno
import os
import tempfile

from lanes import records, shim_status, watch
from lanes.failures.causes import Cause, FailureWords, Kind
from lanes.failures.reading import stated_cause
from lanes.log_text import plain
from lanes.models import Lane
from wire.words import said

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT}
_NO_MEMORY = {errno.ENOMEM, errno.EAGAIN}
_PROBE = b"\0" * 4096  # a record and its file have room in this
_TAIL = 4096  # bytes of what a shim wrote about its end


def has_died(lane_pk: int) -> bool:
    """Whether the shim that this worker started last here ended of itself, and not because it came
    too late, found the lane locked or was given no order."""
    status = watch.shim_status(lane_pk)
    return status is not None and status > 0 and status not in shim_status.HARMLESS


def cause_of(lane: Lane, error: Exception, words: FailureWords) -> Cause:
    """Why the shim of this lane could not be started."""
    number = error.errno if isinstance(error, OSError) else None
    if number in _NO_SPACE:
        where = said("There is no space left in the data folder of {host}.", host=lane.host.name)
        return stated_cause(Kind.DISK_FULL, where, words)
    if number in _NO_MEMORY:
        return stated_cause(
            Kind.HOST_MEMORY,
            said("There is no memory or process left on {host}.", host=lane.host.name),
            words,
        )
    why = os.strerror(number) if number else type(error).__name__
    return stated_cause(
        Kind.UNKNOWN,
        said("Its shim could not be started on {host}: {why}.", host=lane.host.name, why=why),
        words,
        line=str(error),
    )


def cause_of_death(lane: Lane, words: FailureWords) -> Cause:
    """Why the shim ended before it wrote a record."""
    try:
        with tempfile.TemporaryFile(dir=records.folder(), buffering=0) as file:
            file.write(_PROBE)
    except OSError as error:
        return cause_of(lane, error, words)
    sentence = said("Its shim on {host} ended before it started a server.", host=lane.host.name)
    return stated_cause(Kind.UNKNOWN, sentence, words, line=_last_line(lane.pk))


def _last_line(lane_pk: int) -> str:
    """What the shim said last."""
    try:
        with records.shim_errors(lane_pk).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return next((plain(line) for line in reversed(lines) if line.strip()), "")
