"""The drain barrier: what edges report in a real Valkey, and what the sockets show."""

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from lanes import barrier, sockets, ticks
from lanes.barrier import Reports, judge
from lanes.steps import Barrier
from tests.conftest import ValkeyServer
from wire.edges import EDGES, EdgeReport, LaneCount, encode_report

NOW = 1_000_000
A, B = frozenset({"a"}), frozenset({"a", "b"})


def reports(**counts: tuple[int, int] | None) -> Reports:
    """Fresh reports of edges about lane "x": (generation, in flight)."""
    lanes = {name: {"x": LaneCount(*count)} if count else {} for name, count in counts.items()}
    return Reports(NOW, {name: EdgeReport(name, NOW, seen) for name, seen in lanes.items()})


@pytest.mark.parametrize(
    ("known", "seen", "expected"),
    [
        (A, reports(a=(5, 0)), Barrier.ZERO),
        (A, reports(a=(6, 0)), Barrier.ZERO),
        (A, reports(a=(5, 1)), Barrier.BUSY),
        (A, reports(a=(4, 0)), Barrier.BUSY),
        (A, reports(a=None), Barrier.UNKNOWN),
        (A, None, Barrier.UNKNOWN),
        (A, reports(), Barrier.UNKNOWN),
        (frozenset(), reports(), Barrier.UNKNOWN),
        (B, reports(a=(5, 0)), Barrier.UNKNOWN),
        (B, reports(a=(5, 1)), Barrier.BUSY),
        (B, reports(a=(5, 0), b=(5, 0)), Barrier.ZERO),
        (B, reports(a=(5, 0), b=(5, 2)), Barrier.BUSY),
    ],
)
def test_what_edges_say(known: frozenset[str], seen: Reports | None, expected: Barrier) -> None:
    assert judge(known, seen, "x", 5) is expected


@pytest.mark.parametrize(("age", "expected"), [(5000, Barrier.ZERO), (5001, Barrier.UNKNOWN)])
def test_a_report_holds_for_five_seconds(age: int, expected: Barrier) -> None:
    report = EdgeReport("a", NOW - age, {"x": LaneCount(5, 0)})
    assert judge(A, Reports(NOW, {"a": report}), "x", 5) is expected


@pytest.fixture
def folder(settings: Settings, tmp_path: Path) -> Path:
    settings.SLOTSERVE_DATA = tmp_path
    return tmp_path


def tell(edge: str, *, goodbye: bool = False, at_ms: int | None = None) -> None:
    """An edge's report in Valkey."""
    at_ms = at_ms or time.time_ns() // 1_000_000
    report = EdgeReport(edge, at_ms, {"x": LaneCount(5, 0)}, goodbye=goodbye)
    ticks.valkey().hset(EDGES, edge, encode_report(report))


@pytest.mark.valkey
def test_edges_that_cannot_be_written_down_fail_no_look(folder: Path, valkey: str) -> None:
    draft = folder / "lanes" / f"known-edges.{os.getpid()}"
    draft.mkdir(parents=True)  # a full disk would be in the way as well
    tell("a")
    assert barrier.remember_edges(barrier.read_reports()) == A
    draft.rmdir()
    assert barrier.remember_edges(barrier.read_reports()) == A
    assert barrier.remember_edges(None) == A


@pytest.mark.valkey
def test_an_emptied_valkey_makes_no_edge_disappear(folder: Path, valkey: str) -> None:
    tell("a")
    assert barrier.remember_edges(barrier.read_reports()) == A
    ticks.valkey().flushall()
    assert barrier.remember_edges(barrier.read_reports()) == A


@pytest.mark.valkey
def test_an_edge_leaves_by_goodbye(folder: Path, valkey: str) -> None:
    tell("a")
    tell("b")
    barrier.remember_edges(barrier.read_reports())
    tell("b", goodbye=True)
    assert barrier.remember_edges(barrier.read_reports()) == A


@pytest.mark.valkey
def test_valkeys_clock_is_the_clock_of_reports(folder: Path, valkey: str) -> None:
    tell("a")
    seen = barrier.read_reports()
    assert seen is not None
    assert abs(seen.now_ms - seen.by_edge["a"].at_ms) < 2000


@pytest.mark.valkey
def test_what_is_no_report_is_no_edges_word(folder: Path, valkey: str) -> None:
    tell("a")
    barrier.remember_edges(barrier.read_reports())
    ticks.valkey().hset(EDGES, "a", b"nonsense")
    seen = barrier.read_reports()
    assert judge(barrier.remember_edges(seen), seen, "x", 5) is Barrier.UNKNOWN


@pytest.mark.valkey
def test_a_valkey_that_is_down_is_unknown(
    folder: Path, valkey: str, valkey_server: ValkeyServer
) -> None:
    tell("a")
    barrier.remember_edges(barrier.read_reports())
    valkey_server.stop()
    assert barrier.read_reports() is None
    assert barrier.remember_edges(None) == A


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


def test_unknown_edges_are_excused_when_nobody_is_connected(
    folder: Path, listener: socket.socket
) -> None:
    port = listener.getsockname()[1]
    assert barrier.see("x", 5, os.getpid(), port) is Barrier.ZERO


def test_unknown_edges_are_not_excused_while_somebody_is_connected(
    folder: Path, listener: socket.socket
) -> None:
    port = listener.getsockname()[1]
    with socket.create_connection(("127.0.0.1", port)):
        assert barrier.see("x", 5, os.getpid(), port) is Barrier.UNKNOWN
    assert barrier.see("x", 5, os.getpid(), port) is Barrier.ZERO


def test_a_socket_table_that_cannot_be_read_excuses_nobody() -> None:
    assert sockets.has_connections(2**22 + 1, 80)


def test_connections_over_ipv6_count_too() -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as listener6:
        port = listener6.getsockname()[1]
        with socket.create_connection(("::1", port)):
            assert sockets.has_connections(os.getpid(), port)


@pytest.mark.parametrize(
    ("bound", "asked", "is_found"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("0.0.0.0", "127.0.0.1", True),
        ("127.0.0.2", "127.0.0.1", False),
    ],
)
def test_listeners_that_a_connection_could_reach(bound: str, asked: str, is_found: bool) -> None:
    with socket.create_server((bound, 0)) as made:
        port = made.getsockname()[1]
        assert bool(sockets.listeners(os.getpid(), asked, port)) is is_found
