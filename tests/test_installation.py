"""A copy of a data folder is another installation; one that was moved is the same."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lanes import installation, processes
from lanes.installation import HOME, NAME, settle
from tests.tiny_stack import SLEEP


@pytest.fixture
def original(tmp_path: Path) -> Path:
    """A settled folder that has run."""
    folder = tmp_path / "var"
    folder.mkdir()
    (folder / NAME).write_text("first")
    assert not settle(folder)
    for name in installation.OF_THE_ORIGINAL:
        (folder / name).write_text("the original's")
    return folder


@pytest.fixture
def running(original: Path) -> Iterator[Path]:
    """The folder of a release that remembered no home, with a process of its."""
    (original / HOME).unlink()
    names = {processes.INSTALLATION: "first", "SLOTSERVE_DATA": str(original)}
    process = subprocess.Popen([sys.executable, "-S", "-c", SLEEP], env=names)
    yield original
    process.kill()
    process.wait()


def name_of(folder: Path) -> str:
    return (folder / NAME).read_text().strip()


def test_a_copy_gets_a_name_of_its_own_and_nothing_of_the_original_s(original: Path) -> None:
    copy = Path(shutil.copytree(original, original.with_name("var2")))
    assert settle(copy)
    assert name_of(copy) not in ("first", "")
    assert not any((copy / name).exists() for name in installation.OF_THE_ORIGINAL)
    assert (copy / NAME).stat().st_mode & 0o777 == 0o600
    own = name_of(copy)
    assert not settle(copy)
    assert name_of(copy) == own
    assert not settle(original)
    assert name_of(original) == "first"


def test_a_folder_that_was_moved_keeps_its_name_and_what_it_left_running(original: Path) -> None:
    moved = original.rename(original.with_name("moved"))
    assert not settle(moved)
    assert name_of(moved) == "first"
    assert (moved / "stack.json").exists()


def test_a_copy_that_took_the_original_s_place_is_still_a_copy(original: Path) -> None:
    copy = Path(shutil.copytree(original, original.with_name("var2")))
    old = original.rename(original.with_name("old"))
    copy.rename(original)
    assert settle(original)
    assert not settle(old)
    assert name_of(old) == "first" != name_of(original)


def test_an_inode_that_is_the_same_by_chance_is_no_excuse(original: Path) -> None:
    copy = Path(shutil.copytree(original, original.with_name("var2")))
    told = (copy / HOME).read_text()
    inode = str((copy / NAME).stat().st_ino)
    (copy / HOME).write_text(told.replace(str((original / NAME).stat().st_ino), inode))
    assert settle(copy)


def test_another_way_to_the_same_folder_is_the_same(original: Path) -> None:
    link = original.with_name("link")
    link.symlink_to(original)
    assert not settle(link)
    assert not settle(original)
    assert name_of(original) == "first"


def test_of_an_earlier_release_a_copy_is_known_by_what_runs(running: Path) -> None:
    copy = Path(shutil.copytree(running, running.with_name("var2")))
    assert settle(copy)
    assert not settle(running)
    assert name_of(running) == "first" != name_of(copy)


def test_a_folder_without_a_name_is_left_alone(tmp_path: Path) -> None:
    assert not settle(tmp_path)
    assert list(tmp_path.iterdir()) == []
