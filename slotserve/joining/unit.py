"""A systemd service for a host's worker."""

import os
import shutil
import subprocess
from pathlib import Path

from slotserve.joining.asking import JoinError

ROOT = Path(__file__).resolve().parent.parent.parent
NAME = "slotserve-host.service"
UNITS = Path("/etc/systemd/system")
# KillMode=process: what looks after model servers outlives a restart, and is adopted.
TEXT = """[Unit]
Description=SlotServe: model servers
After=network-online.target
Wants=network-online.target

[Service]
WorkingDirectory={root}
EnvironmentFile={file}
ExecStart={command}
Restart=always
RestartSec=1
KillMode=process

[Install]
WantedBy=multi-user.target
"""


def text_of(file: Path, python: str, argv: tuple[str, ...]) -> str:
    """The unit."""
    for part in (str(ROOT), str(file), python):
        if any(sign in part for sign in " \"'%\\\n"):
            raise JoinError(f"{part!r} holds a blank, a quote or a percent sign: move it.")
    return TEXT.format(root=ROOT, file=file, command=" ".join((python, *argv)))


def look(file: Path, python: str, units: Path = UNITS) -> str:
    """Whether a service can be installed here; where systemctl is. JoinError: it cannot."""
    text_of(file, python, ())
    program = shutil.which("systemctl")
    if program is None or not Path("/run/systemd/system").is_dir():
        raise JoinError("there is no systemd here: leave --service out to run the worker itself.")
    if not os.access(units, os.W_OK):
        raise JoinError(f"{units} cannot be written to: a service is installed as root.")
    return program


def install(file: Path, python: str, argv: tuple[str, ...], units: Path = UNITS) -> str:
    """Write it, enable it, start it now; the sentence to say."""
    program = look(file, python, units)
    (units / NAME).write_text(text_of(file, python, argv))
    for words in (("daemon-reload",), ("enable", NAME), ("restart", NAME)):
        done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise JoinError(f"systemctl {' '.join(words)}: {done.stderr.strip()}")
    return f"Its worker runs as {NAME}: `journalctl -u {NAME}` shows what it says."
