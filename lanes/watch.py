"""Has a lane looked at as soon as its shim ends: one thread a worker, one pidfd a shim.

It only makes the next look sooner. Shims that this worker started are reaped here too.
"""

import logging
import os
import select
import subprocess
import threading
from dataclasses import dataclass, field

from lanes import processes, ticks

log = logging.getLogger(__name__)
POLL_SECONDS = 0.2  # where the kernel has no pidfd


@dataclass(frozen=True, slots=True)
class _Watched:
    lane_pk: int
    host_key: str
    pid: int
    ticks: int


@dataclass(slots=True)
class _State:
    """Everything the thread shares with looks, under one lock."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    by_pid: dict[int, _Watched] = field(default_factory=dict)
    children: dict[int, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    shims: dict[int, "subprocess.Popen[bytes]"] = field(default_factory=dict)  # newest, by lane
    thread: threading.Thread | None = None
    wake: int | None = None  # written to when a shim is added


_state = _State()


def adopt(lane_pk: int, host_key: str, shim_pid: int, shim_ticks: int) -> None:
    """Watch a living shim; watching it already changes nothing."""
    with _state.lock:
        if shim_pid in _state.by_pid:
            return
        _state.by_pid[shim_pid] = _Watched(lane_pk, host_key, shim_pid, shim_ticks)
        if _state.thread is None or not _state.thread.is_alive():
            _start_thread()
        if _state.wake is not None:
            os.write(_state.wake, b".")


def is_watched(shim_pid: int) -> bool:
    """Whether the end of this shim will lead to a look."""
    with _state.lock:
        return shim_pid in _state.by_pid


def own(child: "subprocess.Popen[bytes]", lane_pk: int, host_key: str) -> None:
    """Watch a shim that this process has just started, and reap it at its end."""
    found = processes.stat(child.pid)
    with _state.lock:
        _state.children[child.pid] = _state.shims[lane_pk] = child
    if found is not None:
        adopt(lane_pk, host_key, child.pid, found.ticks)


def shim_status(lane_pk: int) -> int | None:
    """How the shim ended that this process started last on the lane; None: it lives, or there was
    none."""
    with _state.lock:
        child = _state.shims.get(lane_pk)
        return child.poll() if child is not None else None


def reap() -> None:
    """Bury children that have ended; one that is not watched would stay a zombie."""
    with _state.lock:
        ended = [pid for pid, child in _state.children.items() if child.poll() is not None]
        for pid in ended:
            del _state.children[pid]


def _start_thread() -> None:
    reading, _state.wake = os.pipe()
    _state.thread = threading.Thread(target=_run, args=(reading,), name="shim-watch", daemon=True)
    _state.thread.start()


def _run(wake: int) -> None:
    handles: dict[int, _Watched] = {}
    poll = select.poll()
    poll.register(wake, select.POLLIN)
    while True:
        for handle, _event in poll.poll(None if hasattr(os, "pidfd_open") else POLL_SECONDS * 1000):
            if handle == wake:
                os.read(wake, 4096)
            else:
                poll.unregister(handle)
                os.close(handle)
                _ended(handles.pop(handle))
        for handle, watched in _open_new(handles):
            handles[handle] = watched
            poll.register(handle, select.POLLIN)


def _open_new(handles: dict[int, _Watched]) -> list[tuple[int, _Watched]]:
    """A handle for each shim that has none yet; those that are gone already are told at once."""
    with _state.lock:
        waiting = [w for w in _state.by_pid.values() if w not in handles.values()]
    opened = []
    for watched in waiting:
        handle = _open(watched)
        if not processes.is_alive(watched.pid, watched.ticks):
            if handle is not None:
                os.close(handle)
            _ended(watched)
        elif handle is not None:
            opened.append((handle, watched))
    return opened


def _open(watched: _Watched) -> int | None:
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(watched.pid)
    except OSError:
        return None


def _ended(watched: _Watched) -> None:
    with _state.lock:
        _state.by_pid.pop(watched.pid, None)
    reap()
    log.info("shim ended lane=%s pid=%s", watched.lane_pk, watched.pid)
    ticks.request_look(watched.lane_pk, watched.host_key)
