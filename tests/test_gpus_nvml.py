"""Reading NVML through the real pynvml: cards, troubles, and the absence of a driver."""

import threading

import pynvml
import pytest

from lanes.gpus import nvml
from lanes.gpus.readings import CardProcess, Inventory
from tests.nvml.driver import GIB, NOT_AVAILABLE, FakeCard, FakeDriver

pytest_plugins = ["tests.nvml.fixtures"]


def test_a_card_is_read_with_all_it_tells(driver: FakeDriver) -> None:
    driver.change(used=6 * GIB, utilisation=73, milliwatts=251_500, celsius=61)
    found = nvml.read()
    assert (found.driver, found.trouble) == ("560.35.03", "")
    (card,) = found.cards
    assert (card.uuid, card.name, card.index) == ("GPU-a", "NVIDIA GeForce RTX 4090", 0)
    assert (card.total_bytes, card.used_bytes) == (24 * GIB, 6 * GIB)
    assert (card.utilisation, card.power_watts, card.temperature) == (73, 251.5, 61)
    assert (card.processes, card.trouble) == ((), "")


def test_processes_are_named_once_and_as_computing_if_they_do(driver: FakeDriver) -> None:
    told = (("G", 7, 100), ("G", 8, 300), ("C", 8, 500), ("M", 9, 700))
    driver.change(processes=told, used=1300)
    (card,) = nvml.read().cards
    assert card.processes == (
        CardProcess(7, 100, is_compute=False),
        CardProcess(8, 500),
        CardProcess(9, 700),
    )


def test_memory_of_a_process_that_the_driver_does_not_tell_is_unknown(driver: FakeDriver) -> None:
    driver.change(processes=(("C", 8, NOT_AVAILABLE),), used=GIB)
    (card,) = nvml.read().cards
    assert card.processes == (CardProcess(8, None),)


def test_what_a_card_does_not_support_is_none(driver: FakeDriver) -> None:
    driver.change(utilisation=-1, milliwatts=-1, celsius=-1)
    (card,) = nvml.read().cards
    assert (card.utilisation, card.power_watts, card.temperature) == (None, None, None)
    assert (card.total_bytes, card.trouble) == (24 * GIB, "")


def test_a_card_whose_memory_cannot_be_read_says_so(driver: FakeDriver) -> None:
    driver.change(used=-1)
    (card,) = nvml.read().cards
    assert (card.used_bytes, card.total_bytes) == (None, None)
    assert card.trouble.startswith("NVML says")


def test_an_old_driver_is_read_without_processes(old_driver: FakeDriver) -> None:
    old_driver.change(used=2 * GIB)
    found = nvml.read()
    assert (found.driver, found.trouble) == ("470.256.02", "")
    assert found.cards[0].used_bytes == 2 * GIB
    assert found.cards[0].processes is None


@pytest.mark.usefixtures("no_driver")
def test_without_a_driver_there_are_no_cards_and_no_trouble() -> None:
    assert nvml.read() == Inventory()
    assert nvml.read().is_driverless


def test_the_library_stays_open_between_readings(driver: FakeDriver) -> None:
    for _ in range(3):
        nvml.read()
    assert driver.open_count == 1
    nvml.close()
    assert driver.open_count == 0
    assert nvml.read().cards


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, "not loaded"),
        (pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, "changed while it was in use"),
        (pynvml.NVML_ERROR_NO_PERMISSION, "/dev/nvidia*"),
        (pynvml.NVML_ERROR_UNKNOWN, "NVML says: Unknown Error"),
    ],
)
def test_a_driver_that_cannot_be_opened_is_a_trouble_in_words(
    driver: FakeDriver, code: int, words: str
) -> None:
    driver.write(init=code)
    found = nvml.read()
    assert found.cards == ()
    assert words in found.trouble


def test_a_driver_that_fails_in_mid_flight_is_read_again_when_it_is_back(
    driver: FakeDriver,
) -> None:
    assert nvml.read().cards
    driver.write(init=pynvml.NVML_ERROR_UNKNOWN)
    assert nvml.read().trouble
    assert driver.open_count == 0
    driver.write(init=0)
    assert nvml.read().cards
    assert driver.open_count == 1


def test_a_lost_card_does_not_hide_the_others(driver: FakeDriver) -> None:
    driver.write(cards=[FakeCard(), FakeCard("GPU-b")])
    assert len(nvml.read().cards) == 2
    driver.change(code=pynvml.NVML_ERROR_GPU_IS_LOST)
    found = nvml.read()
    assert [card.uuid for card in found.cards] == ["GPU-b"]
    assert found.trouble.startswith("Card 0: The driver has lost a card")


def test_a_card_keeps_its_uuid_when_indices_move(driver: FakeDriver) -> None:
    driver.write(cards=[FakeCard("GPU-b"), FakeCard("GPU-a", used=5)])
    found = nvml.read().card("GPU-a")
    assert found is not None
    assert (found.index, found.used_bytes) == (1, 5)


def test_a_driver_that_hangs_holds_nobody_up_and_is_not_asked_twice(
    driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("READ_SECONDS", "OPEN_SECONDS"):
        monkeypatch.setattr(nvml, limit, 0.05)
    driver.write(hang=1)
    assert nvml.read().trouble == nvml.HANGS
    assert nvml.read().trouble == nvml.HANGS
    readers = [thread for thread in threading.enumerate() if thread.name == "nvml"]
    assert len(readers) == 1
    driver.write(hang=0)
    readers[0].join(60)
    monkeypatch.setattr(nvml, "READ_SECONDS", 5.0)
    assert nvml.read().cards
