"""The stand-ins for llama-server on two machines, found without our own code."""

import contextlib
import shlex
import sys
from pathlib import Path

import psutil

from bench.two_hosts import TwoHosts

PROGRAM = Path(__file__).with_name("servers") / "far_llama.py"


def wrapper(folder: Path) -> Path:
    """A program that becomes one, and notes each start in the folder."""
    command = [sys.executable, "-S", "-E", str(PROGRAM), "--starts", str(folder)]
    path = folder / "llama-server"
    path.write_text(f'#!/usr/bin/env bash\nexec {shlex.join(command)} "$@"\n')
    path.chmod(0o755)
    return path


def starts(hosts: TwoHosts, slug: str) -> list[str]:
    """The model servers that began on the lane, in order."""
    pk = hosts.sql(f"select id from lanes_lane where slug = '{slug}'")
    path = hosts.folder / f"starts-{pk}"
    return path.read_text().split() if path.exists() else []


def model_servers(hosts: TwoHosts) -> dict[int, str]:
    """Living ones by pid, with their models."""
    found = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            argv = process.cmdline()
            if "--starts" in argv and str(hosts.folder) in argv:
                found[process.pid] = argv[argv.index("--alias") + 1]
    return found
