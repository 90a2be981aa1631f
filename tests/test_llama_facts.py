"""What a llama-server can do: read from its /props, else from its arguments."""

import json

import pytest

from lanes.engines.base import ServerFacts
from lanes.engines.registry import engine

COMPLETION = ("completion",)


def told(arguments: list[str], answer: object = None) -> ServerFacts:
    raw = answer if isinstance(answer, bytes | None) else json.dumps(answer).encode()
    return engine("llama.cpp").facts(arguments, raw)


def test_its_own_answer_counts_more_than_the_arguments() -> None:
    props = {
        "total_slots": 4,
        "default_generation_settings": {"n_ctx": 1024, "params": {}},
        "modalities": {"vision": True, "audio": False},
        "chat_template_caps": {"supports_tools": True},
    }
    able = ("completion", "tools", "vision")
    assert told(["-np", "2", "-c", "99"], props) == ServerFacts(4, 1024, able)


@pytest.mark.parametrize(
    ("arguments", "slots", "context"),
    [
        ([], None, None),
        (["-np", "2"], 2, None),
        (["--parallel", "3", "-np", "5"], 5, None),
        (["--parallel=6"], 6, None),
        (["-c", "8192"], None, 8192),
        (["--ctx_size", "8192", "-np", "2"], 2, 4096),
        (["-c", "8192", "-np", "2", "--kv-unified"], 2, 8192),
        (["-np"], None, None),
        (["-np", "-1", "-c", "0"], None, None),
        (["-np", "many", "-c", "²"], None, None),
        (["-c", str(2**31)], None, None),
    ],
)
def test_without_an_answer_the_arguments_count(
    arguments: list[str], slots: int | None, context: int | None
) -> None:
    assert told(arguments) == ServerFacts(slots, context, COMPLETION)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"{",
        b"[" * 99_999,
        b"\xff",
        [],
        {"total_slots": True, "default_generation_settings": 5, "modalities": ["vision"]},
        {"total_slots": 0, "default_generation_settings": {"n_ctx": "9"}},
        {"total_slots": 2**40, "modalities": {"vision": "yes"}},
    ],
)
def test_an_answer_of_another_kind_counts_as_none(answer: object) -> None:
    assert told(["-np", "2", "-c", "512"], answer) == ServerFacts(2, 256, COMPLETION)


@pytest.mark.parametrize(
    ("flag", "able"),
    [("--embedding", "embedding"), ("--embeddings", "embedding"), ("--reranking", "rerank")],
)
def test_a_server_for_embeddings_or_reranking_does_nothing_else(flag: str, able: str) -> None:
    assert told(["-np", "2", flag], {"modalities": {"vision": True}}).capabilities == (able,)
