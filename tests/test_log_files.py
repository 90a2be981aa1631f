"""A run's log in files: every byte keeps its offset, across seams, lost files and full disks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanes.logs import RotatingLog, read, read_tail, segments
from slotserve.stack.parts import ROOT

LIMIT = 64  # bytes: four segments of 16


def written(folder: Path, *chunks: bytes, limit: int = LIMIT) -> bytes:
    """What was written, as a log of this limit was told it."""
    with RotatingLog(str(folder), limit) as log:
        for chunk in chunks:
            log.write(chunk)
    return b"".join(chunks)


def kept(folder: Path) -> tuple[int, bytes]:
    """The first offset and everything from there on."""
    found = segments(str(folder))
    start = found[0].start
    return start, read(found, start, found[-1].end - start)


@given(st.lists(st.binary(max_size=50)), st.integers(4, 200))
@settings(max_examples=60)
def test_what_is_kept_is_the_end_of_what_was_written_at_its_offset(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[bytes], limit: int
) -> None:
    folder = tmp_path_factory.mktemp("log") / "1"
    everything = written(folder, *chunks, limit=limit)
    if not everything:
        assert segments(str(folder)) == []
        return
    start, data = kept(folder)
    assert data == everything[start:]
    assert len(data) <= limit
    assert len(data) >= min(len(everything), limit // 4 * 3)


@given(st.integers(0, 220), st.integers(1, 120))
def test_a_reader_goes_across_seams_by_its_offset_alone(
    tmp_path_factory: pytest.TempPathFactory, offset: int, size: int
) -> None:
    folder = tmp_path_factory.mktemp("log") / "1"
    everything = written(folder, bytes(range(1, 201)), limit=1000)
    assert read(segments(str(folder)), offset, size) == everything[offset : offset + size]


def test_nothing_of_an_earlier_run_is_read_as_this_one_s(tmp_path: Path) -> None:
    written(tmp_path / "1", b"the first run's words, over more than one file")
    written(tmp_path / "1", b"mine")
    assert kept(tmp_path / "1") == (0, b"mine")


def test_the_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    written(tmp_path / "logs" / "1", b"words")
    (segment,) = segments(str(tmp_path / "logs" / "1"))
    assert os.stat(segment.path).st_mode & 0o777 == 0o600
    assert (tmp_path / "logs" / "1").stat().st_mode & 0o777 == 0o700


def test_a_file_removed_or_cut_meanwhile_leaves_a_gap_that_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "1"
    with RotatingLog(str(folder), 4000) as log:
        log.write(b"removed\n")
        Path(segments(str(folder))[0].path).unlink()
        log.write(b"kept, and then cut\n")
        os.truncate(segments(str(folder))[0].path, 0)
        log.write(b"last\n")
    found = segments(str(folder))
    assert [(each.start, each.end) for each in found] == [(8, 8), (27, 32)]
    told = read(found, 8, 100)
    assert told.startswith(b"[slotserve: 19 byte")
    assert told.endswith(b"last\n")
    assert len(told) == 24


def test_a_folder_removed_meanwhile_is_made_again(tmp_path: Path) -> None:
    folder = tmp_path / "1"
    with RotatingLog(str(folder), 4000) as log:
        log.write(b"gone")
        Path(segments(str(folder))[0].path).unlink()
        folder.rmdir()
        log.write(b"here")
    assert kept(folder) == (4, b"here")


def test_a_long_gap_is_a_sentence_and_zeros(tmp_path: Path) -> None:
    folder = tmp_path / "1"
    written(folder, b"a" * 400, limit=400)
    Path(segments(str(folder))[1].path).unlink()
    told = read(segments(str(folder)), 100, 100)
    assert told == b"[slotserve: 100 bytes are missing here]\n".ljust(100, b"\0")
    assert read(segments(str(folder)), 150, 100) == b"\0" * 50 + b"a" * 50


FULL = """
import resource, sys
from lanes.logs import RotatingLog
with RotatingLog(sys.argv[1], 4_000_000) as log:
    log.write(b"before\\n")
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, resource.RLIM_INFINITY))
    log.write(b"lost in part\\n")
    log.write(b"lost\\n")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    log.write(b"after\\n")
"""


def test_what_could_not_be_written_is_told_once_there_is_room(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", FULL, str(tmp_path / "1")]
    subprocess.run(argv, cwd=ROOT, check=True, timeout=120)
    _start, data = kept(tmp_path / "1")
    assert data == b"before\nlos\n[slotserve: 15 bytes of output are lost: File too large]\nafter\n"


def test_a_log_that_can_nowhere_be_written_raises_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with RotatingLog(str(tmp_path / "file" / "1"), LIMIT) as log:
        log.write(b"lost")
    assert segments(str(tmp_path / "file" / "1")) == []


def test_the_log_of_a_release_before_is_read_and_put_aside(tmp_path: Path) -> None:
    old = tmp_path / "lane-1.log"
    old.write_bytes(b"first\nlast\n")
    assert read_tail(str(old), 5) == "last\n"
    written(old, b"new")  # a worker of that release names the file
    assert kept(old) == (0, b"new")
    assert Path(f"{old}.1").read_bytes() == b"first\nlast\n"


def test_the_tail_is_the_end_over_several_files(tmp_path: Path) -> None:
    everything = written(tmp_path / "1", b"0123456789" * 6)
    assert read_tail(str(tmp_path / "1"), 25) == everything[-25:].decode()
    assert read_tail(str(tmp_path / "none")) == ""


def test_other_files_of_the_folder_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "notes.log").write_text("mine")
    written(tmp_path / "1", b"x" * 200)
    assert (tmp_path / "1" / "notes.log").read_text() == "mine"
    assert len(segments(str(tmp_path / "1"))) == 4


def odd_ones(folder: Path) -> list[str]:
    """What a model server can put there that runs as the worker's own user."""
    secret = folder.with_name("secret")
    secret.write_text("secret")
    first = folder / f"{0:020}.log"
    first.unlink()
    return [
        f"ln -s {secret} {first}",
        f"mkfifo {first}",
        f"mkdir {first}",
        f"ln -s /dev/zero {first}",
        f"touch {folder}/².log {folder}/1.log",
    ]


@pytest.mark.parametrize("number", range(5))
def test_only_plain_files_of_ours_are_read(tmp_path: Path, number: int) -> None:
    written(tmp_path / "1", b"x" * 20)
    subprocess.run(odd_ones(tmp_path / "1")[number].split(), check=True)
    assert read_tail(str(tmp_path / "1")).strip("x") == ""
    assert segments(str(tmp_path / "1"))[1:] == []


def test_a_file_that_becomes_a_pipe_or_a_link_is_not_waited_for_nor_followed(
    tmp_path: Path,
) -> None:
    written(tmp_path / "1", b"x" * 10)
    found = segments(str(tmp_path / "1"))
    for command in odd_ones(tmp_path / "1")[:2]:
        subprocess.run(command.split(), check=True)
        assert read(found, 0, 10) == b""
        Path(found[0].path).unlink()


def test_what_is_written_goes_through_no_link(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("mine")
    with RotatingLog(str(tmp_path / "1"), LIMIT) as log:
        (tmp_path / "1").mkdir(exist_ok=True)
        (tmp_path / "1" / f"{0:020}.log").symlink_to(other)
        log.write(b"theirs")
    assert other.read_text() == "mine"
