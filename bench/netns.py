"""Machines: network namespaces on one bridge, with links that can be cut and healed.

Each has an address of its own in 10.77.0.0/24 and sees nothing of this machine's network, nor
does this machine see theirs. Names carry the number of the run that owns them, so that what
a killed run has left behind is found and removed by the next.
"""

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self, TypeVar

PREFIX = "ssn-"
CLONE_NEWNET = 0x40000000
GONE_SECONDS = 5.0
T = TypeVar("T")


def why_not() -> str:
    """Why namespaces cannot be used here; empty when they can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "network namespaces need Linux and root"
    if not shutil.which("ip"):
        return "network namespaces need the program ip (iproute2)"
    name = f"{PREFIX}{os.getpid()}-try"
    tried = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False)
    if tried.returncode:
        return f"network namespaces cannot be made here: {tried.stderr.decode().strip()}"
    _ip("netns", "del", name)
    return ""


def sweep() -> None:
    """Remove what test runs that are no more have left behind, with their processes."""
    for name in _namespaces():
        owner = name.removeprefix(PREFIX).partition("-")[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            remove(name)


def remove(name: str) -> None:
    """End every process in the namespace, then the namespace."""
    deadline = time.monotonic() + GONE_SECONDS
    while (left := _pids(name)) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    _ip("netns", "del", name)


class Machine:
    """One namespace with one address. Processes are started in it; so are calls."""

    def __init__(self, network: "Network", name: str, address: str) -> None:
        self.name, self.address = name, address
        self.namespace = f"{network.prefix}{name}"
        self._wire = network.wire
        _ip("netns", "add", self.namespace)
        inside = ("eth0", "netns", self.namespace)
        _ip(
            "link",
            "add",
            *inside,
            "type",
            "veth",
            "peer",
            "name",
            f"to-{name}",
            "netns",
            self._wire,
        )
        _ip("-n", self._wire, "link", "set", f"to-{name}", "master", "bridge", "up")
        _ip("-n", self.namespace, "addr", "add", f"{address}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            _ip("-n", self.namespace, "link", "set", device, "up")

    def cut(self) -> None:
        """Nothing reaches it and it reaches nobody; nobody is told."""
        _ip("-n", self._wire, "link", "set", f"to-{self.name}", "down")

    def heal(self) -> None:
        """The link is as before."""
        _ip("-n", self._wire, "link", "set", f"to-{self.name}", "up")

    def start(self, *argv: str, env: dict[str, str], log: Path) -> "subprocess.Popen[bytes]":
        """A process on this machine."""
        with log.open("ab") as output:
            return subprocess.Popen(
                self._inside(argv), env=env, cwd=Path.cwd(), stdout=output, stderr=output
            )

    def run(self, *argv: str, env: dict[str, str]) -> str:
        """What a program says that ends with 0; else an error with all of its words."""
        done = subprocess.run(
            self._inside(argv), env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{argv}: {done.stdout}\n{done.stderr}"
        return done.stdout.strip()

    def threads(self) -> ThreadPoolExecutor:
        """Threads of this process whose new sockets belong to this machine."""
        return ThreadPoolExecutor(initializer=_enter, initargs=(self.namespace,))

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """New sockets of this thread, and of threads that it starts, belong to this machine."""
        with open("/proc/thread-self/ns/net") as outside:
            _enter(self.namespace)
            try:
                yield
            finally:
                _set_namespace(outside.fileno())

    def call(self, what: Callable[[], T]) -> T:
        """Do it from this machine."""
        with self.threads() as pool:
            return pool.submit(what).result()

    def _inside(self, argv: tuple[str, ...]) -> list[str]:
        return ["ip", "netns", "exec", self.namespace, *argv]


class Network:
    """Machines on one bridge."""

    def __init__(self) -> None:
        sweep()
        self.prefix = f"{PREFIX}{os.getpid()}-"
        self.wire = f"{self.prefix}wire"

    def __enter__(self) -> Self:
        _ip("netns", "add", self.wire)
        _ip("-n", self.wire, "link", "add", "bridge", "type", "bridge")
        _ip("-n", self.wire, "link", "set", "bridge", "up")
        return self

    def __exit__(self, *_: object) -> None:
        for name in _namespaces():
            if name.startswith(self.prefix):
                remove(name)

    def machine(self, name: str, number: int) -> Machine:
        """A machine at 10.77.0.<number>."""
        return Machine(self, name, f"10.77.0.{number}")


def _enter(namespace: str) -> None:
    """This thread alone."""
    with open(f"/run/netns/{namespace}") as handle:
        _set_namespace(handle.fileno())


def _set_namespace(handle: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(handle, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


def _namespaces() -> list[str]:
    listed = json.loads(_ip("-j", "netns", "list") or "[]")
    return [each["name"] for each in listed if each["name"].startswith(PREFIX)]


def _pids(namespace: str) -> list[int]:
    return [int(word) for word in _ip("netns", "pids", namespace).split()]


def _ip(*arguments: str) -> str:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(arguments)}: {done.stderr}"
    return done.stdout
