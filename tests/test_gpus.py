"""Reading GPUs, with and without a driver."""

from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from lanes import gpus


class FakeDriver:
    """NVML of a machine with one card."""

    NVMLError = pynvml.NVMLError

    def __init__(self) -> None:
        self.open = 0

    def nvmlInit(self) -> None:  # noqa: N802 - NVML's name
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:  # noqa: N802
        return f"card {index}"

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802
        if uuid != "GPU-a":
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return "card 0"

    def nvmlDeviceGetUUID(self, handle: str) -> str:  # noqa: N802
        return "GPU-a"

    def nvmlDeviceGetName(self, handle: str) -> str:  # noqa: N802
        return "RTX 4090"

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> Any:  # noqa: N802
        return SimpleNamespace(total=24_000, used=1_000)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    """A driver with one card in the place of NVML."""
    fake = FakeDriver()
    monkeypatch.setattr(gpus, "pynvml", fake)
    return fake


def test_cards_are_known_by_uuid_name_and_memory(driver: FakeDriver) -> None:
    assert gpus.discover() == [gpus.FoundGpu("GPU-a", "RTX 4090", 24_000)]
    assert driver.open == 0


def test_memory_in_use_is_read_by_uuid(driver: FakeDriver) -> None:
    assert gpus.memory_used("GPU-a") == 1_000


def test_a_card_that_is_gone_has_no_known_memory(driver: FakeDriver) -> None:
    assert gpus.memory_used("GPU-b") is None
    assert driver.open == 0


def test_without_a_driver_there_are_no_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", missing)
    assert gpus.discover() == []
    assert gpus.memory_used("GPU-a") is None
