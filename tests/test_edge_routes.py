"""The edge's paths: what is listed passes, and nothing else."""

import pytest

from gateway.edge.dialects import Dialect
from gateway.edge.route import POST, READ
from gateway.edge.routes import Kind, match

TWINS = ("chat/completions", "completions", "embeddings", "rerank", "reranking")
BELOW_V1 = (
    "chat/completions/input_tokens",
    "responses",
    "responses/input_tokens",
    "audio/speech",
    "audio/transcriptions",
    "audio/translations",
    "images/generations",
    "images/edits",
    "images/variations",
)
MESSAGES = ("messages", "messages/count_tokens")
BARE = ("infill", "completion", "tokenize", "detokenize", "apply-template")
READS = ("props", "slots")
KINDS = [  # names, where the model server has them (None: as called), methods, dialect
    (TWINS, None, POST, Dialect.OPENAI),
    (BELOW_V1, "/v1", POST, Dialect.OPENAI),
    (MESSAGES, "/v1", POST, Dialect.ANTHROPIC),
    (BARE, "", POST, Dialect.OPENAI),
    (READS, "", READ, Dialect.OPENAI),
]
TABLE = [  # called, asked of the model server, methods, dialect
    (f"{called}/{name}", f"{called if below is None else below}/{name}", methods, dialect)
    for names, below, methods, dialect in KINDS
    for name in names
    for called in ("", "/v1")
]


@pytest.mark.parametrize("prefix", ["", "/lanes/main"])
@pytest.mark.parametrize(("path", "upstream", "methods", "dialect"), TABLE)
def test_each_route_leads_to_the_servers_own_path(
    prefix: str, path: str, upstream: str, methods: tuple[str, ...], dialect: Dialect
) -> None:
    found = match(f"{prefix}{path}".encode())
    assert found is not None
    assert (found.upstream_path, found.route.methods) == (upstream, methods)
    assert (found.route.dialect, found.route.kind) == (dialect, Kind.FORWARD)
    assert found.lane == ("main" if prefix else None)


@pytest.mark.parametrize("path", ["/models", "/v1/models", "/lanes/main/models"])
def test_the_list_of_models_is_the_edges_own(path: str) -> None:
    found = match(path.encode())
    assert found is not None
    assert found.route.kind is Kind.MODELS


@pytest.mark.parametrize("slug", ["main", "gpu-0", "a100_80", "h100.left", "7"])
def test_a_path_names_any_lane_that_may_exist(slug: str) -> None:
    found = match(f"/lanes/{slug}/v1/chat/completions".encode())
    assert found is not None
    assert (found.lane, found.route.path) == (slug, "/v1/chat/completions")


def test_a_models_name_may_have_slashes_and_escapes() -> None:
    found = match(b"/lanes/main/v1/models/org/qwen%2014b")
    assert found is not None
    assert (found.route.kind, found.lane, found.model) == (Kind.ONE_MODEL, "main", "org/qwen 14b")


def test_anthropics_routes_answer_in_its_dialect() -> None:
    found = match(b"/v1/messages")
    assert found is not None
    assert found.route.dialect is Dialect.ANTHROPIC


@pytest.mark.parametrize(
    "path",
    [
        b"/",
        b"/v1",
        b"/v1/models/",
        b"/v1/chat/completions/",
        b"/V1/chat/completions",
        b"/v1/chat%2Fcompletions",
        b"/v1/../slots",
        b"/v1/slots/",
        b"/slots/0",
        b"/tools",
        b"/cors-proxy",
        b"/v1/lora-adapters",
        b"/v1/props;x",
        b"/v1\\props",
        b"/v1/%70rops",
        b"/lanes/main/health",
        b"/lanes/main/metrics",
        b"/lanes//v1/models",
        b"/lanes/../v1/models",
        b"/lanes/.main/v1/models",
        b"/lanes/Main/v1/models",
        b"/lanes/a/b/v1/models",
        b"/lanes/" + b"a" * 64 + b"/v1/models",
        b"/lanes/main/lanes/main/v1/models",
        b"/\xff\xfe",
    ],
)
def test_what_is_not_listed_does_not_pass(path: bytes) -> None:
    assert match(path) is None
