"""The end of a lane's server log, for people."""

import re
from pathlib import Path

from lanes.logs import read_tail
from lanes.models import Lane

TAIL_BYTES = 65536
MOST_LINES = 400
_NOT_TEXT = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


def tail_of_lane(lane: Lane) -> list[str]:
    """The last lines of the lane's newest server, plain text; one that explains when none are."""
    runtime = lane.runtimes.order_by("-started_at", "-pk").first()
    if runtime is None or not runtime.log_path:
        return ["No model server has run on this lane yet."]
    if not Path(runtime.log_path).is_file():
        return [f"The log {runtime.log_path} is not on this machine: look on {lane.host.name}."]
    return plain_lines(read_tail(runtime.log_path, TAIL_BYTES))


def plain_lines(text: str) -> list[str]:
    """The last whole lines without colours and control characters."""
    lines = text.splitlines()
    if len(text.encode()) >= TAIL_BYTES:
        lines = lines[1:]  # cut somewhere in its middle
    return [_NOT_TEXT.sub("", line) for line in lines[-MOST_LINES:]]
