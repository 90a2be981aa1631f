"""The gate: check and count in one step, and the same question again before the first byte."""

import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from gateway.edge import verdicts
from gateway.edge.clock import EdgeClock
from gateway.edge.config import EdgeConfig, read_config
from gateway.edge.exchange import Exchange, MovedError
from gateway.edge.gate import Gate
from gateway.edge.prefer import Patience
from gateway.edge.queue import Turn
from gateway.edge.refusals import EdgeRefusal
from gateway.edge.routing import Asked, Caller
from gateway.edge.slots import Slots
from gateway.edge.table import LaneRoute, digest_of
from tests.edge_harness import MEMBER, OWNER, grant, key_of, lane, table, upstream
from tests.uncollected import uncollected

NOW = 1000.0
ELSEWHERE = upstream("http://127.0.0.1:10")
Hold = Callable[..., None]


@pytest.fixture
def moment() -> list[float]:
    """What the clock says."""
    return [NOW]


@pytest.fixture
def set_by() -> list[float]:
    """By how much this host's clock has been set."""
    return [0.0]


@pytest.fixture
def gate(moment: list[float], set_by: list[float]) -> Gate:
    clock = EdgeClock(monotonic=lambda: moment[0], wall=lambda: moment[0] + set_by[0])
    return Gate(EdgeConfig("redis://nowhere", "edge-1"), clock, Mock(), Slots())


@pytest.fixture
def hold(gate: Gate) -> Hold:
    """Put a table with these lanes in force."""

    def put(*lanes: LaneRoute) -> None:
        found = table(*lanes)
        gate.table = lambda: found

    return put


def turn(owner: int = MEMBER, **fields: Any) -> Turn:
    return Turn(Caller(digest_of(key_of(owner).encode())), Asked("qwen"), **fields)


def busy(gate: Gate) -> EdgeRefusal:
    refused = gate.enter(turn())
    assert isinstance(refused, EdgeRefusal)
    assert refused.code == "lane_busy"
    return refused


def entered(gate: Gate) -> Exchange:
    exchange = gate.enter(turn())
    assert isinstance(exchange, Exchange)
    return exchange


async def test_who_enters_counts_until_leaving(gate: Gate, hold: Hold) -> None:
    hold(lane())
    first, second = entered(gate), entered(gate)
    assert (gate.in_flight, gate.is_empty.is_set()) == ({"main": 2}, False)
    gate.leave(first)
    gate.leave(second)
    assert (gate.in_flight, gate.is_empty.is_set()) == ({}, True)


async def test_of_an_exchange_that_has_left_nothing_waits_for_the_collector(
    gate: Gate, hold: Hold
) -> None:
    hold(lane())
    with uncollected():
        exchange = entered(gate)
        left = weakref.ref(exchange)
        gate.leave(exchange)
        del exchange
        assert left() is None


async def test_who_is_refused_does_not_count(gate: Gate, hold: Hold) -> None:
    hold(lane(grants=(grant(OWNER, 0, NOW + 60),)))
    refused = gate.enter(turn())
    assert isinstance(refused, EdgeRefusal)
    assert gate.in_flight == {}


async def test_requests_spread_over_lanes_that_hold_the_model(gate: Gate, hold: Hold) -> None:
    hold(lane("a"), lane("b", upstream=ELSEWHERE))
    assert [entered(gate).route.lane.slug for _ in range(4)] == ["a", "b", "a", "b"]


async def test_a_request_stays_on_its_lane_though_another_has_fewer(gate: Gate, hold: Hold) -> None:
    hold(lane("a"), lane("b", upstream=ELSEWHERE))
    entered(gate).connected(Mock())  # does not raise


@pytest.mark.parametrize(
    "later",
    [
        lane(upstream=ELSEWHERE),
        lane(upstream=upstream(generation=2)),
        lane(draining=True),
        lane(grants=(grant(OWNER, 0, NOW + 60),)),
        lane(phase="stopping", upstream=None),
    ],
    ids=["another server", "a newer server", "a drain", "another's slot", "no server"],
)
async def test_before_the_first_byte_the_question_is_asked_again(
    gate: Gate, hold: Hold, later: LaneRoute
) -> None:
    hold(lane())
    exchange = entered(gate)
    hold(later)
    with pytest.raises(MovedError):
        exchange.connected(Mock())


async def test_while_nobody_knows_the_time_nobody_comes_in(
    gate: Gate, hold: Hold, set_by: list[float]
) -> None:
    hold(lane())
    entered(gate).connected(Mock())
    chosen = entered(gate)
    set_by[0] = 60.0
    had_waited = turn(last=verdicts.lane_busy("main", 1, None))
    found = [
        gate.enter(turn()),
        gate.enter(had_waited),
        gate.choose(turn().caller, Asked()),
        gate.known(turn().caller, Asked()),
    ]
    for refused in found:
        assert isinstance(refused, EdgeRefusal)
        assert (refused.status, refused.code, refused.retry_after) == (503, "gateway_stale", 1)
    with pytest.raises(MovedError):
        chosen.connected(Mock())


async def test_who_waits_goes_on_waiting_while_nobody_knows_the_time(
    gate: Gate, hold: Hold, set_by: list[float]
) -> None:
    hold(lane(phase="starting", upstream=None, target="qwen"))
    waiting = turn(patience=Patience(60.0, 60.0))
    refused = gate.enter(waiting)
    assert isinstance(refused, EdgeRefusal)
    assert gate.waiters.join(waiting, refused) is None
    set_by[0] = -60.0
    hold(lane())
    gate.sweep()
    assert (waiting.outcome, gate.waiting) == (None, {"main": 1})
    set_by[0] = 0.0  # as if Valkey had told the time
    gate.sweep()
    assert isinstance(waiting.outcome, Exchange)


async def test_a_busy_lane_says_when_to_ask_again_by_how_long_its_requests_take(
    hold: Hold, gate: Gate, moment: list[float]
) -> None:
    hold(lane(upstream=upstream(slots=2)))
    first, _ = entered(gate), entered(gate)
    assert busy(gate).retry_after == 2  # nothing is known yet
    moment[0] += 8
    gate.leave(first)
    entered(gate)
    assert busy(gate).retry_after == 4  # one of two slots becomes free every 4 s


async def test_only_who_does_not_read_is_ended_for_stalling(gate: Gate, hold: Hold) -> None:
    hold(lane())
    reading, waiting, stalled = entered(gate), entered(gate), entered(gate)
    reading.writing_since, stalled.writing_since = NOW - 299, NOW - 301
    gate.sweep()
    assert [e.stopped_by is not None for e in (reading, waiting, stalled)] == [False, False, True]


async def test_only_a_server_that_says_nothing_is_ended_for_silence(gate: Gate, hold: Hold) -> None:
    hold(lane())
    speaking, connecting, silent = entered(gate), entered(gate), entered(gate)
    speaking.waiting_since, silent.waiting_since = NOW - 3599, NOW - 3601
    gate.sweep()
    found = [e.stopped_by and e.stopped_by.code for e in (speaking, connecting, silent)]
    assert found == [None, None, "upstream_failed"]


@pytest.mark.parametrize(
    ("is_host_away", "code"), [(False, "upstream_failed"), (True, "host_unreachable")]
)
async def test_who_could_not_be_reached_a_moment_ago_is_not_asked_again(
    gate: Gate, hold: Hold, is_host_away: bool, code: str
) -> None:
    route = lane()
    hold(route)
    turn = Turn(Caller(digest_of(key_of(OWNER).encode())), Asked())
    turn.avoided, turn.avoided_until, turn.is_host_away = route.upstream, NOW + 1, is_host_away
    found = gate.enter(turn)
    assert isinstance(found, EdgeRefusal)
    assert (found.code, found.lane) == (code, "main")


def test_what_is_not_loaded_is_booked_at_the_page_that_is_known(
    gate: Gate, hold: Hold, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold(lane(upstream=ELSEWHERE))
    asked = replace(turn(), asked=Asked("smol"))
    plain, refused = gate.enter(asked), gate.choose(asked.caller, asked.asked)
    assert plain == refused
    assert isinstance(plain, EdgeRefusal)
    assert plain.code == "model_not_loaded"
    monkeypatch.setattr(gate, "_config", replace(gate._config, book_url="https://gpu.lan/book/"))
    for found in (gate.enter(asked), gate.choose(asked.caller, asked.asked)):
        assert isinstance(found, EdgeRefusal)
        assert found.words == f"{plain.words} Book it at https://gpu.lan/book/"


def test_the_page_to_book_at_is_below_the_web_address(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_config(8001).book_url is None
    monkeypatch.setenv("SLOTSERVE_WEB_URL", "https://gpu.lan/")
    assert read_config(8001).book_url == "https://gpu.lan/book/"
