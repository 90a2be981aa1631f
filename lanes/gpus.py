"""NVIDIA GPUs of this machine. Without a driver there are none, and lanes compute on the CPU."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pynvml


@dataclass(frozen=True, slots=True)
class FoundGpu:
    """One card, known by its UUID (its index changes between boots)."""

    uuid: str
    name: str
    memory_bytes: int


def discover() -> list[FoundGpu]:
    """The cards that the driver shows now; empty when there is no driver."""
    try:
        with _driver():
            handles = [
                pynvml.nvmlDeviceGetHandleByIndex(index)
                for index in range(pynvml.nvmlDeviceGetCount())
            ]
            return [_described(handle) for handle in handles]
    except pynvml.NVMLError:
        return []


def memory_used(uuid: str) -> int | None:
    """Bytes in use on the card; None when that cannot be known."""
    try:
        with _driver():
            handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
            return int(pynvml.nvmlDeviceGetMemoryInfo(handle).used)
    except pynvml.NVMLError:
        return None


@contextmanager
def _driver() -> Iterator[None]:
    pynvml.nvmlInit()
    try:
        yield
    finally:
        pynvml.nvmlShutdown()


def _described(handle: object) -> FoundGpu:
    return FoundGpu(
        uuid=str(pynvml.nvmlDeviceGetUUID(handle)),
        name=str(pynvml.nvmlDeviceGetName(handle)),
        memory_bytes=int(pynvml.nvmlDeviceGetMemoryInfo(handle).total),
    )
