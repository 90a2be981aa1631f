"""`python -m gateway.edge` as a process: its settings, its socket, its end."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import redis

from tests.conftest import ValkeyServer
from tests.ports import free_port
from wire.edges import EDGES, decode_report

pytestmark = [pytest.mark.valkey, pytest.mark.process]
ROOT = Path(__file__).resolve().parent.parent


def _start(port: int, **settings: str) -> "subprocess.Popen[str]":
    environment = {**os.environ, "SLOTSERVE_TABLE_KEYS": "k" * 40} | settings
    return subprocess.Popen(
        [sys.executable, "-m", "gateway.edge", "--host", "127.0.0.1", "--port", str(port)],
        cwd=ROOT,
        env={name: value for name, value in environment.items() if value},
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def edge(valkey_server: ValkeyServer, port: int) -> Iterator["subprocess.Popen[str]"]:
    process = _start(port, REDIS_URL=valkey_server.url, SLOTSERVE_EDGE_ID="an-edge")
    yield process
    process.kill()
    process.communicate()


def _until_up(port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            url = f"http://127.0.0.1:{port}/health"
            if httpx.get(url, verify=False, timeout=60).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.02)
    raise TimeoutError


def test_it_serves_and_takes_its_leave_on_term(
    edge: "subprocess.Popen[str]", port: int, valkey_server: ValkeyServer
) -> None:
    _until_up(port)
    answer = httpx.post(f"http://127.0.0.1:{port}/v1/chat/completions", json={})
    assert answer.json()["error"]["code"] == "gateway_starting"
    assert "server" not in answer.headers
    edge.send_signal(signal.SIGTERM)
    edge.communicate(timeout=60)
    client = redis.Redis.from_url(valkey_server.url)
    payload = client.hget(EDGES, "an-edge")
    client.close()
    assert isinstance(payload, bytes)
    report = decode_report("an-edge", payload)
    assert report is not None
    assert report.goodbye


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"SLOTSERVE_TABLE_KEYS": "short"}, "SLOTSERVE_TABLE_KEYS needs at least one key"),
        ({"SLOTSERVE_TABLE_KEYS": "", "SLOTSERVE_DATA": "/nowhere"}, "cannot be read"),
        ({"SLOTSERVE_TABLE_MAX_AGE": "soon"}, "SLOTSERVE_TABLE_MAX_AGE='soon' is not a number"),
        ({"REDIS_URL": "http://x"}, "REDIS_URL: give redis://"),
        ({"SLOTSERVE_CORS_ORIGINS": "https://x.org/"}, "'https://x.org/' is no origin"),
    ],
)
def test_a_setting_that_cannot_be_used_is_one_sentence(
    port: int, settings: dict[str, str], words: str
) -> None:
    process = _start(port, **settings)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert errors.count("\n") == 1
    assert words in errors


def test_a_port_in_use_is_one_sentence(port: int) -> None:
    with socket.create_server(("127.0.0.1", port)):
        process = _start(port)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert errors == (
        f"the gateway cannot start: 127.0.0.1:{port} cannot be listened on "
        "(Address already in use); choose another --port\n"
    )
