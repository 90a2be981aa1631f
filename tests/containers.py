"""A fake Docker Engine for tests, and attendants that run beside it."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
import httpx
from django.conf import settings

from lanes.containers.order import VARIABLE, ContainerOrder, labels, to_text
from lanes.models import ModelFile, Preset
from tests import fleet

ROOT = Path(__file__).resolve().parent.parent
INSTALLATION = "0123456789abcdef"
SECONDS = 60.0
Attendant = subprocess.Popen[bytes]
Attend = Callable[..., Attendant]
# A program that says its arguments and ends as it is told.
TALKER = """
import os, signal, sys, time
if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, lambda *_: os.write(1, b"no\\n"))
elif "polite" in sys.argv:
    signal.signal(signal.SIGTERM, lambda *_: os.write(1, b"bye\\n") and os._exit(7))
print("begun with", *sys.argv[1:], flush=True)
if "ends" in sys.argv:
    sys.exit(3)
while True:
    time.sleep(0.05)
"""


class FakeDocker:
    """The engine, and a client of it."""

    def __init__(self, folder: Path, images: dict[str, list[str]]) -> None:
        self.socket = folder / "d.sock"
        self._images = folder / "images.json"
        self._images.write_text(json.dumps(images))
        self._process: subprocess.Popen[bytes] | None = None
        self.client = docker.DockerClient(
            base_url=f"unix://{self.socket}", version="1.47", timeout=int(SECONDS)
        )

    def start(self) -> None:
        argv = [sys.executable, "-m", "tests.fake_docker", str(self.socket), str(self._images)]
        self._process = subprocess.Popen(argv, cwd=ROOT)
        until(self.socket.exists)

    def hang(self) -> None:
        """From now on it accepts and does not answer; its containers go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def recover(self) -> None:
        """Answer again, also who has waited."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """End it, and its containers with it."""
        if self._process is not None:
            self.recover()
            self._process.terminate()
            self._process.wait(SECONDS)
            self._process = None
        self.client.api.close()

    def containers(self) -> list[Any]:
        return list(self.client.containers.list(all=True, ignore_removed=True))

    def out_of_memory(self) -> None:
        """End the only container as the kernel would."""
        (container,) = self.containers()
        transport = httpx.HTTPTransport(uds=str(self.socket))
        with httpx.Client(transport=transport, base_url="http://engine") as client:
            client.post(f"/test/{container.id}/oom").raise_for_status()


@contextmanager
def fake_docker(images: dict[str, list[str]]) -> Iterator[FakeDocker]:
    """Started, and ended at the end. Its folder's name is short, as a socket's path must be."""
    with tempfile.TemporaryDirectory(prefix="ssd-") as folder:
        engine = FakeDocker(Path(folder), images)
        try:
            engine.start()
            yield engine
        finally:
            engine.stop()


def order_of(engine: FakeDocker, *command: str, port: int, **changes: Any) -> ContainerOrder:
    """A container of the image `talker` for lane 1."""
    told: dict[str, Any] = {
        "socket": str(engine.socket),
        "name": "slotserve-01234567-lane1-g1",
        "image": "talker",
        "entry_point": (),
        "command": command,
        "environment": {"KEY": "secret"},
        "labels": labels(INSTALLATION, 1, 1),
        "address": "127.0.0.1",
        "port": port,
    }
    return ContainerOrder(**(told | changes))


@contextmanager
def attendants() -> Iterator[Attend]:
    """Starts attendants of orders; those that still run at the end are killed."""
    started: list[Attendant] = []

    def attend(order: ContainerOrder, *arguments: str) -> Attendant:
        argv = [sys.executable, "-m", "lanes.containers.attendant", *arguments]
        env = {"PATH": os.environ["PATH"], VARIABLE: to_text(order)}
        started.append(subprocess.Popen(argv, cwd=ROOT, env=env, stdout=subprocess.PIPE))
        return started[-1]

    try:
        yield attend
    finally:
        for attendant in started:
            attendant.kill()
            attendant.wait()
            if attendant.stdout is not None:
                attendant.stdout.close()


def python_image() -> list[str]:
    """The entry point of an image that runs this Python, for `contained`."""
    return ["env", f"PYTHONPATH={ROOT}", sys.executable]


def contained(kind: str = "good", image: str = "toy") -> Preset:
    """A preset that runs tests/servers/<kind>.py in a container."""
    preset = fleet.preset(kind)
    assert preset.current is not None
    preset.current.image = image
    preset.current.save()
    path = Path(settings.SLOTSERVE_DATA) / "models" / f"{preset.slug}.gguf"
    path.parent.mkdir(exist_ok=True)
    path.touch()
    ModelFile.objects.filter(pk=preset.current.model_file_id).update(path=str(path))
    return preset


def until(condition: Callable[[], object]) -> None:
    """Poll until it is so."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, condition
        time.sleep(0.02)
