"""What the Docker Engine says of containers that were left, asked in a thread of its own.

No look waits for it: an engine that accepts and never answers holds up nobody but the lanes whose
containers it has, and they are taken for occupied until it has said that nothing is left.
"""

import logging
import threading
import time
from dataclasses import dataclass, field

from lanes import records
from lanes.containers import leftovers
from lanes.containers.docker_engine import ContainerError

log = logging.getLogger(__name__)
AGAIN_SECONDS = 1.0  # after an engine that does not answer
LOCK_SECONDS = 2.0  # how long the look that asked, or another, is waited for
_POLL_SECONDS = 0.02


@dataclass(slots=True)
class _State:
    """What the thread shares with looks, under one lock."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    asked: set[int] = field(default_factory=set)  # lanes
    thread: threading.Thread | None = None
    trouble: str = ""


_state = _State()


def has_left(record: records.Record | None) -> bool:
    """Whether a container of this lane may still live. If so, what is left will be removed."""
    if record is None or not leftovers.may_be_left(record):
        return False
    with _state.lock:
        _state.asked.add(record.lane)
        if _state.thread is None:
            _state.thread = threading.Thread(target=_run, name="containers", daemon=True)
            _state.thread.start()
    return True


def sweep() -> None:
    """Have containers removed of lanes whose shim is gone."""
    for lane_pk in records.recorded_lanes():
        record = records.read_record(lane_pk)
        if record is not None and not record.is_shim_alive:
            has_left(record)


def trouble(record: records.Record | None) -> str:
    """Why it is not known what is left of this lane; empty: it is, or is being asked."""
    return _state.trouble if leftovers.may_be_left(record) else ""


def _run() -> None:
    while lanes := _taken():
        words = _asked(lanes)
        if words and words != _state.trouble:
            log.warning("containers not seen reason=%s", words)
        _state.trouble = words
        if words:
            time.sleep(AGAIN_SECONDS)


def _taken() -> set[int]:
    """The lanes to ask about; none: the thread ends, and the next who asks begins another."""
    with _state.lock:
        lanes, _state.asked = _state.asked, set()
        if not lanes:
            _state.thread = None
    return lanes


def _asked(lanes: set[int]) -> str:
    """Clear them; why that is not possible, for all. They are asked about again by their looks."""
    for lane_pk in lanes:
        try:
            _clear(lane_pk)
        except ContainerError as error:
            return error.words
        except Exception:
            log.exception("containers not seen lane=%s", lane_pk)
    return ""


def _clear(lane_pk: int) -> None:
    deadline = time.monotonic() + LOCK_SECONDS
    while time.monotonic() < deadline:
        with records.look_lock(lane_pk) as is_ours:
            if is_ours:
                leftovers.clear(lane_pk)
                return
        time.sleep(_POLL_SECONDS)
