"""Owns one model server: holds its lane's lock, records it, starts it, buries it.

Started as a script (`python -I shim.py`) that reads one JSON object from its standard input, so
that no secret is in argv or on disk. Standard library only: it must start fast and outlive the
worker.
Exit codes: those of `lanes.shim_status`; 1 when it failed itself, as with a full disk.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent))
from lanes.failures.kernel import MemoryWatch
from lanes.logs import RotatingLog, without_secret
from lanes.shim_status import LOCKED, NO_ORDER, NOT_STARTED, TOO_LATE

LOCK_SECONDS = 0.5  # a look tests the lock for an instant: that must not turn a shim away
LOG_SECONDS = 1.0  # how long what is left in the pipe is read after the end
AFTERWARDS_SECONDS = 60.0  # for what removes a server that is no process of ours
WAIT_SECONDS = 5.0  # between looks at the server; its end wakes the shim at once
PR_SET_PDEATHSIG = 1
IS_LINUX = sys.platform == "linux"
if not IS_LINUX:
    import psutil


def main() -> int:
    """Lock, record, start, wait, kill what is left, reap, record: in this order."""
    try:
        order: dict[str, Any] = json.loads(sys.stdin.buffer.read())
    except ValueError:
        return NO_ORDER  # the worker died while it was writing
    os.umask(0o077)
    lock = _lock(order["lock_path"])
    if lock is None:
        return LOCKED
    if time.monotonic() > order["start_by"]:
        return TOO_LATE  # whoever asked has given this server up
    record = {**order["record"], "shim_pid": os.getpid(), "shim_ticks": _ticks(os.getpid())}
    _write(order["record_path"], record)
    server = _Server()
    waking = _outlive_terminals(server)
    memory = MemoryWatch()
    try:
        server.process = _start(order, lock)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        _write(order["record_path"], {**record, "exit_status": 127, "error": str(error)})
        with RotatingLog(order["log_path"], order["log_bytes"]) as log:
            log.write(f"slotserve: it could not be started: {error}\n".encode())
        return NOT_STARTED
    pid = server.process.pid
    record |= {"pid": pid, "ticks": _ticks(pid)}
    _write(order["record_path"], record)
    reader = _copy_output(server.process, order)
    status = _bury(server.process, waking, memory)
    server.process = None  # its number may be another's from now on
    reader.join(LOG_SECONDS)
    record |= {"exit_status": status, **memory.word_about(pid)}
    _write(order["record_path"], record)
    _clean_up(order)
    return 0


class _Server:
    """What the signal handler needs to know."""

    process: "subprocess.Popen[bytes] | None" = None


def _lock(path: str) -> int | None:
    """The lane's lock, which every descendant inherits, or None when somebody has it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(handle)
                return None
            time.sleep(0.01)


def _outlive_terminals(server: _Server) -> int:
    """Let hang-ups and Ctrl-C pass and hand TERM on; a descriptor that every signal wakes.

    Handlers, as ignored signals would be inherited. The descriptor, as a signal that comes right
    before a wait, or to the other thread, would not end the wait.
    """
    waking, woken = os.pipe()
    for handle in (waking, woken):
        os.set_blocking(handle, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGCHLD):
        signal.signal(number, lambda _number, _frame: None)

    def hand_on(number: int, _frame: object) -> None:
        if server.process is not None:
            _signal_group(server.process.pid, number)

    signal.signal(signal.SIGTERM, hand_on)
    return waking


def _start(order: dict[str, Any], lock: int) -> "subprocess.Popen[bytes]":
    """The server in its own session, with the lock; it dies with this thread (the main one)."""
    run_as: dict[str, Any] = order["run_as"] or {}
    return subprocess.Popen(
        order["argv"],
        env=order["environment"],
        cwd=order["folder"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        bufsize=0,
        start_new_session=True,
        pass_fds=[lock],
        preexec_fn=_die_with(os.getpid()) if IS_LINUX else None,  # noqa: PLW1509 - no thread yet
        **run_as,
    )


def _die_with(shim: int) -> Callable[[], None]:
    """Run in the child after its user was changed: the kernel forgets the wish at setuid."""
    prctl = ctypes.CDLL(None).prctl

    def ask() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != shim:  # it died before the wish was made
            os._exit(NOT_STARTED)

    return ask


def _bury(process: "subprocess.Popen[bytes]", waking: int, memory: MemoryWatch) -> int:
    """Wait for the end and kill what is left of the group before its number can be used again."""
    while not _has_ended(process):
        woken, _, _ = select.select([waking], [], [], WAIT_SECONDS)
        if not woken:
            memory.look()
        with contextlib.suppress(BlockingIOError):
            os.read(waking, 4096)
    _signal_group(process.pid, signal.SIGKILL)
    return process.wait()


def _clean_up(order: dict[str, Any]) -> None:
    """Remove what is not of the group, such as a container, while the lane is locked still."""
    if not order.get("afterwards"):
        return
    with contextlib.suppress(OSError, subprocess.SubprocessError):  # looks see what is left
        subprocess.run(
            order["afterwards"],
            env={**order["environment"], "SLOTSERVE_SHIM": "1"},  # it ends with the shim
            cwd=order["folder"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=AFTERWARDS_SECONDS,
            check=False,
        )


def _has_ended(process: "subprocess.Popen[bytes]") -> bool:
    """Whether it ended, without reaping it where the system can look only."""
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    how = os.WEXITED | os.WNOWAIT | os.WNOHANG
    return os.waitid(os.P_PID, process.pid, how) is not None


def _signal_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # gone; zombies on macOS
        os.killpg(pid, number)


def _copy_output(process: "subprocess.Popen[bytes]", order: dict[str, Any]) -> threading.Thread:
    """Copy the server's output to its log, beside the main thread, which waits."""
    if process.stdout is None:
        raise ValueError("the server was started without a pipe")
    stream = process.stdout  # held: when nobody holds it it is closed, whatever is left in it

    def copy() -> None:
        secret, held = order.get("secret", "").encode(), b""  # older workers say none
        with stream, RotatingLog(order["log_path"], order["log_bytes"]) as log:
            while chunk := os.read(stream.fileno(), 65536):
                told, held = without_secret(held + chunk, secret)
                log.write(told)
            log.write(held)

    reader = threading.Thread(target=copy, daemon=True)
    reader.start()
    return reader


def _write(path: str, record: dict[str, Any]) -> None:
    """Replace the record in one step, so that a reader sees the old one or the new one."""
    draft = f"{path}.{os.getpid()}"
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(handle, json.dumps(record).encode())
        os.fsync(handle)
    finally:
        os.close(handle)
    os.replace(draft, path)


def _ticks(pid: int) -> int:
    """Start of a process in kernel ticks since boot, as `lanes.processes.stat` gives it."""
    if IS_LINUX:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")  # names are any bytes
        return int(text[text.rindex(")") + 2 :].split()[19])
    return round((psutil.Process(pid).create_time() - psutil.boot_time()) * 100)


if __name__ == "__main__":
    sys.exit(main())
