"""Real model servers for tests: a fake engine, orders by hand, and looks until something is so."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

import psutil
from django.conf import settings
from django.db import connection

from lanes import clock, processes, records, supervisor
from lanes.engines import llama_facts, llama_flags
from lanes.engines.base import EngineAdapter, Kept, Launch, ServerFacts, ServerSpec
from lanes.failures.causes import FailureWords
from lanes.models import Lane, Order, Preset, Runtime
from tests import builders
from wire.sealing import Sealer, read_table_keys

SERVERS = Path(__file__).parent / "servers"
WORKER_SETTINGS = (
    "SLOTSERVE_DATA",
    "SLOTSERVE_HOST_KEY",
    "SLOTSERVE_PORT_FIRST",
    "SLOTSERVE_PORT_LAST",
    "SLOTSERVE_DRAIN_SECONDS",
    "SLOTSERVE_STOP_TIMEOUT_SECONDS",
    "SLOTSERVE_LOAD_TIMEOUT_SECONDS",
    "SLOTSERVE_DOCKER_SOCKET",
    "REDIS_URL",
)
NO_PROGRAM = "/no/such/program"


class FakeEngine(EngineAdapter):
    """Starts one of tests/servers: the preset's first argument names it."""

    health_path = "/health"
    protected_path: str | None = "/props"
    facts_path: str | None = "/props"
    failure_words = FailureWords(
        "test server",
        gpu_memory="Lower -c.",
        host_memory="Lower -c.",
        error_lines=re.compile("^(.+)$"),
    )

    def arguments(self, given: Sequence[str]) -> Kept:
        """As llama-server's."""
        return llama_flags.without_owned(given)

    def variables(self, given: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
        """As llama-server's."""
        return llama_flags.allowed_environment(given)

    def launch(self, spec: ServerSpec) -> Launch:
        """The program, told its address and key by the environment."""
        program = SERVERS / f"{spec.arguments[0]}.py"
        environment = {
            "TEST_ADDRESS": spec.address,
            "TEST_PORT": str(spec.port),
            "TEST_API_KEY": spec.api_key,
            "TEST_STARTS": str(Path(settings.SLOTSERVE_DATA) / "starts"),
            "PYTHONPATH": str(SERVERS.parent.parent),
        }
        python = NO_PROGRAM if spec.arguments[0] == NO_PROGRAM else sys.executable
        return Launch((python, "-S", str(program)), environment)

    def facts(self, arguments: Sequence[str], answer: bytes | None) -> ServerFacts:
        """As llama-server's."""
        return llama_facts.facts(arguments, answer)


def preset(kind: str = "good") -> Preset:
    """A preset that runs tests/servers/<kind>.py."""
    return builders.preset(arguments=[kind])


def order(
    lane: Lane, wanted: Preset | None, *, is_reload: bool = False, is_fresh: bool = False
) -> Order:
    """The lane's next order, as a planner would write it."""
    now = clock.database_now()
    made, _ = Order.objects.get_or_create(
        lane=lane, defaults={"sentence": "test", "ordered_at": now, "decided_at": now}
    )
    made.target = wanted.current if wanted else None
    made.generation += 1
    made.is_reload = is_reload
    if is_reload or is_fresh:
        made.fresh_from = made.generation
    made.save()
    return made


def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Poll until it is so."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds} s")
        time.sleep(0.01)


def look_until(lane: Lane, condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Look at the lane again and again, as its worker does, until it is so."""

    def looked() -> bool:
        supervisor.look(lane.pk)
        return condition()

    until(looked, seconds)


def newest(lane: Lane) -> Runtime | None:
    """The lane's newest runtime."""
    return Runtime.objects.filter(lane=lane).order_by("-pk").first()


def is_phase(lane: Lane, phase: str, generation: int | None = None) -> Callable[[], bool]:
    """Whether the newest runtime is in this phase (of this generation)."""

    def is_so() -> bool:
        runtime = newest(lane)
        if runtime is None or runtime.phase != phase:
            return False
        return generation is None or runtime.generation == generation

    return is_so


def make_ready(lane: Lane, wanted: Preset) -> Runtime:
    """Order it and look until it is ready."""
    made = order(lane, wanted)
    look_until(lane, is_phase(lane, "ready", made.generation))
    runtime = newest(lane)
    assert runtime is not None
    return runtime


def key_of(runtime: Runtime) -> str:
    """The server's API key."""
    key = Sealer(read_table_keys()).open(runtime.sealed_key)
    assert key is not None
    return key


def kill(pid: int) -> None:
    """End a process as a person would: kill -9."""
    os.kill(pid, signal.SIGKILL)


def servers(lane_pk: int | None = None) -> list[int]:
    """Processes of this installation (of one lane) but the shims."""
    found = processes.of_installation(records.installation_id(), lane_pk)
    return [s.pid for s in found if processes.SHIM not in processes.environment(s.pid)]


def processes_of(installation: str) -> list[int]:
    """Every living process that carries this installation's name, found without our own code."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() == psutil.STATUS_ZOMBIE or process.pid == os.getpid():
                continue
            if process.environ().get("SLOTSERVE_INSTALLATION") == installation:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


class Foreigner:
    """A server that is not ours: it says 200 to everything, or what it is told to."""

    def __init__(self, answer: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") -> None:
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                connection.sendall(self._answer)


class Worker:
    """A worker process that looks at lanes until it is killed."""

    def __init__(self, *lanes: Lane, die_at: str = "") -> None:
        told = {
            "database": str(connection.settings_dict["NAME"]),
            "settings": {name: _plain(getattr(settings, name)) for name in WORKER_SETTINGS},
            "lanes": [lane.pk for lane in lanes],
            "die_at": die_at,
        }
        argv = [sys.executable, "-m", "tests.worker_program", json.dumps(told)]
        log = settings.SLOTSERVE_DATA / f"worker-{time.monotonic_ns()}.log"
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                argv, cwd=SERVERS.parent.parent, stdout=output, stderr=output
            )

    def kill(self) -> None:
        """kill -9, as an operator or the kernel does."""
        self.process.kill()
        self.process.wait()

    def wait(self) -> int:
        """Its exit status, once it ended by itself."""
        return self.process.wait(timeout=60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def starts(lane: Lane) -> list[str]:
    """A line for each server that began on the lane: its pid, or DOUBLE when another ran."""
    path = Path(settings.SLOTSERVE_DATA) / f"starts-{lane.pk}"
    return path.read_text().split() if path.exists() else []


def _plain(value: object) -> object:
    return str(value) if isinstance(value, Path) else value
