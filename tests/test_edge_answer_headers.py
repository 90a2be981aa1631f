"""What answers say of themselves: lane, preset, time left, and a warning when it is short."""

import asyncio
import random
import time
from collections.abc import AsyncIterator

import pytest

from gateway.edge.answer_headers import refusal_headers, time_headers
from gateway.edge.refusals import EdgeRefusal, refuse
from gateway.edge.routing import Route
from gateway.edge.table import Grant, TokenEntry
from gateway.edge.typical import KNOWN_AFTER, TypicalTimes
from tests import upstreams
from tests.conftest import ValkeyServer
from tests.edge_harness import (
    MEMBER,
    OWNER,
    Running,
    bearer,
    edge_at,
    grant,
    lane,
    until,
    upstream,
)

NOW = 1000.0
KEY = ("main", "qwen", "/v1/chat/completions")


def _headers(
    *grants: Grant, owner: int = OWNER, usual: float | None = None, drain: float = 30.0
) -> dict[str, str]:
    """The time headers of a request of this person on a lane with these bookings."""
    where = lane(grants=grants)
    own = next((each for each in grants if each.owner_id == owner and each.start <= NOW), None)
    token = TokenEntry(1, owner, ("inference",))
    route = Route(where, upstream(), token, own)
    return {
        name.decode().removeprefix("x-slotserve-"): value.decode("ascii")
        for name, value in time_headers(route, NOW, usual, drain)
    }


def test_an_owner_learns_how_long_the_booking_lasts() -> None:
    slot = grant(OWNER, NOW - 10, NOW + 60.9)
    assert _headers(slot) == {"booking-ends": "60"}


def test_a_free_lane_tells_when_somebody_else_has_booked_it() -> None:
    coming = grant(OWNER, NOW + 99.5, NOW + 600), grant(MEMBER, NOW + 50, NOW + 60)
    assert _headers(*coming, owner=MEMBER) == {"booked-in": "99"}
    assert _headers(grant(MEMBER, NOW + 50, NOW + 60), owner=MEMBER) == {}


@pytest.mark.parametrize(("usual", "warns"), [(None, False), (59.0, False), (61.0, True)])
def test_a_slot_that_ends_before_a_usual_answer_would_is_warned_of(
    usual: float | None, warns: bool
) -> None:
    found = _headers(grant(OWNER, NOW - 10, NOW + 60), usual=usual)
    words = "your booking ends in 60 s; answers like this one take about 61 s"
    assert found.get("warning") == (words if warns else None)


def test_a_slot_that_the_same_person_goes_on_with_is_no_reason_to_warn() -> None:
    slots = grant(OWNER, NOW - 10, NOW + 5), grant(OWNER, NOW + 5, NOW + 60)
    assert _headers(*slots, usual=50) == {"booking-ends": "5"}
    other = slots[0], grant(OWNER, NOW + 5, NOW + 60, preset="smol")
    assert "warning" in _headers(*other, usual=50)


@pytest.mark.parametrize(("usual", "warns"), [(39.0, False), (41.0, True)])
def test_before_another_booking_the_drain_time_counts_as_well(usual: float, warns: bool) -> None:
    found = _headers(grant(OWNER, NOW + 10, NOW + 60), owner=MEMBER, usual=usual)
    assert ("warning" in found) == warns
    if warns:
        assert found["warning"].startswith("another member's booking begins in 10 s")


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        (refuse("model_loading", "", 7, lane="main"), {"x-slotserve-lane": "main"}),
        (refuse("gpu_reserved", "", 7, about="main"), {"x-slotserve-lane": "main"}),
        (refuse("model_loading", "", 120), {}),
        (refuse("model_loading", "", 121), {"x-should-retry": "false"}),
        (refuse("gpu_exclusive", "", 60), {"x-should-retry": "false"}),
        (refuse("model_not_loaded", ""), {"x-should-retry": "false"}),
        (refuse("no_model_loaded", "", 60), {"x-should-retry": "false"}),
        (refuse("rate_limited", "", 60), {}),
        (refuse("invalid_api_key", ""), {"www-authenticate": 'Bearer realm="SlotServe"'}),
    ],
)
def test_refusals_name_their_lane_and_whether_to_ask_again(
    refusal: EdgeRefusal, expected: dict[str, str]
) -> None:
    found = {name.decode(): value.decode() for name, value in refusal_headers(refusal)}
    wait = found.pop("retry-after", None)
    assert found == expected
    assert wait == (None if refusal.retry_after is None else str(refusal.retry_after))


def test_nothing_is_usual_before_five_answers_and_then_their_median() -> None:
    typical = TypicalTimes()
    for seconds in (1.0, 9.0, 2.0, 100.0):
        typical.add(KEY, seconds)
        assert typical.seconds(KEY) is None
    typical.add(KEY, 3.0)
    assert typical.seconds(KEY) == pytest.approx(3.0)
    assert typical.seconds(("main", "qwen", "/v1/embeddings")) is None


def test_the_estimate_settles_where_one_answer_in_four_is_longer() -> None:
    chance = random.Random(7)
    typical, seen = TypicalTimes(), []
    for _ in range(4000):
        seconds = chance.lognormvariate(2, 0.7)
        estimate = typical.seconds(KEY)
        if estimate is not None:
            seen.append(seconds <= estimate)
        typical.add(KEY, seconds)
    assert 0.7 < sum(seen[500:]) / len(seen[500:]) < 0.8


def test_it_follows_a_change_within_tens_of_answers() -> None:
    typical = TypicalTimes()
    for seconds in [1.0] * 50 + [10.0] * 30:
        typical.add(KEY, seconds)
    assert 7 < (typical.seconds(KEY) or 0) < 13


def test_it_keeps_a_bounded_number_of_kinds_of_answers() -> None:
    typical = TypicalTimes()
    for number in range(5000):
        for _ in range(KNOWN_AFTER):
            typical.add((f"lane-{number}", "qwen", "/"), 1.0)
    assert typical.seconds(("lane-0", "qwen", "/")) is None
    assert typical.seconds(("lane-4999", "qwen", "/")) == pytest.approx(1.0)
    typical.add(("more", "qwen", "/"), 0.0)  # an answer in no time is not an error


@pytest.fixture
async def edge(valkey_server: ValkeyServer) -> AsyncIterator[Running]:
    async with edge_at(valkey_server.url, drain_seconds=0.1) as running:
        yield running
        await until(lambda: running.in_flight == 0)


@pytest.mark.valkey
async def test_answers_carry_them_and_the_model_servers_own_never_pass(edge: Running) -> None:
    slot = grant(OWNER, time.time() - 1, time.time() + 100)
    async with upstreams.running(_claims_to_be_us) as fake:
        await edge.publish(lane(upstream=upstream(fake.url), grants=(slot,)))
        answer = await edge.chat()
    assert answer.headers["x-slotserve-lane"] == "main"
    assert answer.headers["x-slotserve-preset"] == "qwen"
    assert 97 <= int(answer.headers["x-slotserve-booking-ends"]) <= 100
    assert "x-slotserve-warning" not in answer.headers
    assert len(answer.headers.get_list("x-request-id")) == 1


@pytest.mark.valkey
async def test_a_warning_comes_once_five_answers_have_shown_what_is_usual(edge: Running) -> None:
    soon = grant(OWNER, time.time() + 60, time.time() + 600)
    async with upstreams.running(upstreams.llama) as fake:
        await edge.publish(lane(upstream=upstream(fake.url), grants=(soon,)))
        for _ in range(KNOWN_AFTER):
            answer = await edge.chat(MEMBER)
            assert "x-slotserve-warning" not in answer.headers
        learned = edge.edge.typical.seconds(KEY)
        assert learned is not None
        assert learned < 1
        for _ in range(100):
            edge.edge.typical.add(KEY, 1000.0)
        answer = await edge.chat(MEMBER)
    assert "answers like this one take about" in answer.headers["x-slotserve-warning"]
    assert int(answer.headers["x-slotserve-booked-in"]) <= 60


@pytest.mark.valkey
async def test_refused_and_broken_answers_teach_nothing(edge: Running) -> None:
    async with upstreams.running(upstreams.is_busy) as fake:
        await edge.publish(lane(upstream=upstream(fake.url)))
        for _ in range(2 * KNOWN_AFTER):
            assert (await edge.chat()).status_code == 503
    assert edge.edge.typical.seconds(KEY) is None


@pytest.mark.valkey
async def test_a_refusal_names_the_lane_and_has_the_request_id_of_each_client(
    edge: Running,
) -> None:
    await edge.publish(lane(upstream=None, phase="starting", eta=time.time() + 9))
    headers = bearer(OWNER)
    openai = await edge.client.post("/v1/chat/completions", json={}, headers=headers)
    anthropic = await edge.client.post("/v1/messages", json={}, headers=headers)
    for answer in (openai, anthropic):
        assert (answer.status_code, answer.headers["x-slotserve-lane"]) == (503, "main")
    assert "request-id" not in openai.headers
    assert anthropic.headers["request-id"] == anthropic.headers["x-request-id"]


@pytest.mark.valkey
async def test_a_failure_names_the_lane_whose_server_it_was(edge: Running) -> None:
    async with upstreams.running(upstreams.dies_before_headers) as fake:
        await edge.publish(lane(upstream=upstream(fake.url)))
        answer = await edge.chat()
    assert (answer.status_code, answer.headers["x-slotserve-lane"]) == (502, "main")


async def _claims_to_be_us(
    seen: upstreams.Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    writer.write(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n"
        b"x-slotserve-lane: fake\r\nx-slotserve-warning: run\r\nx-request-id: 1\r\n\r\n{}"
    )
    await writer.drain()
