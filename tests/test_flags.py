"""Which arguments and variables of a preset reach llama-server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes.engines import llama_flags, vllm_flags, well_formed
from lanes.refusals import Refusal

TUNING = ["-c", "4096", "-np", "2", "-ngl", "99", "--no-webui", "--seed", "-1", "-fa", "on"]


def test_arguments_that_tune_the_server_are_kept_as_they_are() -> None:
    assert llama_flags.without_owned(TUNING) == (TUNING, [])


@pytest.mark.parametrize(
    "spelled",
    [
        ["-m", "other.gguf"],
        ["--model", "other.gguf"],
        ["--model=other.gguf"],
        ["-m=other.gguf"],
        ["--model other.gguf"],
        ["--host", "0.0.0.0"],
        ["--port", "-1"],
        ["--reuse-port"],
        ["--reuse_port"],
        ["-a", "gpt-5"],
        ["--alias", "gpt-5"],
        ["--api-key", "mine"],
        ["--api_key", "mine"],
        ["--api_key=mine"],
        ["--api-key-file", "keys.txt"],
        ["-hf", "org/model"],
        ["-hfr", "org/model"],
        ["--hf-repo", "org/model"],
        ["-hff", "file.gguf"],
        ["-hft", "secret"],
        ["-mu", "https://example.org/model.gguf"],
        ["--model-url", "https://example.org/model.gguf"],
        ["-mmu", "https://example.org/mmproj.gguf"],
        ["-dr", "ai/model"],
        ["-hfd", "org/draft"],
        ["--spec-draft-hf-repo", "org/draft"],
        ["-hfv", "org/vocoder"],
        ["--gpt-oss-20b-default"],
        ["--fim-qwen-7b-spec"],
        ["--api-prefix", "/x"],
        ["--ssl-key-file", "key.pem"],
        ["--ssl-something-new", "x"],
        ["--tools", "all"],
        ["--tools-runtime", "docker:image"],
        ["--agent"],
        ["-ag"],
        ["--mcp-servers-json", "{}"],
        ["--webui-mcp-proxy"],
        ["--no-ui-mcp-proxy"],
        ["--path", "/"],
        ["--media-path", "/"],
        ["--slot-save-path", "/tmp"],
        ["--log-file", "x"],
        ["--log-disable"],
        ["--verbose"],
        ["-lv", "9"],
        ["--models-dir", "/models"],
        ["--no-models-autoload"],
        ["--rpc", "10.0.0.9:50052"],
        ["--props"],
        ["--video-ffmpeg-dir", "/tmp/x"],
        ["--list-devices"],
    ],
)
def test_an_owned_flag_goes_with_its_value_and_leaves_a_note(spelled: list[str]) -> None:
    kept, notes = llama_flags.without_owned(["-c", "4096", *spelled, "-np", "2"])
    assert kept == ["-c", "4096", "-np", "2"]
    assert len(notes) == 1


def test_a_note_names_the_flag_and_the_reason_but_never_the_value() -> None:
    _, notes = llama_flags.without_owned(["--api_key", "top-secret"])
    assert notes == [
        "--api-key was left out: each server gets a key of its own that only the gateway knows."
    ]


def test_a_flag_whose_value_was_forgotten_does_not_take_the_next_flag_along() -> None:
    kept, notes = llama_flags.without_owned(["--port", "-c", "4096"])
    assert kept == ["-c", "4096"]
    assert len(notes) == 1


def test_an_owned_flag_is_found_where_another_flag_s_value_would_stand() -> None:
    kept, _ = llama_flags.without_owned(["--grammar", "--host", "0.0.0.0"])
    assert kept == ["--grammar"]


@pytest.mark.parametrize(
    ("words", "kept", "notes"),
    [
        (["hello", "-c", "512"], ["-c", "512"], [llama_flags.STRAY]),
        (["hello"], [], [llama_flags.STRAY]),
        (["-c", "512", "hello", "you"], ["-c", "512"], [llama_flags.STRAY]),
        (
            ["--port", "1", "hello"],
            [],
            ["--port was left out: SlotServe chooses", llama_flags.STRAY],
        ),
        (["--lora-scaled", "a", "0.5", "b"], ["--lora-scaled", "a", "0.5"], [llama_flags.STRAY]),
        (["-c 512", "-np 2"], ["-c", "512", "-np", "2"], ["-c and its value", "-np and its value"]),
        (["--host 0.0.0.0"], [], ["--host was left out"]),
        (["--seed", "-1"], ["--seed", "-1"], []),
    ],
)
def test_words_that_belong_to_no_flag_are_left_out_with_a_note(
    words: list[str], kept: list[str], notes: list[str]
) -> None:
    found, told = llama_flags.without_owned(words)
    assert found == kept
    assert len(told) == len(notes)
    assert all(said.startswith(note) for said, note in zip(told, notes, strict=True))
    assert llama_flags.without_owned(found) == (found, [])


def test_a_flag_and_its_value_in_one_word_are_two_for_the_other_engines_as_well() -> None:
    kept, notes = vllm_flags.OWNED.without(["--max-model-len 4096", "--host 1.2.3.4"])
    assert kept == ["--max-model-len", "4096"]
    assert len(notes) == 2


@pytest.mark.parametrize("flag", ["--spec-default", "-mg", "-mm", "--log-prefix", "--metrics"])
def test_flags_that_only_look_like_owned_ones_stay(flag: str) -> None:
    assert llama_flags.without_owned([flag]) == ([flag], [])


ALL_OWNED = [name for _, names in llama_flags.OWNED for name in names.split()]


@given(st.lists(st.sampled_from([*ALL_OWNED, *TUNING, "--host=1", "--api_key", "value"])))
def test_no_owned_spelling_survives_and_stripping_again_changes_nothing(words: list[str]) -> None:
    kept, _ = llama_flags.without_owned(words)
    assert not set(kept) & {*ALL_OWNED, "--host=1", "--api_key"}
    assert llama_flags.without_owned(kept) == (kept, [])


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("-c 4096", "are a list"),
        (None, "are a list"),
        ({"-c": "4096"}, "are a list"),
        (["-c", 4096], "Argument 2 is not a text"),
        ([["-c"]], "Argument 1 is not a text"),
        (["a\0b"], "no command line can carry"),
        (["\ud800"], "no command line can carry"),
        (["x" * 4097], "longer than 4096"),
        (["x"] * 201, "At most 200"),
    ],
)
def test_arguments_that_are_no_list_of_texts_are_refused_in_words(
    value: object, words: str
) -> None:
    refusal = well_formed.check_arguments(value)
    assert isinstance(refusal, Refusal)
    assert refusal.code == "bad_arguments"
    assert words in refusal.words


def test_arguments_at_the_limits_are_taken() -> None:
    longest = ["x" * 4096] * 200
    assert well_formed.check_arguments(longest) == longest


def test_a_line_is_split_as_a_shell_would() -> None:
    line = "-c 4096 --chat-template-kwargs '{\"a\": 1}'\n-np 2"
    expected = ["-c", "4096", "--chat-template-kwargs", '{"a": 1}', "-np", "2"]
    assert well_formed.split_line(line) == expected


@pytest.mark.parametrize("line", ["--grammar 'root", 'x "y', "x \\"])
def test_a_line_with_an_open_quote_is_refused(line: str) -> None:
    refusal = well_formed.split_line(line)
    assert isinstance(refusal, Refusal)
    assert "not closed" in refusal.words


@pytest.mark.parametrize(
    "name",
    ["GGML_CUDA_FORCE_MMQ", "OMP_NUM_THREADS", "CUDA_DEVICE_ORDER", "LLAMA_SET_ROWS", "TZ"],
)
def test_a_variable_that_tunes_is_kept(name: str) -> None:
    assert llama_flags.allowed_environment({name: "1"}) == ({name: "1"}, [])


@pytest.mark.parametrize(
    "name",
    [
        "LLAMA_ARG_HOST",
        "LLAMA_ARG_CTX_SIZE",
        "LLAMA_API_KEY",
        "HF_TOKEN",
        "MODEL_ENDPOINT",
        "HF_ENDPOINT",
        "CUDA_VISIBLE_DEVICES",
        "GGML_VK_VISIBLE_DEVICES",
        "GGML_BACKEND_PATH",
        "GGML_METAL_PATH_RESOURCES",
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "PATH",
        "PYTHONPATH",
        "HTTPS_PROXY",
        "OMP_TOOL_LIBRARIES",
        "CUDA_INJECTION64_PATH",
        "DATABASE_URL",
    ],
)
def test_any_other_variable_is_left_out_with_a_note(name: str) -> None:
    kept, notes = llama_flags.allowed_environment({name: "secret"})
    assert kept == {}
    assert len(notes) == 1
    assert name in notes[0]
    assert "secret" not in notes[0]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (["A=1"], "names and texts"),
        ({"A": 1}, "The value of A is not a text"),
        ({"A B": "1"}, "no name of a variable"),
        ({"": "1"}, "no name of a variable"),
        ({"A": "x\0"}, "no command line can carry"),
        ({f"A{n}": "1" for n in range(51)}, "At most 50"),
    ],
)
def test_an_environment_that_is_none_is_refused_in_words(value: object, words: str) -> None:
    refusal = well_formed.check_environment(value)
    assert isinstance(refusal, Refusal)
    assert words in refusal.words


@given(st.lists(st.text("ab \"'\\${}=\n", max_size=12), max_size=5))
def test_arguments_come_back_from_their_line(words: list[str]) -> None:
    assert well_formed.split_line(well_formed.join_line(words)) == words


def test_macros_need_no_quotes_in_a_line() -> None:
    assert well_formed.join_line(["--port", "${PORT}", "a b"]) == "--port ${PORT} 'a b'"
