"""The official `anthropic` client, given only the gateway's address and a token."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import anthropic
import pytest
from anthropic.types import MessageParam, ToolParam

from tests import upstream_shapes as shapes
from tests import upstreams
from tests.conftest import ValkeyServer
from tests.edge_harness import (
    MEMBER,
    OWNER,
    STRANGER,
    Running,
    edge_at,
    grant,
    key_of,
    lane,
    tokens,
    until,
)
from tests.edge_harness import upstream as upstream_at

pytest_plugins = ["tests.edge_fixtures"]
pytestmark = pytest.mark.valkey
HI: list[MessageParam] = [{"role": "user", "content": "Hi"}]
TOOL: ToolParam = {"name": "weather", "input_schema": {"type": "object", "properties": {}}}


@pytest.fixture
async def client(edge: Running) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with _client(edge, OWNER) as made:
        yield made


def _client(edge: Running, owner: int, **options: Any) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(api_key=key_of(owner), base_url=edge.url, **options)


async def _ask(client: anthropic.AsyncAnthropic, model: str = "qwen") -> anthropic.types.Message:
    return await client.messages.create(model=model, max_tokens=9, messages=HI)


async def test_a_message(
    every_route: upstreams.FakeServer, client: anthropic.AsyncAnthropic
) -> None:
    message = await _ask(client)
    assert message.content[0].type == "text"
    assert message.content[0].text == "Hello there"
    assert message.usage.input_tokens == 7
    assert message._request_id is not None
    assert every_route.seen[0].header("anthropic-version") is not None


async def test_a_streamed_message(
    every_route: upstreams.FakeServer, client: anthropic.AsyncAnthropic
) -> None:
    async with client.messages.stream(model="big", max_tokens=9, messages=HI) as stream:
        words = [text async for text in stream.text_stream]
        whole = await stream.get_final_message()
    assert words == ["Hello", " there"]
    assert (whole.stop_reason, whole.usage.output_tokens) == ("end_turn", 3)


async def test_tools_and_counting(
    every_route: upstreams.FakeServer, client: anthropic.AsyncAnthropic
) -> None:
    called = await client.messages.create(model="qwen", max_tokens=9, messages=HI, tools=[TOOL])
    assert json.loads(every_route.seen[0].body)["tools"] == [TOOL]
    assert called.content[0].type == "tool_use"
    assert called.content[0].input == shapes.WEATHER
    counted = await client.messages.count_tokens(model="qwen", messages=HI)
    assert counted.input_tokens == 7


async def test_models_page_by_page(edge: Running, client: anthropic.AsyncAnthropic) -> None:
    await edge.publish(lane(), lane("other", upstream=upstream_at(preset="smol")))
    models = [model async for model in client.models.list(limit=1)]
    assert [(model.id, model.display_name) for model in models] == [
        ("qwen", "qwen"),
        ("smol", "smol"),
    ]
    assert (await client.models.retrieve("big")).id == "qwen"
    with pytest.raises(anthropic.NotFoundError):
        await client.models.retrieve("nope")


async def _refused(
    client: anthropic.AsyncAnthropic, model: str = "qwen"
) -> anthropic.APIStatusError:
    with pytest.raises(anthropic.APIStatusError) as refused:
        await _ask(client, model)
    return refused.value


async def test_each_refusal_is_the_clients_own_exception(edge: Running) -> None:
    slot = grant(OWNER, time.time() - 1, time.time() + 600)
    await edge.publish(lane(grants=(slot,)))
    options = {"max_retries": 0}
    async with (
        _client(edge, OWNER, **options) as owner,
        _client(edge, MEMBER, **options) as member,
        _client(edge, STRANGER, **options) as stranger,
    ):
        found = [
            await _refused(stranger),
            await _refused(member),
            await _refused(owner, "nope"),
            await _refused(owner, "smol"),
        ]
        await edge.publish(lane(upstream=None, phase="starting"))
        found.append(await _refused(owner))
        await edge.publish(lane(), entries=tokens(requests_per_minute=0))
        found.append(await _refused(owner))
    assert [(type(error), error.type) for error in found] == [
        (anthropic.AuthenticationError, "authentication_error"),
        (anthropic.PermissionDeniedError, "permission_error"),
        (anthropic.NotFoundError, "not_found_error"),
        (anthropic.ConflictError, "conflict_error"),
        (anthropic.ServiceUnavailableError, "overloaded_error"),
        (anthropic.RateLimitError, "rate_limit_error"),
    ]
    for error in found:
        assert error.request_id == error.response.headers["x-request-id"]
        assert "SlotServe gateway" in (error.api_message or "")


async def test_a_body_that_is_too_large_is_the_clients_own_exception(
    valkey_server: ValkeyServer,
) -> None:
    async with edge_at(valkey_server.url, max_body_bytes=1000) as edge:
        await edge.publish(lane())
        async with _client(edge, OWNER) as client:
            long: list[MessageParam] = [{"role": "user", "content": "x" * 2000}]
            with pytest.raises(anthropic.ContentTooLargeError):
                await client.messages.create(model="qwen", max_tokens=9, messages=long)


async def test_it_does_not_sleep_until_a_long_booking_is_over(edge: Running) -> None:
    """It would wait as long as Retry-After says, ten minutes here, without a word."""
    slot = grant(OWNER, time.time() - 1, time.time() + 600, preset=None)
    await edge.publish(lane(grants=(slot,)))
    async with _client(edge, OWNER) as client, asyncio.timeout(30):
        error = await _refused(client)
    assert isinstance(error, anthropic.ServiceUnavailableError)
    assert int(error.response.headers["retry-after"]) > 590


async def test_a_busy_model_server_is_asked_again_when_it_says(
    edge: Running, client: anthropic.AsyncAnthropic
) -> None:
    async with upstreams.running(shapes.is_busy_once()) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        began = time.monotonic()
        message = await _ask(client)
    assert message.stop_reason == "end_turn"
    assert time.monotonic() - began > 0.99
    assert [seen.header("x-stainless-retry-count") for seen in fake.seen] == ["0", "1"]


async def test_a_load_is_waited_for_as_long_as_the_gateway_says(edge: Running) -> None:
    await edge.publish(lane(upstream=None, phase="starting", eta=time.time() + 0.9))
    async with upstreams.running(shapes.every_route) as fake, _client(edge, OWNER) as client:
        asking = asyncio.ensure_future(_ask(client))
        await until(lambda: b'code="model_loading"' in edge.edge.metrics.text())
        refused_at = time.monotonic()
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        assert (await asking).stop_reason == "end_turn"
    assert 0.9 < time.monotonic() - refused_at < 20


async def test_a_server_that_dies_mid_stream_is_an_error_of_the_client(
    edge: Running, client: anthropic.AsyncAnthropic
) -> None:
    async with upstreams.running(upstreams.dies_mid_stream) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        stream = await client.messages.create(model="qwen", max_tokens=9, messages=HI, stream=True)
        with pytest.raises(anthropic.APIStatusError, match="broke off its answer") as broken:
            async for _ in stream:
                pass
    assert broken.value.type == "api_error"
