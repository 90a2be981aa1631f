"""One health probe of a model server, over before a fifth of a second has passed."""

import socket
import time
from dataclasses import dataclass

from lanes import sockets
from lanes.engines.base import EngineAdapter

PROBE_SECONDS = 0.2  # the whole of one request; a trickling answer cannot stretch it


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a server of ours should answer, and to whom."""

    pid: int
    ticks: int
    address: str
    port: int
    api_key: str


@dataclass(frozen=True, slots=True)
class Health:
    """What a probe found. `trouble`: why an answering server is not ready."""

    is_healthy: bool = False
    is_port_foreign: bool = False
    trouble: str = ""


def probe(endpoint: Endpoint, adapter: EngineAdapter) -> Health:
    """Whether it is ready: our session owns the port before and after it answers as it should."""
    before = _owner(endpoint)
    if before is not None:
        return before
    if _status(endpoint, adapter.health_path) != 200:
        return Health()
    trouble = _key_trouble(endpoint, adapter.protected_path)
    if trouble:
        return Health(trouble=trouble)
    return _owner(endpoint) or Health(is_healthy=True)


def _owner(endpoint: Endpoint) -> Health | None:
    """None when the port is ours; else what is wrong with it."""
    owned = sockets.is_owned(endpoint.pid, endpoint.ticks, endpoint.address, endpoint.port)
    if owned is None:
        return Health()
    if not owned:
        words = f"another program listens on port {endpoint.port}"
        return Health(is_port_foreign=True, trouble=words)
    return None


def _key_trouble(endpoint: Endpoint, path: str | None) -> str:
    if path is None:
        return ""
    if _status(endpoint, path) != 401:
        return "it answers without its API key"
    if _status(endpoint, path, endpoint.api_key) != 200:
        return "it does not accept its API key"
    return ""


def _status(endpoint: Endpoint, path: str, key: str = "") -> int | None:
    """Status of a GET, or None when there was no answer in time."""
    deadline = time.monotonic() + PROBE_SECONDS
    head = f"GET {path} HTTP/1.1\r\nHost: {endpoint.address}\r\nConnection: close\r\n"
    if key:
        head += f"Authorization: Bearer {key}\r\n"
    try:
        address = (endpoint.address, endpoint.port)
        with socket.create_connection(address, timeout=PROBE_SECONDS) as connection:
            connection.sendall(f"{head}\r\n".encode())
            return _read_status(connection, deadline)
    except OSError:
        return None


def _read_status(connection: socket.socket, deadline: float) -> int | None:
    answer = b""
    while b"\r\n" not in answer and len(answer) < 1024:
        left = deadline - time.monotonic()
        if left <= 0:
            return None
        connection.settimeout(left)
        chunk = connection.recv(1024)
        if not chunk:
            return None
        answer += chunk
    words = answer.split(b" ", 2)
    is_http = words[0].startswith(b"HTTP/") and len(words) > 1 and words[1][:3].isdigit()
    return int(words[1][:3]) if is_http else None
