"""`python -m lanes.containers.attendant`: one container from its making to its removal.

It stands where the model server's process would: prints the container's output, hands TERM on, and
ends with the container's exit status. `--remove` only removes what is left of the lane, and is run
after it by the shim, so that a lane stays locked until its container is gone.
Exit codes of its own: 64 it was told nonsense, 70 the Docker Engine does not do it.
"""

import os
import signal
import struct
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import docker
import urllib3
from docker.errors import NotFound
from docker.models.containers import Container

from lanes.containers import docker_engine, notes
from lanes.containers.docker_engine import CALLS_THAT_FAIL, ContainerError
from lanes.containers.order import VARIABLE, ContainerOrder, from_text, lane_filter

NO_ORDER, ENGINE_FAILED, VANISHED = 64, 70, 71
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)
LOG_SECONDS = 2.0  # how long what is left of the output is read after the end
_AGAIN_SECONDS = 1.0
_LOOK_SECONDS = 0.2
# A stream that breaks off is read by urllib3 and unpacked by the docker package.
_STREAMS_THAT_FAIL = (*CALLS_THAT_FAIL, urllib3.exceptions.HTTPError, struct.error, OSError)


def main(arguments: list[str], environment: Mapping[str, str]) -> int:
    """Attend to one container; the exit status."""
    try:
        order = from_text(environment[VARIABLE])
    except (KeyError, ValueError, TypeError):
        _say(f"{VARIABLE} does not hold a container's order")
        return NO_ORDER
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # taken one by one, none in between
    try:
        with docker_engine.connected(order.socket) as client:
            _remove_leftovers(client, order)
        return 0 if arguments == ["--remove"] else _attend(order)
    except ContainerError as error:
        _say(str(error))
        return ENGINE_FAILED


def _attend(order: ContainerOrder) -> int:
    """Make it, start it, wait for its end, remove it."""
    if signal.sigtimedwait(SIGNALS, 0) is not None:
        return _by_signal(signal.SIGTERM)  # we were asked to end before it began
    if order.note_path:
        Path(order.note_path).unlink(missing_ok=True)  # an earlier one's process is another's now
    endless = docker_engine.ENDLESS_SECONDS
    with (
        docker_engine.connected(order.socket) as calls,
        docker_engine.connected(order.socket, endless) as following,
    ):
        container = docker_engine.create(calls, order)
        try:
            docker_engine.start(container)
            _note(container, order.note_path)
            return _Waiting(container, following).wait()
        finally:
            _remove(container)


def _remove(container: Container) -> None:
    """What stays is removed by the shim's next step, or by a look: its exit status is known."""
    try:
        docker_engine.remove([container])
    except ContainerError as error:
        _say(str(error))


def _remove_leftovers(client: docker.DockerClient, order: ContainerOrder) -> None:
    """What an attendant that was killed left of this lane; nothing starts beside it."""
    left = docker_engine.ours(client, lane_filter(order.labels))
    if left:
        _say(f"removing what was left: {', '.join(str(one.name) for one in left)}")
        docker_engine.remove(left)


class _Waiting:
    """Waits for a container's end in one thread, copies its output in another."""

    def __init__(self, container: Container, following: docker.DockerClient) -> None:
        self._container = container
        self._followed = following.api  # its calls last as long as a server
        self._status: int | None = None
        self._since = 0.0  # output up to here has been copied
        self._waiter = threading.Thread(target=self._wait_for_end, daemon=True)
        self._copier = threading.Thread(target=self._copy_output, daemon=True)

    def wait(self) -> int:
        """Its exit status; TERM is handed on meanwhile."""
        self._waiter.start()
        self._copier.start()
        while self._status is None:
            taken = signal.sigtimedwait(SIGNALS, _LOOK_SECONDS)
            if taken is not None and taken.si_signo in (signal.SIGTERM, signal.SIGINT):
                docker_engine.send(self._container, "SIGTERM")
        self._copier.join(LOG_SECONDS)
        return self._status

    def _wait_for_end(self) -> None:
        """An engine that is away is waited for: the container may live on."""
        status: int | None = None
        while status is None:
            status = self._ask()
        self._status = status
        os.kill(os.getpid(), signal.SIGUSR1)

    def _ask(self) -> int | None:
        try:
            code = int(self._followed.wait(str(self._container.id))["StatusCode"])
        except NotFound:
            _say("the container was removed by somebody else")
            return VANISHED
        except CALLS_THAT_FAIL:
            time.sleep(_AGAIN_SECONDS)
            return None
        if self._was_killed_for_memory():
            _say("the container was killed: out of memory (OOMKilled)")
        return code

    def _was_killed_for_memory(self) -> bool:
        try:
            self._container.reload()
        except CALLS_THAT_FAIL:
            return False  # somebody has removed it meanwhile
        return bool(self._container.attrs["State"].get("OOMKilled"))

    def _copy_output(self) -> None:
        while True:
            try:
                self._copy_once()
            except _STREAMS_THAT_FAIL:
                time.sleep(_AGAIN_SECONDS)
            if self._status is not None:
                return

    def _copy_once(self) -> None:
        since = self._since or None
        name = str(self._container.id)
        for chunk in self._followed.logs(name, stream=True, follow=True, since=since):
            _write(chunk)
            self._since = time.time()
        if self._status is None:
            time.sleep(_LOOK_SECONDS)  # it has ended, which the waiter is about to say


def _note(container: Container, path: str) -> None:
    """Which it is, for those who look at its processes and their sockets."""
    if path:
        container.reload()
        pid = int(container.attrs["State"]["Pid"])
        notes.write(Path(path), notes.Note(str(container.id), pid))


def _by_signal(number: signal.Signals) -> int:
    """What a shell would call the end by this signal."""
    return 128 + number


def _say(words: str) -> None:
    _write(f"slotserve: {words}\n".encode())


def _write(data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(1, left) :]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
