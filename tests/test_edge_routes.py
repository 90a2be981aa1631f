"""The edge's paths: what is listed passes, and nothing else."""

import pytest

from gateway.edge.dialects import Dialect
from gateway.edge.routes import Kind, match


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
        b"/slots",
        b"/props",
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
