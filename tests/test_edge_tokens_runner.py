"""Token counts as the built-in model server tells them, in every dialect that it speaks."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.edge.tail import StreamTail, tail_for
from gateway.edge.token_counts import TokenCounts
from lanes.engines.base import ServerSpec
from tests.ports import free_port
from tests.test_llama_runner import HEADERS, KEY, LLAMA, Served

pytestmark = pytest.mark.process
MESSAGES = [{"role": "user", "content": "Say hi"}]
# By chance the first token may be half a character: llama.cpp then leaves out the stream's start.
ALWAYS = {"temperature": 0}
REQUESTS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": MESSAGES, "max_tokens": 4, **ALWAYS},
    "/v1/completions": {"prompt": "Once upon a time", "max_tokens": 4, **ALWAYS},
    "/completion": {"prompt": "Once upon a time", "n_predict": 4, **ALWAYS},
    "/v1/messages": {"messages": MESSAGES, "max_tokens": 4, **ALWAYS},
    "/v1/responses": {"input": "Say hi", "max_output_tokens": 4, **ALWAYS},
}
COUNTLESS: dict[str, dict[str, Any]] = {
    "/v1/embeddings": {"input": "Hi"},  # refused: it was not started for them
    "/v1/messages/count_tokens": {"messages": MESSAGES},
    "/tokenize": {"content": "Say hi"},
}


@pytest.fixture(scope="module")
def url(demo_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = free_port()
    flags = ("-c", "1024", "-np", "1")
    spec = ServerSpec(str(demo_model), "smol", flags, {}, "127.0.0.1", port, KEY)
    served = Served(LLAMA.launch(spec), port, tmp_path_factory.mktemp("runner") / "log")
    try:
        served.statuses_until_healthy()
        yield served.url
    finally:
        served.process.kill()
        served.process.wait()


def counts(url: str, path: str, body: dict[str, Any]) -> TokenCounts:
    """What an edge would have read of the answer while it passed."""
    with httpx.stream("POST", url + path, json=body, headers=HEADERS, timeout=60) as answer:
        tail = tail_for((name.lower(), value) for name, value in answer.headers.raw)
        assert isinstance(tail, StreamTail) == body.get("stream", False)
        for chunk in answer.iter_raw():
            tail.add(chunk)
    return tail.counts()


@pytest.mark.parametrize("path", REQUESTS)
@pytest.mark.parametrize("stream", [False, True])
def test_the_counts_of_an_answer(url: str, path: str, stream: bool) -> None:
    """Asked twice, so that the second time most of the prompt comes from the cache."""
    body = REQUESTS[path] | {"stream": stream}
    first, second = counts(url, path, body), counts(url, path, body)
    assert first.prompt is not None
    assert first.prompt > 1
    assert (second.prompt, second.completion) == (first.prompt, 4)
    assert second.cached == first.prompt - 1


def test_a_chat_stream_that_is_asked_for_its_usage(url: str) -> None:
    path = "/v1/chat/completions"
    options = {"stream": True, "stream_options": {"include_usage": True}}
    plain = counts(url, path, REQUESTS[path])
    found = counts(url, path, REQUESTS[path] | options)
    assert (found.prompt, found.completion) == (plain.prompt, 4)


@pytest.mark.parametrize("path", COUNTLESS)
def test_no_counts_where_no_model_ran(url: str, path: str) -> None:
    assert counts(url, path, COUNTLESS[path]) == TokenCounts()
