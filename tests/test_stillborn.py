"""Servers that never come to be: the data folder is full, the shim cannot start."""

import contextlib
import errno
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from lanes import records, starting, supervisor, ticks
from lanes.engines.llama_failures import LLAMA
from lanes.failures.causes import Kind
from lanes.models import Lane, LaneEvent, PresetFailure, Runtime
from lanes.stillborn import cause_of
from tests import builders, fleet

pytest_plugins = ["tests.fleet_fixtures"]
pytestmark = [pytest.mark.process, pytest.mark.django_db]
FULL = "There is no space left in the data folder of test-host."
Break = Callable[[Path, int], None]


@pytest.fixture
def lane(fleet_settings: Settings, db: None) -> Lane:
    return builders.lane()


@pytest.fixture
def small_disk(lane: Lane, settings: Settings, tmp_path: Path) -> Iterator[Path]:
    """A data folder on a disk of 256 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    argv = ["mount", "-t", "tmpfs", "-o", "size=256k", "slotserve-test", str(folder)]
    if subprocess.run(argv, check=False, capture_output=True).returncode:
        pytest.skip("only root may mount a tmpfs")
    settings.SLOTSERVE_DATA = folder
    yield folder
    settings.SLOTSERVE_DATA = tmp_path
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> None:
    """Leave no byte."""
    with (folder / "filling").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(512))


def test_a_full_data_folder_is_a_failure_that_backs_off_and_is_told(
    lane: Lane, small_disk: Path
) -> None:
    records.installation_id()
    supervisor.look(lane.pk)
    records.is_locked(lane.pk)
    fill(small_disk)
    fleet.order(lane, fleet.preset())
    fleet.look_until(lane, fleet.is_phase(lane, "failed"))
    for _ in range(5):
        supervisor.look(lane.pk)
    assert Runtime.objects.count() == 1
    failure = PresetFailure.objects.get(lane=lane)
    assert (failure.count, failure.reason) == (1, FULL)
    assert (failure.failure_kind, failure.failure_advice) == (
        "disk_full",
        "Free some disk space on the host.",
    )
    event = LaneEvent.objects.filter(lane=lane, kind="failed").get()
    assert FULL in event.sentence
    assert "Next try in 30 s" in event.sentence
    (small_disk / "filling").unlink()
    PresetFailure.objects.update(count=0)
    fleet.look_until(lane, fleet.is_phase(lane, "ready"))
    fleet.order(lane, None)
    fleet.look_until(lane, fleet.is_phase(lane, "stopped"))


def no_errors_file(folder: Path, lane_pk: int) -> None:
    (folder / f"{lane_pk}.shim").mkdir()


def no_record(folder: Path, lane_pk: int) -> None:
    (folder / f"{lane_pk}.json").mkdir()


def no_shim(folder: Path, lane_pk: int) -> None:
    starting.SHIM = str(folder / "no-such-shim.py")


@pytest.mark.parametrize(
    ("broken", "words", "line"),
    [
        (
            no_errors_file,
            "Its shim could not be started on test-host: Is a directory.",
            "Is a directory",
        ),
        (no_record, "Its shim on test-host ended before it started a server.", "IsADirectory"),
        (no_shim, "Its shim on test-host ended before it started a server.", "can't open file"),
    ],
)
def test_a_shim_that_cannot_start_backs_off(
    lane: Lane, broken: Break, words: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "SHIM", starting.SHIM)
    broken(records.folder(), lane.pk)
    fleet.order(lane, fleet.preset())
    fleet.look_until(lane, fleet.is_phase(lane, "failed"))
    for _ in range(5):
        supervisor.look(lane.pk)
    failure = PresetFailure.objects.get(lane=lane)
    assert (failure.count, failure.reason) == (1, words)
    assert line in failure.failure_line
    assert str(records.folder()) not in failure.reason
    assert Runtime.objects.get().ended_at is not None


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (OSError(errno.ENOSPC, "x"), Kind.DISK_FULL, FULL),
        (OSError(errno.EDQUOT, "x", "/data"), Kind.DISK_FULL, FULL),
        (
            BlockingIOError(errno.EAGAIN, "x"),
            Kind.HOST_MEMORY,
            "There is no memory or process left on test-host.",
        ),
        (
            PermissionError(errno.EACCES, "x", "/data/a"),
            Kind.UNKNOWN,
            "test-host: Permission denied.",
        ),
        (ValueError("embedded null byte"), Kind.UNKNOWN, "test-host: ValueError."),
    ],
)
def test_an_error_is_told_without_paths(error: Exception, kind: Kind, words: str) -> None:
    cause = cause_of(builders.lane(), error, LLAMA)
    assert (cause.kind, words in cause.sentence) == (kind, True), cause.sentence
    assert "/data" not in cause.sentence + cause.advice


def test_a_refused_start_waits_for_the_host_s_next_look(
    lane: Lane, settings: Settings, foreign_server: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []
    monkeypatch.setattr(ticks, "request_look", lambda _lane, _host, delay=0.0: asked.append(delay))
    settings.SLOTSERVE_PORT_FIRST = settings.SLOTSERVE_PORT_LAST = foreign_server
    fleet.order(lane, fleet.preset())
    supervisor.look(lane.pk)
    assert LaneEvent.objects.get(lane=lane).kind == "refused"
    assert asked == []
    assert not Runtime.objects.exists()
