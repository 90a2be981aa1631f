"""Why servers ended: single lines as llama.cpp, PyTorch, Hugging Face and drivers write them."""

import re

import pytest

from lanes.engines.comfyui_failures import COMFYUI
from lanes.engines.command_failures import COMMAND
from lanes.engines.llama_failures import LLAMA
from lanes.engines.registry import ENGINES
from lanes.engines.sglang_failures import SGLANG
from lanes.engines.vllm_failures import VLLM
from lanes.failures.causes import Cause, Evidence, FailureWords, Kind, joined, pattern
from lanes.failures.common import ADVICE
from lanes.failures.reading import read_cause, without_folders
from tests.failure_lines import COMMON_LINES
from tests.failure_lines_engines import ENGINE_LINES
from tests.failure_lines_llama import LLAMA_LINES

EXITING = "0.00.1 E srv  llama_server: exiting due to model loading error"
PLAIN = FailureWords("server", gpu_memory="Lower the batch.", host_memory="Add memory.")


def cause_of(log: str, status: int | None = 1, words: FailureWords = LLAMA) -> Cause:
    return read_cause(Evidence(log, status), words)


@pytest.mark.parametrize(("kind", "line", "sentence"), LLAMA_LINES)
def test_a_line_of_llama_server_is_said_in_one_sentence(
    kind: Kind, line: str, sentence: str
) -> None:
    cause = cause_of(f"0.00.0 I srv init: loading model\n{line}\n{EXITING}\n")
    assert (cause.kind, cause.line, cause.sentence) == (kind, line, sentence)
    assert cause.advice


@pytest.mark.parametrize(("kind", "line", "sentence"), COMMON_LINES)
def test_a_line_of_any_program_is_said_in_one_sentence(
    kind: Kind, line: str, sentence: str
) -> None:
    cause = cause_of(f"INFO loading\n{line}\n  File x, line 3\nbye\n", words=PLAIN)
    assert (cause.kind, cause.line, cause.sentence) == (kind, line, sentence)
    assert cause.advice


@pytest.mark.parametrize(("words", "kind", "line", "sentence", "advice"), ENGINE_LINES)
def test_a_line_of_an_engine_is_said_with_its_own_knobs(
    words: FailureWords, kind: Kind, line: str, sentence: str, advice: str
) -> None:
    cause = cause_of(f"loading\n{line}\nbye\n", words=words)
    assert (cause.kind, cause.line, cause.sentence) == (kind, line[:500], sentence)
    assert advice in cause.advice


def test_a_root_cause_counts_more_than_what_the_api_server_says_below() -> None:
    log = (
        "(EngineCore_DP0 pid=9) ERROR [core.py:708] ValueError: No available memory for the cache "
        "blocks.\n(APIServer pid=1) RuntimeError: Engine core initialization failed. See root "
        "cause above. Failed core proc(s): {}\n"
    )
    assert cause_of(log, words=VLLM).kind == Kind.GPU_MEMORY


def test_sglang_s_own_kill_is_not_taken_for_the_kernel_s() -> None:
    log = (
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.\n\n"
        "[2026-02-27 15:27:13] Received sigquit from a child process. It usually means the child "
        "failed.\n"
    )
    assert cause_of(log, -9, SGLANG).kind == Kind.GPU_MEMORY


def test_a_workflow_that_failed_is_not_why_comfyui_ended() -> None:
    log = "!!! Exception during processing !!! Allocation on device 0 would exceed allowed memory."
    assert cause_of(log, -15, COMFYUI).kind == Kind.UNKNOWN


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (-9, Kind.HOST_MEMORY, "most likely the host ran out of memory."),
        (137, Kind.HOST_MEMORY, "most likely the host ran out of memory."),
        (-4, Kind.INSTRUCTION, "instructions that the processor lacks (SIGILL)"),
        (132, Kind.INSTRUCTION, "instructions that the processor lacks (SIGILL)"),
        (-11, Kind.CRASH, "crashed (SIGSEGV)"),
        (-6, Kind.CRASH, "gave up (SIGABRT)"),
        (-7, Kind.FILE_BROKEN, "(SIGBUS)"),
        (-15, Kind.UNKNOWN, "It was ended by signal 15 and its log names no error."),
        (0, Kind.UNKNOWN, "It ended with status 0 and its log names no error."),
        (None, Kind.UNKNOWN, "It does not answer and its log names no error."),
    ],
)
def test_a_silent_log_leaves_the_exit_status(status: int | None, kind: Kind, words: str) -> None:
    cause = cause_of("0.00.0 W llama_context: n_ctx_seq is too large\n", status)
    assert cause.kind == kind
    assert words in cause.sentence
    assert not cause.line
    assert cause.advice


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("x: error: unrecognized arguments: --y", "The program does not know the argument --y."),
        ("Illegal instruction", "This program needs instructions that the processor lacks."),
        ("Illegal instruction", "Use a build of the program for this processor."),
        ("No module named x", "The program cannot start: the Python module x is not installed."),
    ],
)
def test_a_program_without_a_name_is_spoken_of_all_the_same(line: str, words: str) -> None:
    assert words in cause_of(line, words=COMMAND).words


def test_sentences_are_joined_with_their_ends() -> None:
    assert joined("It is gone", "", "Put it back!", "It waits…") == (
        "It is gone. Put it back! It waits…"
    )


def test_memory_is_advised_by_the_engine() -> None:
    assert cause_of("CUDA error: out of memory").advice == LLAMA.gpu_memory
    assert cause_of("MemoryError", words=PLAIN).advice == PLAIN.host_memory


def test_a_named_cause_counts_more_than_the_signal() -> None:
    assert cause_of("CUDA error: out of memory\nggml_abort", -6).kind == Kind.GPU_MEMORY


def test_the_kernel_s_own_line_counts_more_than_the_log() -> None:
    line = "Memory cgroup out of memory: Killed process 23793 (llama-server) total-vm:2623712kB"
    evidence = Evidence("CUDA error: out of memory", -9, killed_line=line, memory_kills=1)
    cause = read_cause(evidence, LLAMA)
    assert (cause.kind, cause.line, cause.advice) == (Kind.HOST_MEMORY, line, LLAMA.host_memory)
    assert cause.sentence.startswith("The kernel killed it")


@pytest.mark.parametrize(
    ("status", "words"),
    [(-9, "The kernel killed it: "), (1, "The kernel killed a process beside it: ")],
)
def test_a_count_of_the_kernel_is_told_when_the_log_is_silent(status: int, words: str) -> None:
    cause = read_cause(Evidence("", status, memory_kills=1), LLAMA)
    assert cause.kind == Kind.HOST_MEMORY
    assert cause.sentence.startswith(words)


def test_the_log_counts_more_than_a_count_that_may_be_another_lane_s() -> None:
    evidence = Evidence("error: invalid argument: --nope", 1, memory_kills=1)
    assert read_cause(evidence, LLAMA).kind == Kind.ARGUMENT


def test_a_server_that_was_given_up_failed_for_want_of_an_answer() -> None:
    cause = read_cause(Evidence("0.1 E slow: disk is busy", waited=600), LLAMA)
    assert cause.kind == Kind.TIMEOUT
    assert cause.sentence == "It did not become ready within 600 s."
    assert cause.line == "0.1 E slow: disk is busy"
    assert "SLOTSERVE_LOAD_TIMEOUT_SECONDS" in cause.advice


def test_a_server_that_was_given_up_failed_for_what_its_log_names() -> None:
    cause = read_cause(Evidence("OSError: [Errno 28] No space left", waited=600), LLAMA)
    assert cause.kind == Kind.DISK_FULL
    assert cause.sentence == "It did not become ready within 600 s: A disk of the host is full."


def test_the_line_of_the_last_error_is_kept_when_no_cause_is_known() -> None:
    cause = cause_of("0.1 E first: one\n0.2 E srv load_model: something new\n0.3 I bye\n")
    assert cause.kind == Kind.UNKNOWN
    assert cause.sentence == "It ended with status 1; the last error in its log may say why."
    assert cause.line == "0.2 E srv load_model: something new"


def test_an_exception_of_python_is_an_error_too() -> None:
    log = "Traceback (most recent call last):\n  File x\nassertions.SomeError: it is late\n"
    assert cause_of(log, 1, PLAIN).line == "assertions.SomeError: it is late"


@pytest.mark.parametrize(
    "line",
    [
        "error: cannot answer 'write to Alice Liddell about it'",
        "ValueError: bad prompt: write to Alice Liddell",
        "0.2 E srv: Alice Liddell",
        "FileNotFoundError: [Errno 2] No such file or directory: '/home/Alice Liddell/x.json'",
        "PermissionError: [Errno 13] Permission denied: '/home/Alice Liddell/models/x.gguf'",
        "E gguf_init_from_file: failed to open GGUF file '/home/Alice Liddell/x' (Is a directory)",
    ],
)
@pytest.mark.parametrize("waited", [None, 600])
def test_no_sentence_holds_what_a_log_may_tell_of_others(line: str, waited: float | None) -> None:
    status = None if waited else 1
    cause = read_cause(Evidence(f"{line}\n", status, waited=waited), LLAMA)
    assert "Alice" in cause.line
    assert "Alice" not in cause.words


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/models/a b/x.gguf", "x.gguf"),
        ("[Errno 2] No such file: '/opt/bin/llama'", "[Errno 2] No such file: 'llama'"),
        ("/models/qwen/", "qwen"),
        ("--lora /srv/of/alice.bin --x", "--lora alice.bin --x"),
        ("org/model", "org/model"),
        ("./a/b ../c/d ~/e/f", "./a/b ../c/d ~/e/f"),
        ("https://hub.example/a/b", "https://hub.example/a/b"),
        ("3/4", "3/4"),
        ("", ""),
    ],
)
def test_of_whole_paths_the_file_s_name_is_left(text: str, shown: str) -> None:
    assert without_folders(text) == shown


def test_the_last_line_of_a_kind_counts_and_colours_are_left_out() -> None:
    log = "error: invalid argument: --one\n\x1b[31merror: invalid argument: --two\x1b[0m\n"
    assert cause_of(log).line == "error: invalid argument: --two"


@pytest.mark.parametrize(
    "line",
    [
        "ggml_cuda_host_malloc: failed to allocate 1024.00 MiB of pinned memory: out of memory",
        "warning: failed to mlock 1024-byte buffer: Cannot allocate memory",
        "common_fit_params: encountered an error while trying to fit params to free device memory",
        "ggml_cuda_init: failed to initialize CUDA: no CUDA-capable device is detected",
    ],
)
def test_a_line_after_which_servers_go_on_is_no_cause(line: str) -> None:
    assert cause_of(line).sentence == "It ended with status 1 and its log names no error."


def test_a_cause_fits_its_columns_however_long_the_log_s_line_is() -> None:
    long = "x" * 5000
    for line in (f"error: invalid argument: --{long}", f"0.1 E {long}", f"FATAL: {long}"):
        cause = cause_of(line)
        assert max(map(len, (cause.sentence, cause.line, cause.advice))) <= 500


def test_braces_of_a_log_are_no_fields() -> None:
    assert "--{any}{5}" in cause_of("error: invalid argument: --{any}{5}").sentence


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("said", "named"),
    [
        ("--my-token=SECRET", "the argument --my-token"),
        ("--my-token SECRET", "the argument --my-token"),
        ("-t=SECRET more", "the argument -t"),
        ("SECRET --my-token", "an argument of the preset"),
        ("SECRET", "an argument of the preset"),
        ("--my-token:SECRET", "an argument of the preset"),
        ('--{"token":"SECRET"}', "an argument of the preset"),
    ],
)
@pytest.mark.parametrize(
    "line",
    ["x: error: unrecognized arguments: {}", "No such option: {}", "error: invalid argument: {}"],
)
def test_no_value_of_an_argument_reaches_members(
    engine: str, line: str, said: str, named: str
) -> None:
    cause = cause_of(line.format(said), words=ENGINES[engine].failure_words)
    assert "SECRET" not in f"{cause.sentence} {cause.advice}"
    assert cause.kind == Kind.UNKNOWN or cause.sentence.endswith(f" does not know {named}.")


def test_an_engine_s_patterns_come_before_and_its_late_ones_after_the_common() -> None:
    words = FailureWords(
        "x",
        gpu_memory="less",
        host_memory="less",
        patterns=(pattern(Kind.ARGUMENT, "CUDA error: out", "Mine."),),
        late_patterns=(pattern(Kind.CRASH, "engine failed", "Its engine failed."),),
    )
    assert cause_of("CUDA error: out of memory", words=words).sentence == "Mine."
    assert cause_of("engine failed\nMemoryError", words=words).kind == Kind.HOST_MEMORY
    assert cause_of("engine failed", words=words).sentence == "Its engine failed."


def test_every_kind_but_memory_has_an_advice_of_its_own() -> None:
    assert set(Kind) - set(ADVICE) == {Kind.GPU_MEMORY, Kind.HOST_MEMORY}
    assert all(not re.search(r"\{(?!program)", advice) for advice in ADVICE.values())
