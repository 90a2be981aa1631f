"""The folder of several gateway processes: gone with its parent, at the latest with the next."""

import errno
import fcntl
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.edge.metrics_folder import MOST_TRIES, PREFIX, UNLOCKED, metrics_folder
from slotserve.stack.parts import ROOT

PARENT = """
from gateway.edge.metrics_folder import metrics_folder
with metrics_folder() as folder:
    (folder / "counter_1.db").touch()
    print(folder, flush=True)
    input()
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files are."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@contextmanager
def parent() -> Iterator[tuple["subprocess.Popen[str]", Path]]:
    """Another process that has a folder, which has something in it."""
    pipe = subprocess.PIPE
    argv = [sys.executable, "-c", PARENT]
    with subprocess.Popen(argv, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().strip())
        process.kill()


def test_it_goes_with_its_parent(place: Path) -> None:
    with metrics_folder() as folder:
        (folder / "counter_1.db").touch()
        assert folder.parent == place
    assert list(place.iterdir()) == []


def test_what_a_killed_parent_left_goes_when_the_next_starts(place: Path) -> None:
    with parent() as (process, left):
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert (left / "counter_1.db").exists()
    with metrics_folder() as folder:
        assert list(place.iterdir()) == [folder]


def test_that_of_a_living_parent_stays(place: Path) -> None:
    with parent() as (_process, other), metrics_folder() as folder:
        assert {*place.iterdir()} == {folder, other}
        assert (other / "counter_1.db").exists()


def test_what_is_no_folder_of_ours_stays(place: Path) -> None:
    elsewhere = place / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").touch()
    (place / f"{PREFIX}link").symlink_to(elsewhere)
    (place / f"{PREFIX}file").touch()
    with metrics_folder():
        pass
    assert (elsewhere / "kept").exists()
    assert {each.name for each in place.iterdir()} == {
        "elsewhere",
        f"{PREFIX}link",
        f"{PREFIX}file",
    }


def test_one_that_a_sweep_took_while_it_was_made_is_made_again(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    mkdtemp = tempfile.mkdtemp

    def swept_at_first(prefix: str) -> str:
        made.append(mkdtemp(prefix=prefix))
        if len(made) == 1:
            Path(made[0]).rmdir()
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", swept_at_first)
    with metrics_folder() as folder:
        assert str(folder) == made[1]
        assert folder.is_dir()


@pytest.mark.parametrize("number", [errno.EBADF, errno.ENOLCK, errno.ENOSYS, errno.EAGAIN])
def test_where_nothing_can_be_locked_one_is_used_that_no_sweep_takes(
    place: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    (place / f"{PREFIX}left").mkdir()

    def refuse(_descriptor: int, _how: int) -> None:
        raise OSError(number, "refused")

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", refuse)
        unlocked = metrics_folder()
        folder = unlocked.__enter__()
    assert (place / f"{PREFIX}left").exists()
    assert len(list(place.iterdir())) <= 2 + MOST_TRIES
    with metrics_folder():
        assert folder.is_dir()
    unlocked.__exit__(None, None, None)
    assert list(place.iterdir()) == []


def test_that_of_a_version_without_locks_stays(place: Path) -> None:
    older = Path(tempfile.mkdtemp(prefix=UNLOCKED))
    with metrics_folder():
        assert older.is_dir()
