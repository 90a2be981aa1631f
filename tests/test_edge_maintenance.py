"""Maintenance at the edge: who hears of it, from when to when, and what becomes of what runs."""

import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from gateway.edge.catalogue import list_models
from gateway.edge.closures import closure_at
from gateway.edge.endings import Running as Admitted
from gateway.edge.endings import ending
from gateway.edge.refusals import EdgeRefusal
from gateway.edge.routing import Asked, Caller, Route, choose
from gateway.edge.table import (
    Closure,
    LaneRoute,
    ModelInfo,
    decode_maintenance,
    digest_of,
    encode_part,
)
from gateway.edge.waiting import next_change
from tests import upstreams
from tests.conftest import ValkeyServer
from tests.edge_harness import (
    MEMBER,
    OWNER,
    Running,
    edge_at,
    grant,
    key_of,
    lane,
    table,
    until,
    upstream,
)

NOW, LATER = 1000.0, 4000.0
WINDOW = Closure(NOW - 10, NOW + 90, "new fans")
OPEN = Closure(NOW - 10, None)
MINE, WHOLE = grant(OWNER, 0, LATER), grant(OWNER, 0, LATER, preset=None)


def ask(
    *closures: Closure, owner: int = OWNER, model: str | None = None, **fields: Any
) -> Route | EdgeRefusal:
    here = table(lane(**fields), closures={"main": closures})
    return choose(here, Caller(digest_of(key_of(owner).encode())), Asked(model), NOW)


def code(answer: Route | EdgeRefusal) -> str:
    return answer.code if isinstance(answer, EdgeRefusal) else "served"


# closures, the booking in progress, what is named -> the owner's answer, the other's
ROWS: list[tuple[list[Closure], Any, str | None, str, str]] = [
    ([WINDOW], None, None, "lane_maintenance", "lane_maintenance"),
    ([OPEN], None, None, "lane_maintenance", "lane_maintenance"),
    ([WINDOW], MINE, None, "lane_maintenance", "gpu_reserved"),
    ([WINDOW], WHOLE, None, "lane_maintenance", "gpu_reserved"),
    ([WINDOW], None, "nope", "lane_maintenance", "lane_maintenance"),
    ([Closure(NOW - 20, NOW)], MINE, None, "served", "gpu_reserved"),
    ([Closure(NOW + 1, None)], None, None, "served", "served"),
    ([], None, None, "served", "served"),
]


@pytest.mark.parametrize(("closures", "booking", "model", "owners", "others"), ROWS)
def test_each_row(
    closures: list[Closure], booking: Any, model: str | None, owners: str, others: str
) -> None:
    grants = (booking,) if booking else ()
    answers = [ask(*closures, owner=who, model=model, grants=grants) for who in (OWNER, MEMBER)]
    assert [code(answer) for answer in answers] == [owners, others]


@pytest.mark.parametrize(("closure", "wait", "words"), [(WINDOW, 90, "until"), (OPEN, 3600, ".")])
def test_it_says_until_when_and_why(closure: Closure, wait: int, words: str) -> None:
    answer = ask(closure)
    assert isinstance(answer, EdgeRefusal)
    assert (answer.status, answer.retry_after, answer.lane) == (503, wait, "")
    assert words in answer.words
    assert closure.reason in answer.words


def test_what_is_served_holds_until_the_next_begins() -> None:
    answer = ask(Closure(NOW + 30, NOW + 60), Closure(NOW + 5, NOW + 9))
    assert isinstance(answer, Route)
    assert answer.until == NOW + 5
    assert next_change(table(closures={"main": (Closure(NOW + 5, None), WINDOW)}), NOW) == NOW + 5


def test_of_several_the_longest_is_told() -> None:
    assert closure_at((WINDOW, Closure(NOW, NOW + 300), Closure(NOW, NOW + 20)), NOW)[0] == Closure(
        NOW, NOW + 300
    )
    assert closure_at((OPEN, WINDOW), NOW)[0] == OPEN


@pytest.mark.parametrize(
    ("closures", "at"),
    [
        ((), None),
        ((WINDOW,), WINDOW.start + 30),
        ((Closure(NOW + 100, None),), NOW + 130),
        ((Closure(NOW + 100, NOW + 120),), None),  # shorter than the drain
        ((Closure(NOW - 100, NOW),), None),
    ],
)
def test_what_runs_has_the_drain_time(closures: tuple[Closure, ...], at: float | None) -> None:
    found = ending(lane(), Admitted(MEMBER, upstream()), NOW, 30.0, closures)
    assert (found.at if found else None) == at
    assert found is None or found.refusal.code == "lane_maintenance"


def test_the_list_of_models_says_when_the_lane_is_free() -> None:
    here = table(
        lane(), closures={"main": (WINDOW,)}, catalogue={"qwen": ModelInfo("Qwen", lanes=("main",))}
    )
    models = list_models(here, Caller(digest_of(key_of(OWNER).encode())), None, NOW, max_age=300)
    assert not isinstance(models, EdgeRefusal)
    assert [(each.is_loaded, each.places[0].free_at) for each in models] == [(False, NOW + 90)]


def test_a_part_can_be_read_as_it_was_written() -> None:
    assert decode_maintenance(encode_part({"main": [WINDOW, OPEN]})) == {"main": (WINDOW, OPEN)}


@pytest.fixture
async def edge(valkey_server: ValkeyServer) -> AsyncIterator[Running]:
    async with edge_at(valkey_server.url, drain_seconds=0.3) as running:
        yield running
        await until(lambda: running.in_flight == 0)


def _lane(fake: upstreams.FakeServer) -> LaneRoute:
    return lane(upstream=upstream(fake.url), grants=(grant(OWNER, 0, time.time() + 3600),))


async def _codes(edge: Running) -> list[str]:
    answers = [await edge.chat(owner=who) for who in (OWNER, MEMBER)]
    return [_code(answer) for answer in answers]


def _code(answer: httpx.Response) -> str:
    if answer.status_code == 200:
        return "served"
    found: str = answer.json()["error"]["code"]
    return found


@pytest.mark.valkey
async def test_the_edge_closes_and_opens_on_time_by_itself(edge: Running) -> None:
    async with upstreams.running(upstreams.llama) as fake:
        begins = time.time() + 0.5
        closures = {"main": [Closure(begins, begins + 1.0, "new fans")]}
        await edge.publish(_lane(fake), closures=closures)
        assert await _codes(edge) == ["served", "gpu_reserved"]
        heard: list[str] = []
        while time.time() < begins + 5 and heard[-2:] != ["lane_maintenance", "served"]:
            answer = _code(await edge.chat(owner=OWNER))
            if heard[-1:] != [answer]:
                heard.append(answer)
    assert heard == ["served", "lane_maintenance", "served"]
    assert time.time() >= begins + 1.0
