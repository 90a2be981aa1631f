"""Reading cards by NVML. Whatever the driver does, there is an answer, and soon: never an error.

The library is opened once and kept open, since opening can take a second a card; after a failure
of the whole driver it is closed and opened anew at the next reading. A reading is done in a thread
of its own, because a driver in trouble can hang a call for ever.
"""

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import pynvml

from lanes.gpus.readings import Card, CardProcess, Inventory
from wire.words import marked, said

READ_SECONDS = 2.0  # how long a reading may take
OPEN_SECONDS = 12.0  # how long the first one may: a card that sleeps takes a second to wake
MILLIWATTS = 1000
HANGS = said(
    "The NVIDIA driver does not answer: look at `dmesg` for NVRM or Xid messages, and restart "
    "this host."
)
Answer = TypeVar("Answer")

_FAILURES = (pynvml.NVMLError, pynvml.NVMLLibraryMismatchError, UnicodeDecodeError, OSError)
_WORDS = {
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: marked(
        "The NVIDIA driver was changed while it was in use: "
        "restart this host, or unload the old driver and restart this worker."
    ),
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: marked(
        "The NVIDIA driver is installed but not loaded: try "
        "`nvidia-smi`, and load the module `nvidia` or restart this host."
    ),
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: marked(
        "The NVIDIA driver is too old to be read: install 470 or newer (510 to see processes)."
    ),
    pynvml.NVML_ERROR_NO_PERMISSION: marked(
        "The NVIDIA driver refuses this worker's user: let it read and write /dev/nvidia*."
    ),
    pynvml.NVML_ERROR_GPU_IS_LOST: marked(
        "The driver has lost a card (it may have fallen off the bus): restart this host."
    ),
    pynvml.NVML_ERROR_RESET_REQUIRED: marked(
        "A card must be reset: `nvidia-smi --gpu-reset`, or restart this host."
    ),
}
# After these the open library is of no use any more.
_BROKEN = {
    pynvml.NVML_ERROR_UNINITIALIZED,
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
    pynvml.NVML_ERROR_UNKNOWN,
}


class _Session:
    """The open library, and the reading that is under way."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.is_open = False
        self.reader: threading.Thread | None = None
        self.answers: list[Inventory] = []


_session = _Session()


def read() -> Inventory:
    """Every card that the driver shows now, within a limit; readings wait for each other.

    While an earlier reading still hangs, the answer is so at once.
    """
    with _session.lock:
        reader, is_hung = _session.reader, True
        if reader is None or not reader.is_alive():
            reader, is_hung = threading.Thread(target=_answer, name="nvml", daemon=True), False
            _session.reader, _session.answers = reader, []
            reader.start()
        limit = READ_SECONDS if _session.is_open else OPEN_SECONDS
        reader.join(0.0 if is_hung else limit)
        answers = _session.answers
        return answers[-1] if answers else Inventory(trouble=HANGS)


def close() -> None:
    """Let go of the library, so that the driver can be unloaded. The next reading opens it."""
    if _session.is_open:
        _session.is_open = False
        _maybe(pynvml.nvmlShutdown)


def _answer() -> None:
    answers = _session.answers
    answers.append(_read())


def _read() -> Inventory:
    try:
        if not _session.is_open:
            pynvml.nvmlInit()
            _session.is_open = True
        driver = str(pynvml.nvmlSystemGetDriverVersion())
        count = int(pynvml.nvmlDeviceGetCount())
    except _FAILURES as error:
        close()
        is_absent = getattr(error, "value", None) == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND
        return Inventory() if is_absent else Inventory(trouble=_words(error))
    return _cards(driver, count)


def _cards(driver: str, count: int) -> Inventory:
    cards, trouble = [], ""
    for index in range(count):
        try:
            cards.append(_card(index))
        except _FAILURES as error:
            trouble = said("Card {index}: {why}", index=index, why=_words(error))
            if getattr(error, "value", None) in _BROKEN:
                close()
                break
    return Inventory(driver, tuple(cards), trouble)


def _card(index: int) -> Card:
    """A card with what it tells; what it does not tell is None. Fails when it cannot be named."""
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    uuid = str(pynvml.nvmlDeviceGetUUID(handle))
    troubles: list[str] = []
    memory = _maybe(lambda: _memory(handle), troubles)
    use = _maybe(lambda: pynvml.nvmlDeviceGetUtilizationRates(handle))
    power = _maybe(lambda: pynvml.nvmlDeviceGetPowerUsage(handle))
    sensor = pynvml.NVML_TEMPERATURE_GPU
    return Card(
        uuid=uuid,
        name=str(_maybe(lambda: pynvml.nvmlDeviceGetName(handle)) or "NVIDIA GPU"),
        index=index,
        total_bytes=int(memory.total) if memory else None,
        used_bytes=int(memory.used) if memory else None,
        utilisation=int(use.gpu) if use else None,
        power_watts=power / MILLIWATTS if power is not None else None,
        temperature=_maybe(lambda: int(pynvml.nvmlDeviceGetTemperature(handle, sensor))),
        processes=_maybe(lambda: _processes(handle)),
        trouble=troubles[0] if troubles else "",
    )


def _memory(handle: object) -> Any:
    """The second version does not count what the driver keeps for itself; old drivers lack it."""
    try:
        return pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    except pynvml.NVMLError:
        return pynvml.nvmlDeviceGetMemoryInfo(handle)


def _processes(handle: object) -> tuple[CardProcess, ...]:
    """Each process once: one that computes and draws computes."""
    drawing = _maybe(lambda: pynvml.nvmlDeviceGetGraphicsRunningProcesses_v3(handle)) or ()
    computing = pynvml.nvmlDeviceGetComputeRunningProcesses_v3(handle)
    shared = _maybe(lambda: pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3(handle)) or ()
    found = {each.pid: _process(each, is_compute=False) for each in drawing}
    found |= {each.pid: _process(each, is_compute=True) for each in (*shared, *computing)}
    return tuple(found[pid] for pid in sorted(found))


def _process(told: Any, *, is_compute: bool) -> CardProcess:
    used = told.usedGpuMemory
    return CardProcess(int(told.pid), None if used is None else int(used), is_compute)


def _maybe(ask: Callable[[], Answer], troubles: list[str] | None = None) -> Answer | None:
    """The answer, or None where the driver has none; why is added to `troubles`."""
    try:
        return ask()
    except _FAILURES as error:
        if troubles is not None:
            troubles.append(_words(error))
        return None


def _words(error: BaseException) -> str:
    code = getattr(error, "value", None)
    known = _WORDS.get(code) if isinstance(code, int) else None
    return said(known) if known else said("NVML says: {error}.", error=str(error))
