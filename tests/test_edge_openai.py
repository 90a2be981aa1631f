"""The official `openai` client against the edge, unchanged, over a real socket."""

import time

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam

from tests import upstreams
from tests.edge_harness import (
    MEMBER,
    OWNER,
    STRANGER,
    Running,
    grant,
    key_of,
    lane,
)
from tests.edge_harness import upstream as upstream_at

pytest_plugins = ["tests.edge_fixtures"]
pytestmark = pytest.mark.valkey
HI: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Hi"}]


def _client(edge: Running, owner: int = OWNER, path: str = "/v1") -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(api_key=key_of(owner), base_url=edge.url + path, max_retries=0)


async def test_chat_and_embeddings(edge: Running) -> None:
    async with upstreams.running(upstreams.llama) as fake, _client(edge) as client:
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        chat = await client.chat.completions.create(model="qwen", messages=HI)
        assert chat.choices[0].message.content == "Hello there"
        assert chat.usage is not None
        assert chat.usage.completion_tokens == 3
        vectors = await client.embeddings.create(model="qwen", input="Hi", encoding_format="float")
        assert vectors.data[0].embedding == [0.5, 0.25]


async def test_a_streamed_chat(edge: Running) -> None:
    async with upstreams.running(upstreams.llama) as fake, _client(edge) as client:
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        stream = await client.chat.completions.create(
            model="big",
            messages=HI,
            stream=True,
        )
        words = [chunk.choices[0].delta.content or "" async for chunk in stream]
    assert "".join(words) == "Hello there"


async def test_under_a_lanes_own_address(edge: Running) -> None:
    async with (
        upstreams.running(upstreams.llama) as fake,
        _client(edge, path="/lanes/main/v1") as client,
    ):
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        done = await client.completions.create(model="qwen", prompt="Hi")
    assert done.choices[0].text == "Hello"


async def test_a_server_that_dies_mid_stream_is_an_api_error(edge: Running) -> None:
    async with upstreams.running(upstreams.dies_mid_stream) as fake, _client(edge) as client:
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        stream = await client.chat.completions.create(
            model="qwen",
            messages=HI,
            stream=True,
        )
        with pytest.raises(openai.APIError, match="broke off its answer"):
            async for _ in stream:
                pass


async def test_refusals_become_the_clients_own_exceptions(edge: Running) -> None:
    slot = grant(OWNER, time.time() - 1, time.time() + 600)
    await edge.publish(lane(grants=(slot,)))
    async with _client(edge, MEMBER) as member, _client(edge, STRANGER) as stranger:
        with pytest.raises(openai.PermissionDeniedError) as reserved:
            await member.chat.completions.create(model="qwen", messages=HI)
        with pytest.raises(openai.AuthenticationError):
            await stranger.chat.completions.create(model="qwen", messages=HI)
    assert reserved.value.code == "gpu_reserved"
    assert 595 < int(reserved.value.response.headers["retry-after"]) <= 600
    async with _client(edge, OWNER) as owner:
        with pytest.raises(openai.NotFoundError):
            await owner.chat.completions.create(model="nope", messages=HI)


async def test_models_are_what_this_caller_can_use_now_and_what_could_be_loaded(
    edge: Running,
) -> None:
    slot = grant(OWNER, time.time() - 1, time.time() + 600, preset="smol")
    booked = lane("mine", upstream=upstream_at(preset="smol"), target="smol", grants=(slot,))
    await edge.publish(lane("free"), booked, lane("empty", upstream=None, phase="stopped"))
    seen = {}
    for who in (OWNER, MEMBER):
        async with _client(edge, who) as client:
            models = [model async for model in client.models.list()]
        seen[who] = [(model.id, model.to_dict()["meta"]["loaded"]) for model in models]  # type: ignore[index]
    assert seen == {
        OWNER: [("smol", True), ("qwen", False)],
        MEMBER: [("qwen", True), ("smol", False)],
    }


async def test_one_model_is_found_by_any_of_its_names(edge: Running) -> None:
    await edge.publish(lane())
    async with _client(edge, MEMBER) as client:
        assert (await client.models.retrieve("big")).id == "qwen"
        with pytest.raises(openai.NotFoundError, match="no model is called 'nope'"):
            await client.models.retrieve("nope")
