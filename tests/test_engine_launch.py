"""Command lines, variables and files of each engine; macros; keys that never reach a log."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from lanes.engines import macros
from lanes.engines.base import Launch, ServerFacts, ServerSpec
from lanes.engines.options import Options
from lanes.engines.registry import ENGINES, engine
from lanes.host_services import is_loopback
from lanes.logs import without_secret

KEY = "c0ffee" * 10


def spec(*arguments: str, **fields: object) -> ServerSpec:
    """A server to start."""
    values: dict[str, object] = {
        "model_path": "/models/a b",
        "alias": "qwen3",
        "environment": {},
        "address": "10.0.0.5",
        "port": 18123,
        "api_key": KEY,
        "other_names": ("gpt-5",),
        "folder": "/data/servers/lane-1",
        "gpu_uuids": ("GPU-1", "GPU-2"),
    }
    return ServerSpec(arguments=arguments, **values | fields)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def programs(settings: Settings) -> None:
    settings.SLOTSERVE_VLLM = "/opt/vllm serve"
    settings.SLOTSERVE_SGLANG = "/opt/python -m sglang.launch_server"
    settings.SLOTSERVE_TRAINER = "/opt/train --port ${PORT}"


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_no_engine_puts_the_key_into_its_command_line(name: str) -> None:
    launch = engine(name).launch(spec("--api-key", "${API_KEY}"))
    assert KEY not in " ".join(launch.argv)
    assert launch.environment["CUDA_VISIBLE_DEVICES"] == "GPU-1,GPU-2"


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_what_an_image_s_entry_point_replaces_is_told_apart(name: str) -> None:
    launch = engine(name).launch(spec("--first", "1"))
    program, rest = launch.argv[: launch.program_words], launch.argv[launch.program_words :]
    assert program
    assert rest[-1] == "1"
    assert "/models/a b" not in program


def test_vllm_s_command_line() -> None:
    launch = engine("vllm").launch(spec("--seed", "1", "--host", "0.0.0.0"))
    names = ("--served-model-name", "qwen3", "gpt-5", "auto")
    place = ("--host", "10.0.0.5", "--port", "18123")
    assert launch.argv == ("/opt/vllm", "serve", "/models/a b", *names, *place, "--seed", "1")
    assert launch.environment["VLLM_API_KEY"] == KEY
    assert launch.environment["HF_HUB_OFFLINE"] == "1"


def test_sglang_s_command_line_and_file() -> None:
    launch = engine("sglang").launch(spec("--tp", "2"))
    config = "/data/servers/lane-1/sglang.yaml"
    program = ("/opt/python", "-m", "sglang.launch_server", "--config", config)
    model = ("--model-path", "/models/a b", "--served-model-name", "qwen3")
    place = ("--host", "10.0.0.5", "--port", "18123")
    assert launch.argv == (*program, *model, *place, "--tp", "2")
    assert launch.files == {config: f'api-key: "{KEY}"\n'}


@pytest.mark.parametrize(
    ("fields", "is_there", "is_not"),
    [
        ({}, ("--base-directory", "/models/a b"), ("--cpu",)),
        ({"gpu_uuids": ()}, ("--cpu",), ()),
        ({"model_path": "/models/flow.json"}, (), ("--base-directory",)),
    ],
)
def test_comfyui_s_command_line(
    fields: dict[str, object], is_there: tuple[str, ...], is_not: tuple[str, ...]
) -> None:
    launch = engine("comfyui").launch(spec("--lowvram", **fields))
    assert set(is_there) <= set(launch.argv)
    assert not set(is_not) & set(launch.argv)
    assert len(launch.folders) == 4


def any_command(*words: str, **fields: object) -> Launch:
    """The launch of any command."""
    return engine("command").launch(spec(*words, **fields))


def test_macros_are_filled_in_and_the_key_in_variables_alone() -> None:
    launch = any_command(
        *("/opt/serve", "--at=${HOST}:${PORT}", "${MODEL}", "${NAME}", "${GPUS}/${GPU_COUNT}"),
        *("${API_KEY}", "${API_KEY_FILE}", "${FOLDER}", "$PORT", "${nope}"),
        environment={"K": "Bearer ${API_KEY}", "P": "${PORT}"},
    )
    folder = "/data/servers/lane-1"
    assert launch.argv == (
        *("/opt/serve", "--at=10.0.0.5:18123", "/models/a b", "qwen3", "GPU-1,GPU-2/2"),
        *("${API_KEY}", f"{folder}/api-key", folder, "$PORT", "${nope}"),
    )
    assert (launch.environment["K"], launch.environment["P"]) == (f"Bearer {KEY}", "18123")
    assert launch.files == {f"{folder}/api-key": KEY}


def test_what_a_macro_stands_for_is_not_filled_in_again() -> None:
    launch = any_command("/opt/serve", "${MODEL}", model_path="/models/${API_KEY_FILE}")
    assert launch.argv[1] == "/models/${API_KEY_FILE}"


@given(st.lists(st.text("ab ${}=/", max_size=12), max_size=5))
def test_words_without_macros_stay_as_they_are(words: list[str]) -> None:
    plain = [word.replace("${", "") for word in words]
    assert macros.filled(plain, macros.values(spec())) == tuple(plain)
    assert macros.objection(plain, {}) == ""


def test_a_training_service_is_the_host_s_command_with_the_preset_s_arguments() -> None:
    launch = engine("training").launch(spec("--base", "${MODEL}"))
    assert launch.argv == ("/opt/train", "--port", "18123", "--base", "/models/a b")
    assert launch.program_words == 3
    assert launch.environment["API_KEY"] == KEY


def test_options_give_an_engine_its_paths_stop_command_and_slots() -> None:
    options = Options("/ping", "/v1/models", ("/opt/stop", "${PORT}"), 3)
    adapter = engine("command").with_options(options)
    assert (adapter.health_path, adapter.protected_path) == ("/ping", "/v1/models")
    stop = adapter.stop(spec())
    assert stop is not None
    assert stop.argv == ("/opt/stop", "18123")
    assert adapter.facts([], None) == ServerFacts(slots=3)
    plain = engine("command")
    assert (plain.health_path, plain.protected_path, plain.stop(spec())) == ("/health", None, None)
    assert engine("vllm").with_options(options) is engine("vllm")


@pytest.mark.parametrize(
    ("name", "arguments", "card", "expected"),
    [
        ("vllm", [], None, ServerFacts(256, None, ("completion",))),
        ("vllm", ["--max_model_len=8k"], None, ServerFacts(256, 8000, ("completion",))),
        ("vllm", ["--max-model-len", "8k"], 4096, ServerFacts(256, 4096, ("completion",))),
        ("vllm", ["--convert", "embed"], None, ServerFacts(256, None, ("embedding",))),
        ("vllm", ["--task=score"], None, ServerFacts(256, None, ("rerank",))),
        ("vllm", ["--runner", "pooling"], None, ServerFacts(256, None, ("embedding",))),
        (
            "vllm",
            ["--enable-auto-tool-choice", "--max-num-seqs", "9"],
            None,
            ServerFacts(9, None, ("completion", "tools")),
        ),
        ("sglang", [], 4096, ServerFacts(None, 4096, ("completion",))),
        ("sglang", ["--is-embedding"], None, ServerFacts(None, None, ("embedding",))),
        (
            "sglang",
            ["--tool-call-parser", "qwen", "--max-running-requests", "9"],
            None,
            ServerFacts(9, None, ("completion", "tools")),
        ),
    ],
)
def test_what_a_server_can_do(
    name: str, arguments: list[str], card: int | None, expected: ServerFacts
) -> None:
    answer = json.dumps({"data": [{"max_model_len": card}]}).encode() if card else None
    assert engine(name).facts(arguments, answer) == expected


@pytest.mark.parametrize(
    "answer",
    [b"", b"[]", b"nonsense", b'{"data": []}', b'{"data": [1]}', b'{"data": {}}', b"[" * 10**5]
    + [json.dumps({"data": [{"max_model_len": n}]}).encode() for n in (0, -1, True, "x", 2**40)],
)
def test_answers_that_say_nothing_are_no_facts(answer: bytes) -> None:
    assert engine("vllm").facts([], answer).context_length is None


@given(
    st.binary(max_size=30).flatmap(
        lambda noise: st.lists(
            st.sampled_from([b"the-key", b"the-", b"key", b"t", b"\n", noise]), max_size=12
        )
    )
)
def test_a_secret_never_passes_whatever_pieces_it_comes_in(chunks: list[bytes]) -> None:
    told, held = b"", b""
    for chunk in chunks:
        written, held = without_secret(held + chunk, b"the-key")
        told += written
    told += held
    assert b"the-key" not in told
    assert told == b"".join(chunks).replace(b"the-key", b"[API key]")


def test_without_a_secret_nothing_is_held_back() -> None:
    assert without_secret(b"anything", b"") == (b"anything", b"")


@pytest.mark.parametrize(
    ("address", "is_so"),
    [
        *((address, True) for address in ("127.0.0.1", "127.8.0.1", "::1", "localhost")),
        *((address, False) for address in ("0.0.0.0", "10.1.2.3", "gpu-1.example", "::")),
    ],
)
def test_what_only_this_host_can_reach(address: str, is_so: bool) -> None:
    assert is_loopback(address) is is_so
