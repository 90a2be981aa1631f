"""Usage records in files: kept in order, bounded, taken over, never shared."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.edge import usage_spool
from gateway.edge.usage_spool import UsageSpool

ENOUGH = 2**20


def lines(first: int, last: int) -> list[bytes]:
    return [b'{"request_id":"%06d"}' % number for number in range(first, last)]


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[UsageSpool]:
    spool = UsageSpool(tmp_path, "host:8001", ENOUGH)
    yield spool
    spool.close()


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_spool, "SEGMENT_BYTES", 1_000)


def drain(spool: UsageSpool, most: int = 7) -> list[bytes]:
    """All that waits, in the order it is given; each batch is sent in two parts."""
    found: list[bytes] = []
    while batch := spool.oldest(most):
        part = batch[: max(1, len(batch) // 2)]
        spool.sent(part)
        found += part
    return found


@pytest.mark.usefixtures("small_segments")
def test_lines_come_back_in_order_and_nothing_stays(spool: UsageSpool, tmp_path: Path) -> None:
    for first in range(0, 500, 50):
        assert spool.append(lines(first, first + 50)) == 50
    assert drain(spool) == lines(0, 500)
    assert (spool.is_empty, spool.bytes) == (True, 0)
    assert [path.name for path in (tmp_path / "host%3A8001").iterdir()] == ["lock"]


@pytest.mark.usefixtures("small_segments")
def test_lines_may_come_while_others_are_sent(spool: UsageSpool) -> None:
    found: list[bytes] = []
    for first in range(0, 500, 50):
        spool.append(lines(first, first + 50))
        batch = spool.oldest(30)
        spool.sent(batch)
        found += batch
    assert found + drain(spool) == lines(0, 500)


def test_no_more_is_written_than_there_is_room_for(tmp_path: Path) -> None:
    spool = UsageSpool(tmp_path, "e", most_bytes=100)
    assert spool.append(lines(0, 10)) == 4
    assert spool.append(lines(4, 5)) == 0
    assert spool.bytes <= 100
    assert drain(spool) == lines(0, 4)
    assert spool.append(lines(4, 5)) == 1
    spool.close()


def test_files_are_their_owner_s_alone(spool: UsageSpool, tmp_path: Path) -> None:
    spool.append(lines(0, 1))
    folder = tmp_path / "host%3A8001"
    modes = {path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert (folder.stat().st_mode & 0o777, modes) == (0o700, {0o600})


def test_a_started_edge_finds_what_was_not_sent(spool: UsageSpool, tmp_path: Path) -> None:
    spool.append(lines(0, 10))
    spool.sent(spool.oldest(4))
    spool.close()
    again = UsageSpool(tmp_path, "host:8001", ENOUGH)
    again.take_over()
    assert drain(again) == lines(0, 10)  # four of them a second time
    again.close()


def test_a_torn_line_is_counted_and_stops_nothing(spool: UsageSpool, tmp_path: Path) -> None:
    spool.append(lines(0, 3))
    spool.close()
    (segment,) = (tmp_path / "host%3A8001").glob("*.jsonl")
    segment.write_bytes(segment.read_bytes()[:-5])
    again = UsageSpool(tmp_path, "host:8001", ENOUGH)
    again.take_over()
    again.append(lines(3, 5))
    assert drain(again) == lines(0, 2) + lines(3, 5)
    assert again.torn == 1
    again.close()


def test_an_edge_takes_over_from_one_that_is_gone_but_not_from_one_alive(
    spool: UsageSpool, tmp_path: Path
) -> None:
    gone, alive = UsageSpool(tmp_path, "gone/1", ENOUGH), UsageSpool(tmp_path, "..", ENOUGH)
    gone.append(lines(0, 5))
    alive.append(lines(5, 6))
    gone.close()
    spool.append(lines(6, 7))
    spool.take_over()
    assert drain(spool) == lines(0, 5) + lines(6, 7)
    assert drain(alive) == lines(5, 6)
    alive.close()


def test_two_edges_of_one_name_do_not_share_a_file(spool: UsageSpool, tmp_path: Path) -> None:
    spool.append(lines(0, 5))
    second = UsageSpool(tmp_path, "host:8001", ENOUGH)
    second.append(lines(5, 9))
    assert (drain(spool), drain(second)) == (lines(0, 5), lines(5, 9))
    second.close()


def test_a_killed_edge_s_lock_is_gone_with_it(tmp_path: Path) -> None:
    program = (
        "import os, pathlib, sys; from gateway.edge.usage_spool import UsageSpool;"
        "UsageSpool(pathlib.Path(sys.argv[1]), 'e', 10**6).append([b'{}']); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    spool = UsageSpool(tmp_path, "e", ENOUGH)
    spool.take_over()
    assert drain(spool) == [b"{}"]
    spool.close()


def test_a_full_disk_leaves_no_half_of_a_line(
    spool: UsageSpool, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool.append(lines(0, 2))
    written = iter([10])

    def full(descriptor: int, data: memoryview) -> int:
        for most in written:
            return real(descriptor, data[:most])
        raise OSError(28, "No space left on device")

    real = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space"):
            spool.append(lines(2, 9))
    spool.append(lines(2, 4))
    assert (drain(spool), spool.torn) == (lines(0, 4), 0)


def test_a_clock_set_back_does_not_change_the_order(
    spool: UsageSpool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage_spool, "SEGMENT_BYTES", 1)
    spool.append(lines(0, 1))
    monkeypatch.setattr("time.time_ns", lambda: 1_000)
    spool.append(lines(1, 2))
    assert drain(spool) == lines(0, 2)


def test_a_removed_file_holds_nothing_up(spool: UsageSpool, tmp_path: Path) -> None:
    folder = tmp_path / "host%3A8001"
    spool.append(lines(0, 2))
    for segment in folder.glob("*.jsonl"):
        segment.unlink()
    assert spool.oldest(5) == []
    spool.append(lines(2, 4))
    assert drain(spool) == lines(2, 4)


def test_nothing_is_made_before_it_is_needed(tmp_path: Path) -> None:
    spool = UsageSpool(tmp_path / "usage", "e", ENOUGH)
    spool.take_over()
    spool.close()
    assert list(tmp_path.iterdir()) == []


def test_an_id_too_long_for_a_file_s_name_has_a_folder_too(tmp_path: Path) -> None:
    spool = UsageSpool(tmp_path, "é/" * 200, ENOUGH)
    assert spool.append(lines(0, 1)) == 1
    spool.close()
