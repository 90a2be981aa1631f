"""The virtual environment of this project: made, filled and repaired. Standard library only."""

import errno
import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PIP = ("-m", "pip", "install", "--disable-pip-version-check", "--no-input")
COLLECTING = re.compile(r"Collecting ([A-Za-z0-9][\w.-]*)")
NO_NETWORK = "the package index was not reached: is there a network?"
WENT_WRONG = (
    ("No space left on device", "the disk is full: free about 600 MB"),
    ("Read-only file system", "the folder cannot be written to"),
    ("Temporary failure in name resolution", NO_NETWORK),
    ("Failed to establish a new connection", NO_NETWORK),
    ("Connection refused", NO_NETWORK),
    ("No matching distribution", "a package is not on offer for this machine and Python"),
)


class InstallError(Exception):
    """The environment cannot be made; the text is one sentence that says what to do."""


class Environment:
    """`.venv` at the project's root, or SLOTSERVE_VENV.

    `.slotserve-hash` says what is installed; `.slotserve-installing` that an installation has
    not come to its end, in which case the next one starts from nothing.
    """

    def __init__(self) -> None:
        self.folder = Path(os.environ.get("SLOTSERVE_VENV") or ROOT / ".venv").absolute()
        self.python = self.folder / "bin" / "python"
        self._hashes = self.folder / ".slotserve-hash"
        self._unfinished = self.folder / ".slotserve-installing"

    def prepare(self, requirements: str) -> Path:
        """Install the requirements if they or the Python changed; answers its Python."""
        wanted = {name: fingerprint(name) for name in chain(requirements)}
        try:
            with one_at_a_time() as lock:
                if not self._holds(wanted):
                    self._make()
                    self._install(requirements, wanted, lock)
        except OSError as error:
            raise InstallError(sentence(self.folder, error)) from error
        return self.python

    def _holds(self, wanted: dict[str, str]) -> bool:
        """Whether all of it is installed and the environment's Python still starts."""
        if self._unfinished.exists() or not self._hashes.exists():
            return False
        try:
            held = json.loads(self._hashes.read_text())
        except ValueError:  # cut short by a full disk
            return False
        return all(held.get(name) == value for name, value in wanted.items()) and self._starts()

    def _starts(self) -> bool:
        """Whether its Python runs and is of the version that runs now."""
        ask = f"import sys, pip; sys.exit(sys.version_info[:2] != {sys.version_info[:2]!r})"
        try:
            asked = subprocess.run([self.python, "-c", ask], check=False, capture_output=True)
            return asked.returncode == 0
        except OSError:
            return False

    def _make(self) -> None:
        """A folder with a working Python and pip; a broken or half-filled one is made anew."""
        if not self._unfinished.exists() and self._starts():
            return
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        if not all(importlib.util.find_spec(name) for name in ("venv", "ensurepip")):
            raise InstallError(
                f"Python's venv module is missing: on Debian and Ubuntu, `apt install "
                f"python{version}-venv`, then start again."
            )
        if self.folder.exists():
            print(f"Repairing {self.folder} …", flush=True)
            shutil.rmtree(self.folder)
        print(f"Making {self.folder} with Python {version} …", flush=True)
        argv = [sys.executable, "-m", "venv", str(self.folder)]
        made = subprocess.run(argv, check=False, capture_output=True, text=True)
        if made.returncode:
            raise InstallError(explain(self.folder, made.stdout + made.stderr))

    def _install(self, requirements: str, wanted: dict[str, str], lock: int) -> None:
        """Fill it; an interruption leaves the mark of an unfinished installation."""
        self._unfinished.touch()
        log = self.folder / "install.log"
        print(f"Installing {requirements} (about 70 MB the first time) …", flush=True)
        argv = [str(self.python), *PIP, "-r", str(ROOT / requirements)]
        if pip(argv, log, lock):
            raise InstallError(explain(self.folder, log.read_text(errors="replace"), log))
        self._hashes.write_text(json.dumps(wanted))
        self._unfinished.unlink()


def pip(argv: list[str], log: Path, lock: int) -> int:
    """Run pip, its words to the log and the names of packages to the screen; its exit status.

    It inherits the lock, so that nobody starts another while a killed one's pip still runs.
    """
    with (
        log.open("w") as file,
        subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            pass_fds=[lock],
        ) as process,
    ):
        assert process.stdout is not None  # noqa: S101 - PIPE was asked for
        for count, line in enumerate(process.stdout):
            file.write(line)
            if count == 0 or line.startswith(("Collecting", "Installing")):
                progress(line)
    if sys.stdout.isatty():
        print()
    return process.returncode


def progress(line: str) -> None:
    """One short line a package; on a terminal they overwrite each other."""
    found = COLLECTING.match(line)
    words = found[1] if found else " ".join(line.split()[:3]) + " …"
    if sys.stdout.isatty():
        print(f"\r\033[K  {words}", end="", flush=True)
    else:
        print(f"  {words}", flush=True)


@contextmanager
def one_at_a_time() -> Iterator[int]:
    """Hold the lock of installations, waiting for another's end; yields its descriptor."""
    lock = os.open(ROOT / "requirements.txt", os.O_RDONLY)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Waiting for another installation to end …", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock
    finally:
        os.close(lock)


def chain(requirements: str) -> list[str]:
    """The file and those it includes: what is installed along with it."""
    included = re.findall(r"^-r (\S+)", (ROOT / requirements).read_text(), flags=re.MULTILINE)
    return [requirements, *(name for inner in included for name in chain(inner))]


def fingerprint(requirements: str) -> str:
    """A hash of what a file and its inclusions ask for, and of the Python."""
    digest = hashlib.sha256(repr((sys.version_info[:3], sys.platform)).encode())
    for name in chain(requirements):
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def explain(folder: Path, output: str, log: Path | None = None) -> str:
    """One sentence on why an installation failed, from what was printed."""
    where = f" (all of its words: {log})" if log else ""
    for text, words in WENT_WRONG:
        if text in output:
            return f"Installing into {folder} failed: {words}{where}."
    errors = [line for line in output.splitlines() if "ERROR" in line or "Error" in line]
    return f"Installing into {folder} failed: {(errors or ['no reason given'])[0].strip()}{where}."


def sentence(path: Path, error: OSError) -> str:
    """One sentence on a file that cannot be used."""
    if error.errno == errno.ENOSPC:
        return f"{path} cannot be written: the disk is full."
    return f"{error.filename or path} cannot be used: {error.strerror or error}."
