"""Logs through their host's worker and a real Valkey, as the web reads them."""

import os
import random
import threading
import types
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import redis
from django.db import connection
from pytest_django import Settings

from lanes import log_pages, log_reading, ticks
from lanes.log_pages import PAGE, Seen, State
from lanes.log_reading import Piece, fetch, piece_of
from lanes.logs import segments
from lanes.models import Lane, Runtime
from lanes.refusals import Refusal
from tests import builders, fleet, log_world
from tests.conftest import ValkeyServer
from tests.log_world import Worker

pytestmark = [pytest.mark.valkey, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def lane(settings: Settings, tmp_path: Path, valkey: str, transactional_db: None) -> Iterator[Lane]:
    settings.SLOTSERVE_DATA = tmp_path
    with log_world.asking(valkey):
        yield builders.lane("demo")


@pytest.fixture
def host(lane: Lane, valkey: str) -> Iterator[Worker]:
    """The host's worker, which answers."""
    with log_world.worker(valkey) as worker:
        yield worker


def piece(lane: Lane, run: Runtime, offset: int | None = None, lines: int = 400) -> Piece:
    found = fetch(lane, run, offset, lines=lines)
    assert isinstance(found, Piece), found
    return found


def refusal(lane: Lane, run: Runtime, monkeypatch: pytest.MonkeyPatch) -> Refusal:
    monkeypatch.setattr(log_reading, "WAIT_SECONDS", 0.3)
    found = fetch(lane, run)
    assert isinstance(found, Refusal), found
    return found


def through(lane: Lane, run: Runtime, offset: int = 0) -> tuple[str, ...]:
    """Every line from the offset to the end of a run that is over."""
    lines: tuple[str, ...] = ()
    while True:
        found = piece(lane, run, offset)
        lines, offset = lines + found.lines, found.next
        if found.is_over:
            return lines


def test_the_last_lines_come_from_the_host(lane: Lane, host: Worker) -> None:
    run = log_world.run(lane)
    log_world.write(run, b"first\nsecond\n\x1b[31mthird\x1b[0m\nfour")
    found = piece(lane, run, lines=2)
    assert found.lines == ("second", "third")
    assert (found.offset, found.next, found.unfinished) == (6, 28, "four")
    assert (found.is_over, found.has_more, found.note) == (False, False, "")


def test_a_run_that_is_over_is_told_to_its_last_byte(lane: Lane, host: Worker) -> None:
    run = log_world.ended(lane)
    log_world.write(run, b"first\nno newline")
    found = piece(lane, run)
    assert found.lines == ("first", "no newline")
    assert found.is_over
    assert not found.unfinished


def test_a_long_log_is_read_through_over_pages_and_files(
    lane: Lane, host: Worker, settings: Settings
) -> None:
    settings.SLOTSERVE_LOG_BYTES = 400_000
    run = log_world.ended(lane)
    lines = [f"line {number:06} {'x' * (number % 300)}" for number in range(2000)]
    log_world.write(run, *(f"{line}\n".encode() for line in lines))
    assert len(segments(run.log_path)) == 4
    assert through(lane, run) == tuple(lines)


def test_a_follower_loses_and_doubles_nothing_while_files_turn_over(
    lane: Lane, host: Worker, settings: Settings
) -> None:
    settings.SLOTSERVE_LOG_BYTES = 2_000_000
    run = log_world.run(lane)
    lines = [f"{number:05} {'y' * (number * 7 % 150)}" for number in range(20_000)]

    def serve() -> None:
        with log_world.log_of(run) as log:
            for line in lines:
                log.write(f"{line}\n".encode())
        Runtime.objects.update(phase="stopped", ended_at=run.started_at)
        connection.close()

    server = threading.Thread(target=serve)
    server.start()
    told = through(lane, run)
    server.join()
    assert told == tuple(lines)
    assert len(segments(run.log_path)) > 2


def test_who_fell_behind_is_told_how_much_is_gone(
    lane: Lane, host: Worker, settings: Settings
) -> None:
    settings.SLOTSERVE_LOG_BYTES = 4000
    run = log_world.ended(lane)
    log_world.write(run, *(f"line {number:04}\n".encode() for number in range(1000)))
    found = piece(lane, run, 5)
    first = segments(run.log_path)[0].start
    assert (found.offset, found.skipped) == (first, first - 5)
    assert found.lines[-1] == "line 0999"


@pytest.mark.parametrize("offset", [None, 0, 12])
def test_many_followers_cost_the_host_one_reading(
    lane: Lane, host: Worker, offset: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_pages, "FRESH_MS", 60_000)  # however slow the machine is
    run = log_world.run(lane)
    log_world.write(run, b"first line\nand\n")
    together = threading.Barrier(30)

    def follow(_number: int) -> Piece:
        together.wait()
        return piece(lane, run, offset)

    with ThreadPoolExecutor(30) as pool:
        told = set(pool.map(follow, range(30)))
    assert len({each.next for each in told}) == 1
    assert 1 <= len(host.done) <= 2


def test_a_host_reads_nothing_that_nobody_asks_for(
    lane: Lane, host: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = log_world.run(lane)
    log_world.write(run, b"words\n")
    end = piece(lane, run).next
    client = ticks.valkey()
    keys = list(client.scan_iter("ss:log:*"))
    assert len(keys) >= 2
    assert all(0 < client.pttl(key) <= log_pages.KEPT_SECONDS * 1000 for key in keys)
    fleet.until(lambda: not log_pages.seen(run.pk, None).is_fresh)
    monkeypatch.setattr(log_pages, "FRESH_MS", 60_000)
    fetched = len(host.done)
    for _ in range(5):
        piece(lane, run, end)
    fleet.until(lambda: len(host.done) == fetched + 1)


def test_new_lines_reach_a_follower_that_has_asked_before(lane: Lane, host: Worker) -> None:
    run = log_world.run(lane)
    with log_world.log_of(run) as log:
        log.write(b"one\ntw")
        first = piece(lane, run)
        log.write(b"o\nthree\n")
        told: list[str] = []
        offset = first.next

        def has_come() -> bool:
            nonlocal offset
            found = piece(lane, run, offset)
            told.extend(found.lines)
            offset = found.next
            return len(told) >= 2

        fleet.until(has_come)
    assert (first.lines, first.unfinished) == (("one",), "tw")
    assert told == ["two", "three"]


JUNK = {
    "one letter": b"x" * 300_000,
    "random": random.Random(1).randbytes(200_000),
    "NUL": b"\0" * 150_000,
}


@pytest.mark.parametrize("junk", JUNK.values(), ids=JUNK)
def test_long_lines_and_junk_break_nothing(lane: Lane, host: Worker, junk: bytes) -> None:
    run = log_world.ended(lane)
    log_world.write(run, b"before\n", junk, b"\nafter\n")
    lines = through(lane, run)
    assert lines[0] == "before"
    assert lines[-1] == "after"
    assert max(map(len, lines)) < 2100


def test_a_host_that_does_not_answer_is_named(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    found = refusal(lane, log_world.run(lane), monkeypatch)
    assert found.code == "host_unreachable"
    assert found.words.startswith("test-host does not answer")
    assert ticks.valkey().llen("host.test-host") == 1  # however often it was asked


def test_a_broker_that_is_away_is_told(
    lane: Lane, monkeypatch: pytest.MonkeyPatch, valkey_server: ValkeyServer
) -> None:
    run = log_world.run(lane)
    valkey_server.stop()
    assert refusal(lane, run, monkeypatch).code == "broker_away"


def test_another_host_s_worker_says_nothing(lane: Lane, settings: Settings) -> None:
    run = log_world.run(lane)
    log_world.write(run, b"words\n")
    settings.SLOTSERVE_HOST_KEY = "another"
    log_reading.put_pages(run.pk, log_pages.TAIL)
    log_reading.put_pages(run.pk + 1, log_pages.TAIL)
    assert list(ticks.valkey().scan_iter("ss:log:*")) == []


def test_a_log_that_is_not_kept_any_more_is_told(lane: Lane, host: Worker) -> None:
    found = piece(lane, log_world.ended(lane))
    assert (
        found.note
        == "The log of this run is not on test-host: the newest 5 of a lane are kept there."
    )
    assert (found.lines, found.is_over) == ((), True)


def test_a_log_that_was_removed_is_told_and_goes_on(lane: Lane, host: Worker) -> None:
    run = log_world.run(lane)
    with log_world.log_of(run) as log:
        log.write(b"gone\n")
        Path(segments(run.log_path)[0].path).unlink()
        found = piece(lane, run)
        assert (
            found.note == "The server has written nothing yet, or its log on test-host was removed."
        )
        log.write(b"here\n")
        fleet.until(lambda: piece(lane, run).lines == ("here",))


def test_a_full_disk_is_told(lane: Lane, host: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    full = types.SimpleNamespace(f_bavail=1, f_bfree=1, f_blocks=9, f_frsize=4096)
    monkeypatch.setattr(os, "statvfs", lambda _path: full)
    run = log_world.run(lane)
    log_world.write(run, b"words\n")
    assert (
        piece(lane, run).note
        == "The disk of test-host is full: what the server writes now is lost."
    )
    assert piece(lane, log_world.ended(lane)).note.startswith("The log of this run is not")


def test_threads_that_come_at_once_get_one_client(
    valkey: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = redis.Redis.from_url
    together = threading.Barrier(8)

    def slowly(url: str, **options: object) -> redis.Redis:
        threading.Event().wait(0.05)
        return made(url, **options)

    def client(_number: int) -> redis.Redis:
        together.wait()
        return ticks.valkey()

    monkeypatch.setattr(redis.Redis, "from_url", slowly)
    with ThreadPoolExecutor(8) as pool:
        assert len(set(map(id, pool.map(client, range(8))))) == 1
    ticks.valkey().close()


def test_a_late_or_doubled_fetch_changes_nothing(lane: Lane) -> None:
    run = log_world.run(lane)
    log_world.write(run, b"one\n")
    early = segments(run.log_path)
    with log_world.log_of(run) as log:
        log.write(b"one\ntwo\n")
        for _ in range(2):
            log_reading.put_pages(run.pk, log_pages.TAIL)
        log_pages.put(run.pk, log_pages.TAIL, early, State(0, 4, is_over=False))
    found = piece(lane, run, 4)
    assert found.lines == ("two",)


STATE = State(first=0, end=8, is_over=False)
OVER = State(first=0, end=8, is_over=True)


@pytest.mark.parametrize(
    ("seen", "start", "told"),
    [
        (Seen(None, is_fresh=False), 0, None),
        (Seen(None, is_fresh=True), 0, None),
        (Seen(STATE, is_fresh=False, data=b""), 0, None),
        (Seen(STATE, is_fresh=False, data=b"one\ntw"), 0, (("one",), "", 4)),
        (Seen(STATE, is_fresh=False, data=b"half"), 0, None),
        (Seen(STATE, is_fresh=False, data=b""), 8, None),
        (Seen(STATE, is_fresh=True, data=b""), 8, ((), "", 8)),
        (Seen(STATE, is_fresh=True, data=b""), 99, ((), "", 99)),
        (Seen(STATE, is_fresh=True, data=b"one\ntwo "), 0, (("one",), "two ", 4)),
        (Seen(STATE, is_fresh=True, data=b"one\n"), 0, (("one",), "", 4)),
        (Seen(OVER, is_fresh=True, data=b"one\ntwo "), 0, (("one", "two "), "", 8)),
        (
            Seen(OVER, is_fresh=True, data=b"one\ntwo\n and more"),
            0,
            (("one", "two", " and more"), "", 17),
        ),
    ],
)
def test_what_is_there_is_told_and_the_end_only_while_it_is_fresh(
    seen: Seen, start: int, told: tuple[tuple[str, ...], str, int] | None
) -> None:
    found = piece_of(seen, start, start, 400)
    assert (found and (found.lines, found.unfinished, found.next)) == told


def test_the_newest_lines_are_told_only_whole_and_fresh() -> None:
    assert piece_of(Seen(STATE, is_fresh=False, data=b"one\ntwo\n"), 0, None, 1) is None
    assert piece_of(Seen(STATE, is_fresh=True, data=b"one\n"), 0, None, 1) is None
    found = piece_of(Seen(STATE, is_fresh=True, data=b"one\ntwo\n"), 0, None, 1)
    assert found is not None
    assert found.lines == ("two",)


def test_a_line_cut_by_the_page_is_not_told_as_one() -> None:
    state = State(first=0, end=PAGE + 100, is_over=False)
    data = b"x" * 50 + b"\n" + b"y" * (PAGE - 51)
    found = piece_of(Seen(state, is_fresh=True, data=data), 100, None, 400)
    assert found is not None
    assert (found.lines, found.offset) == ((), 151)
