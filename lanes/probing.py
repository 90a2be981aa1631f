"""Asking a model server: whether it is well, in a fifth of a second, and what it can do."""

import http.client
import io
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

from lanes import sockets
from lanes.engines.base import EngineAdapter
from wire.words import Words, said

PROBE_SECONDS = 0.2  # the whole of one request; a trickling answer cannot stretch it
FETCH_SECONDS = 1.0
_GUARD = said(
    "It has to ask for the key it is given: 401 without, 200 with it, at the protected path."
)
_PATH = said("Correct the preset's health path: it has to answer 200.")
MOST_LINE_BYTES, MOST_FETCHED_BYTES = 1024, 2**20


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a server of ours should answer, and to whom."""

    pid: int
    ticks: int
    address: str
    port: int
    api_key: str
    is_container: bool = False  # then the port is the Docker Engine's, for it alone


@dataclass(frozen=True, slots=True)
class Health:
    """What a probe found. `trouble`: why a server that answers is not ready, and what to try."""

    is_healthy: bool = False
    is_port_foreign: bool = False
    is_open: bool = False  # it answers without its key
    trouble: str = ""
    advice: str = ""


def probe(endpoint: Endpoint, adapter: EngineAdapter) -> Health:
    """Whether it is ready: our session owns the port before and after it answers as it should."""
    before = _owner(endpoint)
    if before is not None:
        return before
    status = _status(endpoint, adapter.health_path)
    if status != 200:
        return _unhealthy(adapter.health_path, status)
    trouble = _key_trouble(endpoint, adapter.protected_path)
    if trouble is not None:
        return trouble
    return _owner(endpoint) or Health(is_healthy=True)


def _owner(endpoint: Endpoint) -> Health | None:
    """None when the port is ours; else what is wrong with it."""
    if endpoint.is_container:
        return None
    owned = sockets.is_owned(endpoint.pid, endpoint.ticks, endpoint.address, endpoint.port)
    if owned is None:
        return Health()
    if not owned:
        words = said("Another program listens on port {port}.", port=endpoint.port)
        return Health(is_port_foreign=True, trouble=words)
    return None


def _unhealthy(path: str, status: int | None) -> Health:
    """503 is how a server says that it loads, silence says nothing; all else is no way to load."""
    if status is None or status == http.client.SERVICE_UNAVAILABLE:
        return Health()
    words = said("Its health path {path} answers {status}.", path=path, status=status)
    return Health(trouble=words, advice=_PATH)


def _key_trouble(endpoint: Endpoint, path: str | None) -> Health | None:
    """What is wrong with how it takes its key; None: nothing."""
    if path is None:
        return None
    status = _status(endpoint, path)
    if status is not None and status // 100 == 2:
        words = said("It answers without its API key at {path}.", path=path)
        return Health(is_open=True, trouble=words, advice=_GUARD)
    if status != http.client.UNAUTHORIZED:
        return Health(trouble=_without_key(path, status), advice=_GUARD)
    status = _status(endpoint, path, endpoint.api_key)
    return None if status == 200 else Health(trouble=_with_key(path, status), advice=_GUARD)


def _without_key(path: str, status: int | None) -> Words:
    if status is None:
        return said("{path} does not answer without its API key, instead of 401.", path=path)
    return said(
        "{path} answers {status} without its API key, instead of 401.", path=path, status=status
    )


def _with_key(path: str, status: int | None) -> Words:
    if status is None:
        return said("{path} does not answer with its API key, instead of 200.", path=path)
    return said(
        "{path} answers {status} with its API key, instead of 200.", path=path, status=status
    )


def fetch(endpoint: Endpoint, path: str) -> bytes | None:
    """What a GET with the key is answered with 200 within a second, else None."""
    answer = _exchange(endpoint, path, endpoint.api_key, seconds=FETCH_SECONDS, enough=_is_long)
    try:
        with http.client.HTTPResponse(_Received(answer)) as response:  # type: ignore[arg-type]
            response.begin()
            return response.read() if response.status == http.client.OK else None
    except (http.client.HTTPException, OSError, ValueError):
        return None


class _Received(io.BytesIO):
    """Bytes that http.client reads as if they came from a socket."""

    def makefile(self, _: str) -> io.BytesIO:
        """Themselves."""
        return self


def _status(endpoint: Endpoint, path: str, key: str = "") -> int | None:
    """Status of a GET, or None when there was no answer in time."""
    answer = _exchange(endpoint, path, key, seconds=PROBE_SECONDS, enough=_has_line)
    words = answer.split(b" ", 2)
    is_http = words[0].startswith(b"HTTP/") and len(words) > 1 and words[1][:3].isdigit()
    return int(words[1][:3]) if is_http and _has_line(answer) else None


def _exchange(
    endpoint: Endpoint, path: str, key: str, *, seconds: float, enough: Callable[[bytes], bool]
) -> bytes:
    """What comes back of a GET until it is enough, the server closes or the time is over."""
    deadline = time.monotonic() + seconds
    head = f"GET {path} HTTP/1.1\r\nHost: {endpoint.address}\r\nConnection: close\r\n"
    if key:
        head += f"Authorization: Bearer {key}\r\n"
    answer = b""
    try:
        address = (endpoint.address, endpoint.port)
        with socket.create_connection(address, timeout=seconds) as connection:
            connection.sendall(f"{head}\r\n".encode())
            while not enough(answer) and (left := deadline - time.monotonic()) > 0:
                connection.settimeout(left)
                chunk = connection.recv(65536)
                if not chunk:
                    break
                answer += chunk
    except OSError:
        pass  # what came until then may do
    return answer


def _has_line(answer: bytes) -> bool:
    return b"\r\n" in answer or len(answer) >= MOST_LINE_BYTES


def _is_long(answer: bytes) -> bool:
    return len(answer) >= MOST_FETCHED_BYTES
