"""Fixtures of tests with NVIDIA cards: a driver with one idle card, an old one, and none."""

from collections.abc import Iterator
from pathlib import Path

import pynvml
import pytest

from tests.nvml.driver import FakeDriver, build, forget, loaded


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library as drivers since 510 have it."""
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def driver(nvml_library: Path, tmp_path: Path) -> Iterator[FakeDriver]:
    """A driver with one idle card, GPU-a."""
    with loaded(nvml_library, tmp_path / "nvml.state") as fake:
        yield fake


@pytest.fixture
def old_driver(tmp_path: Path) -> Iterator[FakeDriver]:
    """A driver that names no processes."""
    folder = tmp_path / "old"
    folder.mkdir()
    with loaded(build(folder, is_old=True), tmp_path / "nvml.state") as fake:
        yield fake.write(version="470.256.02")


@pytest.fixture
def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose loader finds no libnvidia-ml.so.1, whatever this one has."""

    def missing(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file: No such file or directory")

    forget()
    monkeypatch.setattr(pynvml, "CDLL", missing)
