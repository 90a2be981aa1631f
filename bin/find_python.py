"""Make sure that a new enough Python runs this program. This file parses on any Python 3."""

import os
import shutil
import subprocess
import sys

LEAST = (3, 11)
NAMES = ("python3.13", "python3.12", "python3.11")
ASK = "import sys; sys.exit(sys.version_info < (3, 11))"


def ensure() -> None:
    """Go on when this Python is new enough, else start anew with one that is, or exit with 1.

    SLOTSERVE_PYTHON names the one to use.
    """
    chosen = os.environ.pop("SLOTSERVE_PYTHON", "")
    if chosen:
        start_anew(chosen)
    if sys.version_info >= LEAST:
        return
    for name in NAMES:
        program = shutil.which(name)
        if program and runs(program):
            start_anew(program)
    sys.exit(
        "SlotServe needs Python 3.11 or newer, and this is {}.{}: install python3.11 or newer, "
        "or name one with SLOTSERVE_PYTHON=/path/to/python3.".format(*sys.version_info[:2])
    )


def runs(program: str) -> bool:
    """Whether the program is a Python that is new enough (a version manager's shim may not be)."""
    quiet = subprocess.DEVNULL
    return subprocess.call([program, "-c", ASK], stdout=quiet, stderr=quiet) == 0


def start_anew(program: str) -> None:
    """Become the same command under another Python."""
    try:
        os.execvp(program, [program] + sys.argv)  # noqa: RUF005, S606 - old Pythons; no shell
    except OSError as error:
        sys.exit("SLOTSERVE_PYTHON={} cannot be started: {}.".format(program, error.strerror))  # noqa: UP032
