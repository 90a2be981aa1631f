"""The web as a process of its own, on a free port."""

import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import httpx

from slotserve.stack.parts import ROOT


@contextmanager
def web_process(
    environment: Mapping[str, str], *, answer_seconds: float = 30, stop_seconds: float = 10
) -> Iterator[httpx.Client]:
    """A browser without a session; at the end the process must stop as it is asked to."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        argv = [sys.executable, "-m", "uvicorn", "slotserve.asgi:application", "--lifespan", "off"]
        process = subprocess.Popen(
            [*argv, "--fd", str(listening.fileno()), "--no-access-log"],
            cwd=ROOT, env=environment, pass_fds=[listening.fileno()],
        )  # fmt: skip
        host, port = listening.getsockname()
    try:
        with httpx.Client(base_url=f"http://{host}:{port}", timeout=answer_seconds) as client:
            yield client
    finally:
        process.terminate()
        assert process.wait(stop_seconds) in (0, -15)
