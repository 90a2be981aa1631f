"""An NVIDIA driver for tests: a real shared library, built here, that the real pynvml loads.

It is loaded by its path first; since its name inside (its soname) is libnvidia-ml.so.1, the loader
then gives the same library to whoever asks for that name.
"""

import _ctypes
import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pynvml
import pytest

from lanes.gpus import nvml

SOURCE = Path(__file__).with_name("fake_nvml.c")
SONAME = "libnvidia-ml.so.1"
GIB = 2**30
NOT_AVAILABLE = -1


@dataclass(frozen=True)
class FakeCard:
    """A card as the driver tells it; -1 is "not supported", `code` an error for every question."""

    uuid: str = "GPU-a"
    name: str = "NVIDIA GeForce RTX 4090"
    total: int = 24 * GIB
    used: int = 0
    utilisation: int = 0
    milliwatts: int = 30_000
    celsius: int = 40
    code: int = 0
    processes: tuple[tuple[str, int, int], ...] = ()  # kind (C, G or M), pid, bytes


@dataclass
class FakeDriver:
    """What the library says from now on; each change is written at once."""

    path: Path
    library: Path
    cards: list[FakeCard] = field(default_factory=lambda: [FakeCard()])
    version: str = "560.35.03"
    init: int = 0
    hang: int = 0

    def write(self, **changes: object) -> "FakeDriver":
        """Change the driver itself, or with `cards` all of its cards."""
        for name, value in changes.items():
            setattr(self, name, value)
        lines = [f"init {self.init}", f"driver {self.version}", f"hang {self.hang}"]
        for number, card in enumerate(self.cards):
            numbers = (card.total, card.used, card.utilisation, card.milliwatts, card.celsius)
            told = " ".join(str(value) for value in numbers)
            lines.append(f"card {card.uuid} {told} {card.code} {card.name}")
            lines += [f"proc {number} {kind} {pid} {size}" for kind, pid, size in card.processes]
        new = self.path.with_suffix(".new")
        new.write_text("\n".join(lines) + "\n")
        new.replace(self.path)
        return self

    def change(self, number: int = 0, **changes: object) -> "FakeDriver":
        """Change one card."""
        self.cards[number] = replace(self.cards[number], **changes)  # type: ignore[arg-type]
        return self.write()

    def hold(self, *processes: tuple[int, int], number: int = 0, more: int = 0) -> "FakeDriver":
        """These compute on the card, (pid, bytes) each; `more` is held by nobody named."""
        told = tuple(("C", pid, size) for pid, size in processes)
        used = sum(size for _, size in processes) + more
        return self.change(number, processes=told, used=used)

    @property
    def open_count(self) -> int:
        """How often it is initialised and not shut down."""
        return int(ctypes.CDLL(str(self.library)).fake_open_count())


def build(folder: Path, *, is_old: bool = False) -> Path:
    """Compile the library; the tests that need it are skipped where there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("NO C COMPILER: the fake libnvidia-ml.so cannot be built, NVML is not tested")
    library = folder / SONAME
    flags = ["-shared", "-fPIC", "-O1", "-Wall", f"-Wl,-soname,{SONAME}"]
    flags += ["-DOLD_DRIVER"] if is_old else []
    subprocess.run([compiler, *flags, "-o", str(library), str(SOURCE)], check=True)
    return library


@contextmanager
def loaded(library: Path, state: Path) -> Iterator[FakeDriver]:
    """The library in the place of the machine's own driver, for this block."""
    forget()
    handle = ctypes.CDLL(str(library))._handle
    os.environ["FAKE_NVML"] = str(state)
    try:
        yield FakeDriver(state, library).write()
    finally:
        forget()
        del os.environ["FAKE_NVML"]
        _ctypes.dlclose(handle)


def forget() -> None:
    """Let pynvml load its library anew."""
    reader = nvml._session.reader
    if reader is not None:
        reader.join(10)
    nvml.close()
    library = pynvml.nvmlLib
    pynvml.nvmlLib = None
    pynvml._nvmlGetFunctionPointer_cache.clear()
    if library is not None:
        _ctypes.dlclose(library._handle)
