"""The clients against a model for real: SmolLM2 in the built-in runner, behind an edge."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import anthropic
import openai
import pytest

from gateway.edge.table import LaneRoute
from lanes.engines.base import ServerSpec
from tests.conftest import ValkeyServer
from tests.edge_harness import OWNER, SERVER_KEY, Running, edge_at, grant, key_of, lane, upstream
from tests.ports import free_port
from tests.test_edge_clients_tools import llm
from tests.test_llama_runner import LLAMA, Served

pytestmark = [pytest.mark.valkey, pytest.mark.process]


@pytest.fixture
async def edge(
    valkey_server: ValkeyServer, demo_model: Path, tmp_path: Path
) -> AsyncIterator[Running]:
    """An edge whose lane runs SmolLM2, booked by the owner for ten minutes."""
    port, arguments = free_port(), ("-c", "1024", "-np", "2", "--no-warmup")
    spec = ServerSpec(str(demo_model), "smol", arguments, {}, "127.0.0.1", port, SERVER_KEY)
    served = Served(LLAMA.launch(spec), port, tmp_path / "server.log")
    try:
        await asyncio.to_thread(served.statuses_until_healthy)
        async with edge_at(valkey_server.url) as running:
            await running.publish(_lane(served))
            yield running
    finally:
        served.process.kill()
        served.process.wait()


def _lane(served: Served) -> LaneRoute:
    slot = grant(OWNER, time.time() - 1, time.time() + 600, preset="smol")
    return lane(upstream=upstream(served.url, "smol", slots=2), target="smol", grants=(slot,))


async def test_openai_anthropic_and_llm_talk_to_a_model(edge: Running, tmp_path: Path) -> None:
    key = key_of(OWNER)
    async with openai.AsyncOpenAI(api_key=key, base_url=f"{edge.url}/v1") as client:
        await _openai(client)
    async with anthropic.AsyncAnthropic(api_key=key, base_url=edge.url) as other:
        await _anthropic(other)
    status, words = await llm(edge.url, tmp_path, "-m", "slotserve", "-o", "max_tokens", "12", "Hi")
    assert (status, bool(words.strip())) == (0, True)


async def _openai(client: openai.AsyncOpenAI) -> None:
    model = (await client.models.list()).data[0].id
    raw = await client.chat.completions.with_raw_response.create(
        model=model, max_tokens=12, messages=[{"role": "user", "content": "Say hello."}]
    )
    chat = raw.parse()
    assert chat.choices[0].message.content
    assert chat.usage is not None
    assert 0 < chat.usage.completion_tokens <= 12
    assert 480 < int(raw.headers["x-slotserve-booking-ends"]) <= 600
    stream = await client.chat.completions.create(
        model=model, max_tokens=12, stream=True, messages=[{"role": "user", "content": "Hi"}]
    )
    assert [chunk async for chunk in stream][-1].choices[0].finish_reason in ("length", "stop")
    answer = await client.responses.create(model=model, input="Hi", max_output_tokens=12)
    assert answer.output_text
    with pytest.raises(openai.ConflictError):
        await client.completions.create(model="coder", prompt="Hi")


async def _anthropic(client: anthropic.AsyncAnthropic) -> None:
    turn: list[anthropic.types.MessageParam] = [{"role": "user", "content": "Say hello."}]
    message = await client.messages.create(model="smol", max_tokens=12, messages=turn)
    assert message.content[0].type == "text"
    assert message.usage.output_tokens > 0
    async with client.messages.stream(model="smol", max_tokens=12, messages=turn) as stream:
        assert "".join([text async for text in stream.text_stream])
    assert (await client.messages.count_tokens(model="smol", messages=turn)).input_tokens > 0
