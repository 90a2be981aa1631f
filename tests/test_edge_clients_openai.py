"""The official `openai` client, given only the gateway's address and a token: every route of it."""

import asyncio
import io
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

from tests import upstream_shapes as shapes
from tests import upstreams
from tests.edge_harness import (
    MEMBER,
    OWNER,
    STRANGER,
    Running,
    grant,
    key_of,
    lane,
    tokens,
    until,
)
from tests.edge_harness import upstream as upstream_at

pytest_plugins = ["tests.edge_fixtures"]
pytestmark = pytest.mark.valkey
HI: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Hi"}]
TOOL: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Ænd ünïcode",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


@pytest.fixture
async def client(edge: Running) -> AsyncIterator[openai.AsyncOpenAI]:
    async with _client(edge, OWNER) as made:
        yield made


def _client(edge: Running, owner: int, **options: Any) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(api_key=key_of(owner), base_url=f"{edge.url}/v1", **options)


async def test_chat_with_tools(
    every_route: upstreams.FakeServer, client: openai.AsyncOpenAI
) -> None:
    chat = await client.chat.completions.create(model="qwen", messages=HI, tools=[TOOL])
    assert json.loads(every_route.seen[0].body)["tools"] == [TOOL]
    assert chat.choices[0].message.tool_calls is not None
    call = chat.choices[0].message.tool_calls[0]
    assert call.type == "function"
    assert (call.function.name, json.loads(call.function.arguments)) == ("weather", shapes.WEATHER)


async def test_a_chat_stream_with_its_usage(
    every_route: upstreams.FakeServer, client: openai.AsyncOpenAI
) -> None:
    stream = await client.chat.completions.create(
        model="qwen", messages=HI, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    words = [each.choices[0].delta.content or "" for each in chunks if each.choices]
    assert "".join(words) == "Hello there"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 10


async def test_responses_whole_and_streamed(
    every_route: upstreams.FakeServer, client: openai.AsyncOpenAI
) -> None:
    whole = await client.responses.create(model="qwen", input="Hi")
    assert whole.output_text == "Hello there"
    stream = await client.responses.create(model="qwen", input="Hi", stream=True)
    events = [event async for event in stream]
    words = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(words) == "Hello there"
    assert events[-1].type == "response.completed"
    counted = await client.responses.input_tokens.count(model="qwen", input="Hi")
    assert counted.input_tokens == 7


async def test_completions_and_embeddings(
    every_route: upstreams.FakeServer, client: openai.AsyncOpenAI
) -> None:
    done = await client.completions.create(model="qwen", prompt="Hi")
    assert done.choices[0].text == "Hello there"
    vectors = await client.embeddings.create(model="qwen", input=["Hi", "Ho"])
    assert [each.embedding for each in vectors.data] == [list(shapes.VECTOR)] * 2
    assert json.loads(every_route.seen[1].body)["encoding_format"] == "base64"


async def test_audio_in_and_out(
    every_route: upstreams.FakeServer, client: openai.AsyncOpenAI
) -> None:
    sound = io.BytesIO(bytes(range(256)) * 1000)
    heard = await client.audio.transcriptions.create(model="qwen", file=("a.wav", sound))
    assert heard.text == "Hello there"
    sent = every_route.seen[0]
    assert (sent.header("content-type") or "").startswith("multipart/form-data; boundary=")
    assert sound.getvalue() in sent.body
    spoken = await client.audio.speech.create(model="qwen", voice="alloy", input="Hi")
    assert spoken.content == shapes.SPEECH


@pytest.mark.filterwarnings("ignore:deprecated:DeprecationWarning")  # says the client of this call
async def test_a_translation(every_route: upstreams.FakeServer, client: openai.AsyncOpenAI) -> None:
    sound = ("a.wav", b"RIFF")
    heard = await client.audio.translations.create(model="qwen", file=sound)
    assert heard.text == "Hello there"


async def test_pictures(every_route: upstreams.FakeServer, client: openai.AsyncOpenAI) -> None:
    made = await client.images.generate(model="qwen", prompt="a bird")
    assert made.data is not None
    assert made.data[0].b64_json == shapes.PICTURE
    picture = ("a.png", b"\x89PNG", "image/png")
    edited = await client.images.edit(model="qwen", image=picture, prompt="a red bird")
    assert edited.data is not None
    assert edited.data[0].b64_json == shapes.PICTURE


async def test_a_form_that_names_a_model_nobody_has_is_not_found(
    every_route: upstreams.FakeServer, client: openai.AsyncOpenAI
) -> None:
    sound = ("a.wav", b"RIFF")
    with pytest.raises(openai.NotFoundError) as refused:
        await client.audio.transcriptions.create(model="nope", file=sound)
    assert refused.value.code == "model_not_found"
    assert every_route.seen == []


async def test_a_chosen_model_is_one_of_the_list(
    every_route: upstreams.FakeServer, client: openai.AsyncOpenAI
) -> None:
    models = [model async for model in client.models.list()]
    chat = await client.chat.completions.create(model=models[0].id, messages=HI)
    assert chat.choices[0].message.content == "Hello there"


async def _refused(client: openai.AsyncOpenAI, model: str = "qwen") -> openai.APIStatusError:
    with pytest.raises(openai.APIStatusError) as refused:
        await client.chat.completions.create(model=model, messages=HI)
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
    assert [(type(error), error.code) for error in found] == [
        (openai.AuthenticationError, "invalid_api_key"),
        (openai.PermissionDeniedError, "gpu_reserved"),
        (openai.NotFoundError, "model_not_found"),
        (openai.ConflictError, "model_not_loaded"),
    ]
    for error in found:
        assert error.request_id == error.response.headers["x-request-id"]
        assert "SlotServe gateway" in error.message


async def test_a_refusal_that_time_does_not_soon_mend_is_asked_once(edge: Running) -> None:
    """By default the client asks again after 409 and 503: here neither would help."""
    slot = grant(OWNER, time.time() - 1, time.time() + 600, preset=None)
    await edge.publish(lane("gpu", grants=(slot,)), lane())
    async with _client(edge, OWNER) as owner, _client(edge, MEMBER) as member:
        exclusive, other = await _refused(owner), await _refused(member, "smol")
    assert (exclusive.code, other.code) == ("gpu_exclusive", "model_not_loaded")
    for error in (exclusive, other):
        assert error.response.request.headers["x-stainless-retry-count"] == "0"


async def test_a_load_is_waited_for_as_long_as_the_gateway_says(edge: Running) -> None:
    await edge.publish(lane(upstream=None, phase="starting", eta=time.time() + 0.9))
    async with upstreams.running(shapes.every_route) as fake, _client(edge, OWNER) as client:
        asking = asyncio.ensure_future(_ask(client))
        await until(lambda: b'code="model_loading"' in edge.edge.metrics.text())
        refused_at = time.monotonic()
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        assert await asking == "Hello there"
    assert 0.9 < time.monotonic() - refused_at < 20
    assert fake.seen[0].header("x-stainless-retry-count") == "1"


async def test_a_rate_limit_is_its_own_exception_and_is_waited_for(
    edge: Running, every_route: upstreams.FakeServer, client: openai.AsyncOpenAI
) -> None:
    limited = tokens(requests_per_minute=60)
    await edge.publish(lane(upstream=upstream_at(every_route.url)), entries=limited)
    with pytest.raises(openai.RateLimitError) as refused:
        await _ask_without_end(client.with_options(max_retries=0))
    assert refused.value.code == "rate_limited"
    assert refused.value.response.headers["retry-after"] == "1"
    async with asyncio.timeout(30):  # a busy machine may ask so slowly that it is let in at once
        while every_route.seen[-1].header("x-stainless-retry-count") != "1":
            assert await _ask(client) == "Hello there"


async def _ask_without_end(client: openai.AsyncOpenAI) -> None:
    async with asyncio.timeout(30):
        while True:
            await _ask(client)


async def _ask(client: openai.AsyncOpenAI) -> str | None:
    chat = await client.chat.completions.create(model="qwen", messages=HI)
    return chat.choices[0].message.content
