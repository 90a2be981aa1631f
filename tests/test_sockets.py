"""Who listens on a port, while those who do come and go."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lanes import processes, sockets
from tests import fleet
from tests.ports import free_port

pytestmark = pytest.mark.process
LISTEN = "import socket, time; s = socket.create_server(('127.0.0.1', {port})); time.sleep(60)"


@contextmanager
def server(port: int = 0) -> Iterator[processes.Stat]:
    """A process of its own session that listens there, once it lives; ended at the end."""
    argv = [sys.executable, "-S", "-c", LISTEN.format(port=port)]
    with subprocess.Popen(argv, start_new_session=True) as child:
        try:
            fleet.until(lambda: processes.stat(child.pid) is not None)
            found = processes.stat(child.pid)
            assert found is not None
            fleet.until(lambda: sockets.is_owned(found.pid, found.ticks, "127.0.0.1", port) is True)
            yield found
        finally:
            child.kill()


def test_a_port_is_its_listener_s_alone() -> None:
    port = free_port()
    with server(port) as found, socket.create_server(("127.0.0.1", 0)) as other:
        strange = other.getsockname()[1]
        assert sockets.is_owned(found.pid, found.ticks, "127.0.0.1", port) is True
        assert sockets.is_owned(found.pid, found.ticks, "127.0.0.1", strange) is False


def test_a_server_that_ends_while_it_is_looked_at_is_no_stranger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    port, read = free_port(), sockets.listeners
    with server(port) as found:

        def read_and_end(*asked: object) -> list[sockets.TcpSocket]:
            rows = read(*asked)  # type: ignore[arg-type]
            os.kill(found.pid, signal.SIGKILL)
            fleet.until(lambda: processes.stat(found.pid) is None)
            return rows

        monkeypatch.setattr(sockets, "listeners", read_and_end)
        assert sockets.is_owned(found.pid, found.ticks, "127.0.0.1", port) is None
