"""Which arguments of a preset reach vLLM, SGLang and ComfyUI: held against argparse."""

import argparse
import contextlib
import io
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes.engines import comfyui, sglang_flags, vllm_flags
from lanes.engines.argparse_flags import OwnedFlags, value_of, whole_number
from tests.standins import comfyui_main
from tests.standins import sglang_flags as sglang_real
from tests.standins import vllm_flags as vllm_real

VLLM, SGLANG, COMFY = vllm_flags.OWNED, sglang_flags.OWNED, comfyui.OWNED
VLLM_LAUNCH = ["/m", "--served-model-name", "a", "--host", "127.0.0.1", "--port", "18100"]
SGLANG_LAUNCH = ["--model-path", "/m", "--served-model-name", "a", "--host", "127.0.0.1"]


@pytest.mark.parametrize(
    ("owned", "words"),
    [
        (VLLM, ["--max-model-len", "8k", "-tp", "2", "--enable-auto-tool-choice", "-O3"]),
        (VLLM, ["--tokenizer", "/m/tok", "--model-impl", "auto", "--gpu_memory_utilization=.8"]),
        (VLLM, ["--lora-modules", "a=/a", "b=/b", "--seed", "-1", "--no-enable-prefix-caching"]),
        (VLLM, ["--speculative-config.method", "ngram", "-dp", "2", "--trust-remote-code"]),
        (SGLANG, ["--tp", "2", "--context-length", "8192", "--model-impl=auto", "--dp-size", "1"]),
        (SGLANG, ["--lora-paths", "a=/a", "b=/b", "--mem-fraction-static", "0.8"]),
        (COMFY, ["--lowvram", "--fast", "cublas_ops", "--reserve-vram", "1.5"]),
    ],
)
def test_arguments_that_tune_the_server_are_kept_as_they_are(
    owned: OwnedFlags, words: list[str]
) -> None:
    assert owned.without(words) == (words, [])


@pytest.mark.parametrize(
    ("owned", "spelled"),
    [
        (VLLM, ["--model", "other"]),
        (VLLM, ["--model=other"]),
        (VLLM, ["--mod", "other"]),
        (VLLM, ["--host", "0.0.0.0"]),
        (VLLM, ["--hos=0.0.0.0"]),
        (VLLM, ["--ho", "0.0.0.0"]),
        (VLLM, ["--port 8000"]),
        (VLLM, ["--api_key", "mine", "another"]),
        (VLLM, ["--api_k=mine"]),
        (VLLM, ["--api-key.x", "mine"]),
        (VLLM, ["--served_model_name", "gpt-5", "gpt-6"]),
        (VLLM, ["--uds", "/tmp/x"]),
        (VLLM, ["--config", "/tmp/x.yaml"]),
        (VLLM, ["--ssl-something-new", "x"]),
        (VLLM, ["--enable-log-requests"]),
        (VLLM, ["-dpa", "10.0.0.9"]),
        (VLLM, ["--headl"]),
        (VLLM, ["-h"]),
        (VLLM, ["-hx"]),
        (VLLM, ["--help=all"]),
        (VLLM, ["--", "other"]),
        (SGLANG, ["--model", "other"]),
        (SGLANG, ["--model-p", "other"]),
        (SGLANG, ["--admin-api-key=x"]),
        (SGLANG, ["--admin", "x"]),
        (SGLANG, ["--nccl-init-addr", "10.0.0.9:1"]),
        (SGLANG, ["--disaggregation-mode", "prefill"]),
        (SGLANG, ["--enable-custom-l"]),
        (SGLANG, ["--log-requests-target", "stdout", "/tmp"]),
        (COMFY, ["--listen"]),
        (COMFY, ["--lis", "0.0.0.0"]),
        (COMFY, ["--output-directory=/etc"]),
        (COMFY, ["--base", "/"]),
    ],
)
def test_an_owned_flag_goes_with_all_its_values_and_leaves_a_note(
    owned: OwnedFlags, spelled: list[str]
) -> None:
    kept, notes = owned.without(["--seed", "1", *spelled, "--dtype", "half"])
    assert kept == ["--seed", "1", "--dtype", "half"]
    assert len(notes) == 1


def test_a_note_names_what_an_abbreviation_may_stand_for_but_never_the_value() -> None:
    _, (note,) = VLLM.without(["--api_k", "top-secret"])
    assert note == (
        "--api-k was left out: it may stand for --api-key, and each server gets a key of its own "
        "that only the gateway knows."
    )


def test_words_before_the_first_flag_would_be_another_model() -> None:
    assert VLLM.without(["/other/model", "--seed", "1"])[0] == ["--seed", "1"]
    assert len(VLLM.without(["/other/model"])[1]) == 1


def words(owned: OwnedFlags, parser: argparse.ArgumentParser) -> st.SearchStrategy[list[str]]:
    """Flags, most of them beginnings of owned ones, spelled in any way, with any values."""
    others = sorted(name for action in parser._actions for name in action.option_strings)
    begun = st.sampled_from(sorted(owned.reasons)).flatmap(
        lambda name: st.integers(min(4, len(name)), len(name)).map(lambda length: name[:length])
    )
    value = st.sampled_from(["1", "1", "1", "x", "-1", "/other", "--", "", "a b", "=", "-", "---x"])
    spelled = st.builds(
        lambda name, value, how: how(name, value),
        st.one_of(begun, begun, st.sampled_from(others)),
        value,
        st.sampled_from(
            [
                lambda name, value: [name, value],
                lambda name, value: [name.replace("-", "_").replace("__", "--"), value, value],
                lambda name, value: [f"{name}={value}"],
                lambda name, value: [f"{name}.x", value],
                lambda name, value: [f"{name}.x={value}"],
                lambda name, value: [f"{name} {value}"],
                lambda name, _: [name],
            ]
        ),
    )
    parts = st.lists(st.one_of(spelled, spelled, value.map(lambda text: [text])), max_size=4)
    return parts.map(lambda found: [word for part in found for word in part])


def read(parse: Callable[[list[str]], argparse.Namespace], words: list[str]) -> dict[str, object]:
    """What the parser makes of the words; nothing when it ends the program, which harms nobody."""
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        try:
            return vars(parse(words))
        except (SystemExit, ValueError, OSError, IndexError):
            return {}


OWNED_VLLM = [
    "model_tag",
    "model",
    "host",
    "port",
    "uds",
    "served_model_name",
    "api_key",
    "ssl_keyfile",
    "root_path",
    "middleware",
    "config",
    "headless",
    "data_parallel_address",
    "allowed_local_media_path",
    "enable_log_requests",
]
OWNED_SGLANG = [
    "model_path",
    "host",
    "port",
    "served_model_name",
    "api_key",
    "admin_api_key",
    "config",
    "dist_init_addr",
    "node_rank",
    "enable_custom_logit_processor",
    "tool_server",
    "log_requests",
    "log_requests_target",
    "grpc_mode",
]
OWNED_COMFY = [
    "listen",
    "port",
    "tls_keyfile",
    "output_directory",
    "base_directory",
    "user_directory",
]


@given(words(VLLM, vllm_real.parser()))
def test_no_words_change_what_is_slotserve_s_at_vllm(given_words: list[str]) -> None:
    kept, _ = VLLM.without(given_words)
    plain = read(vllm_real.parse, VLLM_LAUNCH)
    told = read(vllm_real.parse, [*VLLM_LAUNCH, *kept])
    assert not told or {n: told[n] for n in OWNED_VLLM} == {n: plain[n] for n in OWNED_VLLM}
    assert VLLM.without(kept) == (kept, [])


@given(words(SGLANG, sglang_real.parser()))
def test_no_words_change_what_is_slotserve_s_at_sglang(given_words: list[str]) -> None:
    kept, _ = SGLANG.without(given_words)
    plain = read(sglang_real.parse, SGLANG_LAUNCH)
    told = read(sglang_real.parse, [*SGLANG_LAUNCH, *kept])
    assert not told or {n: told[n] for n in OWNED_SGLANG} == {n: plain[n] for n in OWNED_SGLANG}
    assert SGLANG.without(kept) == (kept, [])


@given(words(COMFY, comfyui_main.parser()))
def test_no_words_change_what_is_slotserve_s_at_comfyui(given_words: list[str]) -> None:
    kept, _ = COMFY.without(given_words)
    launch = ["--listen", "127.0.0.1", "--port", "1"]
    plain = read(comfyui_main.parser().parse_args, launch)
    told = read(comfyui_main.parser().parse_args, [*launch, *kept])
    assert not told or {n: told[n] for n in OWNED_COMFY} == {n: plain[n] for n in OWNED_COMFY}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("8192", 8192),
        ("8k", 8000),
        ("8K", 8192),
        ("1M", 2**20),
        *((text, None) for text in ("0", "-1", "auto", "", None, "9999999K", "\u0661")),
    ],
)
def test_numbers_as_people_write_them(text: str | None, number: int | None) -> None:
    assert whole_number(text) == number


def test_the_last_of_several_values_counts() -> None:
    assert value_of(["--max_num_seqs=4", "--max-num-seqs", "8"], "--max-num-seqs") == "8"
    assert value_of(["--max-num-seqs"], "--max-num-seqs") is None


@pytest.mark.parametrize(
    ("allowed", "kept", "barred"),
    [
        (
            vllm_flags.allowed_variables,
            ["VLLM_ATTENTION_BACKEND", "VLLM_USE_FLASHINFER_SAMPLER", "PYTORCH_CUDA_ALLOC_CONF"],
            ["VLLM_API_KEY", "VLLM_SERVER_DEV_MODE", "VLLM_PLUGINS", "VLLM_PORT", "HF_TOKEN"],
        ),
        (
            sglang_flags.allowed_variables,
            ["SGLANG_ENABLE_JIT_DEEPGEMM", "SGL_DISABLE_TP_MEMORY_INBALANCE_CHECK", "TZ"],
            ["SGLANG_HOST_IP", "SGLANG_TORCH_PROFILER_DIR", "SGLANG_PORT", "LD_PRELOAD"],
        ),
    ],
)
def test_variables_that_tune_are_kept_and_others_noted(
    allowed: Callable[[dict[str, str]], tuple[dict[str, str], list[str]]],
    kept: list[str],
    barred: list[str],
) -> None:
    found, notes = allowed(dict.fromkeys([*kept, *barred], "secret"))
    assert sorted(found) == sorted(kept)
    assert [note.split()[0] for note in notes] == barred
    assert "secret" not in "".join(notes)
