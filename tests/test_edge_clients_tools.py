"""Programs built on OpenAI's protocol: the `llm` command and LangChain, given address and token."""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import openai
import pytest
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import SecretStr

from tests import upstream_shapes as shapes
from tests import upstreams
from tests.edge_harness import OWNER, STRANGER, Running, key_of, lane

pytest_plugins = ["tests.edge_fixtures"]
pytestmark = pytest.mark.valkey


async def llm(edge_url: str, folder: Path, *arguments: str, owner: int = OWNER) -> tuple[int, str]:
    """Run `llm` as docs/api.md says, in a folder of its own: its exit status and what it said."""
    model = {"model_id": "slotserve", "model_name": "auto", "api_base": f"{edge_url}/v1"}
    models = [model | {"api_key_name": "slotserve", "supports_tools": True}]
    (folder / "extra-openai-models.yaml").write_text(json.dumps(models))  # JSON is YAML, too
    (folder / "keys.json").write_text(json.dumps({"slotserve": key_of(owner)}))
    environment = {**os.environ, "LLM_USER_PATH": str(folder)}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "llm", *arguments),
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode()


async def test_llm_streams_and_does_not(
    edge: Running, every_route: upstreams.FakeServer, tmp_path: Path
) -> None:
    streamed = await llm(edge.url, tmp_path, "-m", "slotserve", "hi")
    plain = await llm(edge.url, tmp_path, "-m", "slotserve", "--no-stream", "hi")
    assert streamed == plain == (0, "Hello there\n")
    assert [json.loads(seen.body).get("stream") for seen in every_route.seen] == [True, False]
    assert every_route.seen[0].header("authorization") == "Bearer server-key"


async def test_llm_says_why_it_was_refused(
    edge: Running, every_route: upstreams.FakeServer, tmp_path: Path
) -> None:
    status, words = await llm(edge.url, tmp_path, "-m", "slotserve", "hi", owner=STRANGER)
    assert status == 1
    assert "this API key is not known" in words


@contextlib.asynccontextmanager
async def _chat(edge: Running, owner: int = OWNER) -> AsyncIterator[ChatOpenAI]:
    """LangChain's client; it leaves it to the end of the process to close connections."""
    key = SecretStr(key_of(owner))
    chat = ChatOpenAI(base_url=f"{edge.url}/v1", api_key=key, model="qwen")
    try:
        yield chat
    finally:
        chat.root_client.close()
        await chat.root_async_client.close()


async def test_langchain_invokes_and_streams(
    edge: Running, every_route: upstreams.FakeServer
) -> None:
    async with _chat(edge) as chat:
        answer = await chat.ainvoke("Hi")
        words = [each.content async for each in chat.astream("Hi") if each.content]
        blocking = await asyncio.to_thread(chat.invoke, "Hi")
    assert answer.content == blocking.content == "Hello there"
    assert words == list(shapes.WORDS)
    assert answer.usage_metadata is not None
    assert answer.usage_metadata["total_tokens"] == 10


async def test_langchain_calls_tools(edge: Running, every_route: upstreams.FakeServer) -> None:
    @tool
    def weather(city: str, days: int) -> str:
        """The weather of the next days."""
        return f"rain in {city} for {days} days"

    async with _chat(edge) as chat:
        answer = await chat.bind_tools([weather]).ainvoke("Hi")
    assert answer.tool_calls[0]["args"] == shapes.WEATHER
    sent = json.loads(every_route.seen[0].body)["tools"][0]["function"]
    assert set(sent["parameters"]["properties"]) == {"city", "days"}


async def test_langchain_embeds(edge: Running, every_route: upstreams.FakeServer) -> None:
    embeddings = OpenAIEmbeddings(
        base_url=f"{edge.url}/v1",
        api_key=SecretStr(key_of(OWNER)),
        model="qwen",
        check_embedding_ctx_length=False,  # else it sends the numbers of OpenAI's own tokenizer
    )
    vectors = await embeddings.aembed_documents(["Hi", "Ho"])
    await embeddings.async_client._client.close()
    assert vectors == [list(shapes.VECTOR)] * 2
    assert json.loads(every_route.seen[0].body)["input"] == ["Hi", "Ho"]


async def test_langchain_raises_what_the_client_below_it_does(edge: Running) -> None:
    await edge.publish(lane())
    async with _chat(edge, STRANGER) as chat:
        with pytest.raises(openai.AuthenticationError):
            await chat.ainvoke("Hi")
