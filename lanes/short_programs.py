"""Programs that are run for what they say or do and are expected to end: never longer than they may
run, never more kept of what they say than asked for, and nothing of their group left behind.
"""

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

READ_BYTES = 65536
LOOK_SECONDS = 0.05  # between looks whether it has ended, while it says nothing


@dataclass(frozen=True, slots=True)
class Output:
    """How it ended, and the beginning of what it wrote, errors included."""

    status: int | None  # minus the signal's number when one ended it; None: its time was over
    text: bytes
    is_cut: bool  # it wrote more


def start(
    argv: Sequence[str],
    environment: Mapping[str, str],
    run_as: Mapping[str, Any] | None = None,
    *,
    folder: str = "/",
) -> "subprocess.Popen[bytes]":
    """Start it in a session of its own; `finish` has to follow. OSError, ValueError or
    SubprocessError: it cannot be started."""
    return subprocess.Popen(
        argv,
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        bufsize=0,
        start_new_session=True,
        **(run_as or {}),
    )


def finish(child: "subprocess.Popen[bytes]", *, seconds: float, most: int) -> Output:
    """Wait for its end, `seconds` at most; then what is left of its group is killed. What it writes
    beyond `most` bytes is read and dropped, so that it never waits for us."""
    deadline = time.monotonic() + seconds
    said = _Said(child, most)
    try:
        while not (has_ended := _has_ended(child)) and time.monotonic() < deadline:
            said.read(min(LOOK_SECONDS, max(0.0, deadline - time.monotonic())))
        while has_ended and said.read(0.0):
            pass  # what was in the pipe already; a helper that writes on is not waited for
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # gone; zombies on macOS
            os.killpg(child.pid, signal.SIGKILL)
        status = child.wait()
        said.close()
    return Output(status if has_ended else None, bytes(said.kept), said.is_cut)


class _Said:
    """The beginning of what comes through a child's pipe."""

    def __init__(self, child: "subprocess.Popen[bytes]", most: int) -> None:
        self.kept = bytearray()
        self.is_cut = False
        self._most = most
        self._pipe = child.stdout
        self._is_open = True

    def read(self, seconds: float) -> bool:
        """Take what comes within so many seconds; whether something came and there is room."""
        if not self._is_open or self._pipe is None:
            time.sleep(seconds)
            return False
        if not select.select([self._pipe], [], [], seconds)[0]:
            return False
        chunk = os.read(self._pipe.fileno(), READ_BYTES)
        self._is_open = bool(chunk)
        room = self._most - len(self.kept)
        self.kept += chunk[:room]
        self.is_cut = self.is_cut or len(chunk) > room
        return bool(chunk) and not self.is_cut

    def close(self) -> None:
        """Whoever still writes is told by the kernel."""
        if self._pipe is not None:
            self._pipe.close()


def _has_ended(child: "subprocess.Popen[bytes]") -> bool:
    """Without reaping it where the system can look only: its number stays its group's."""
    if not hasattr(os, "waitid"):
        return child.poll() is not None
    how = os.WEXITED | os.WNOWAIT | os.WNOHANG
    return os.waitid(os.P_PID, child.pid, how) is not None
