"""Why a server ended, from what llama.cpp's builds were seen to write."""

import pytest

from lanes.engines.reasons import failure_reason
from lanes.engines.registry import engine

GPU = "The GPU ran out of memory: lower -ngl or -c."
HOST = "The host ran out of memory: lower -ngl or -c."
EXITING = "0.00.1 E srv  llama_server: exiting due to model loading error"

CAUSES = [
    (
        "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 9000.00 MiB on device 0: "
        "cudaMalloc failed: out of memory",
        GPU,
    ),
    ("0.1 E alloc_tensor_range: failed to allocate CUDA0 buffer of size 9437184000", GPU),
    ("llama_model_load: error loading model: unable to allocate CUDA0 buffer", GPU),
    ("CUDA error: out of memory", GPU),
    ("ggml_vulkan: Device memory allocation of size 1073741824 failed.", GPU),
    ("ggml_vulkan: vk::Device::allocateMemory: ErrorOutOfDeviceMemory", GPU),
    ("error: Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)", GPU),
    (
        "0.18.2 E ggml_aligned_malloc: insufficient memory (attempted to allocate 2197271.25 MB)\n"
        "0.18.3 E ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 23",
        "The host ran out of memory (it asked for 2197271.25 MB): lower -ngl or -c.",
    ),
    ("terminate called after throwing an instance of 'std::bad_alloc'", HOST),
    ("0.1 E llama_mmap: mmap failed: Cannot allocate memory", HOST),
    ("failed to initialize the context: failed to allocate buffer for kv cache", HOST),
    (
        "0.1 E gguf_init_from_file: failed to open GGUF file '/m/a b.gguf' "
        "(No such file or directory)",
        "The model file /m/a b.gguf does not exist on this host.",
    ),
    (
        "0.1 E gguf_init_from_file: failed to open GGUF file '/m/x.gguf' (Permission denied)",
        "The model file /m/x.gguf cannot be opened (Permission denied).",
    ),
    (
        "0.1 E gguf_init_from_reader: invalid magic characters: 'not ', expected 'GGUF'",
        "The model file is not a GGUF file: register another file.",
    ),
    (
        "0.1 E gguf_init_from_reader: failed to read magic",
        "The model file is not a GGUF file: register another file.",
    ),
    (
        "0.1 E llama_model_load: error loading model: tensor 'blk.16.ffn_down.weight' data is not "
        "within the file bounds, model is corrupted or incomplete",
        "The model file is cut off or damaged: fetch it again.",
    ),
    (
        "error loading model: unknown model architecture: 'llama9'",
        "This llama.cpp does not know the architecture llama9: a newer one is needed.",
    ),
    (
        "error loading model: check_tensor_dims: tensor 'token_embd.weight' not found",
        "The model file lacks tensors that a model needs (it may be a vocabulary or a part).",
    ),
    (
        "error: invalid argument: --no-such-flag",
        "llama-server does not know the argument --no-such-flag: take it out of the preset.",
    ),
    (
        'error while handling argument "-c": stoi',
        "The value of the argument -c is not one that llama-server takes.",
    ),
    (
        "error: expected value for argument",
        "The last argument of the preset lacks its value.",
    ),
    (
        "0.1 E srv start: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 18131",
        "Port 18131 of 127.0.0.1 is in use by another program: it is tried again with another "
        "port.",
    ),
    (
        "llama-server: error while loading shared libraries: libcublas.so.12: cannot open shared "
        "object file",
        "llama-server cannot start: the library libcublas.so.12 is missing on this host.",
    ),
]


@pytest.mark.parametrize(("line", "sentence"), CAUSES)
def test_the_log_s_cause_is_said_in_one_sentence(line: str, sentence: str) -> None:
    log = f"0.00.0 I srv init: loading model\n{line}\n{EXITING}\n"
    assert failure_reason(log, 1) == sentence


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (-9, "most likely the host ran out of memory: lower -ngl or -c."),
        (137, "most likely the host ran out of memory: lower -ngl or -c."),
        (-4, "instructions that the processor lacks (SIGILL)"),
        (132, "instructions that the processor lacks (SIGILL)"),
        (-11, "crashed (SIGSEGV)"),
        (-6, "gave up (SIGABRT)"),
        (-15, "It was ended by signal 15 and its log names no error."),
        (0, "It ended with status 0 and its log names no error."),
        (None, "It does not answer and its log names no error."),
    ],
)
def test_a_silent_log_leaves_the_exit_status(status: int | None, words: str) -> None:
    assert words in failure_reason("0.00.0 W llama_context: n_ctx_seq is too large\n", status)


def test_a_named_cause_counts_more_than_the_signal() -> None:
    assert failure_reason("CUDA error: out of memory\nggml_abort", -6) == GPU


def test_the_last_error_is_quoted_when_no_cause_is_known() -> None:
    log = "0.1 E first: one\n0.2 E srv load_model: something new happened\n0.3 I bye\n"
    reason = 'It ended with status 1; its last error: "srv load_model: something new happened".'
    assert failure_reason(log, 1) == reason


@pytest.mark.parametrize(
    "line",
    [
        "ggml_cuda_host_malloc: failed to allocate 1024.00 MiB of pinned memory: out of memory",
        "warning: failed to mlock 1024-byte buffer: Cannot allocate memory",
        "common_fit_params: encountered an error while trying to fit params to free device memory",
    ],
)
def test_a_line_after_which_servers_go_on_is_no_cause(line: str) -> None:
    assert failure_reason(line, 1) == "It ended with status 1 and its log names no error."


def test_a_reason_fits_its_column_however_long_the_log_s_line_is() -> None:
    long = "x" * 5000
    for line in (f"error: invalid argument: --{long}", f"0.1 E {long}"):
        assert len(failure_reason(line, 1)) <= 500


def test_the_engine_answers_with_the_same_reason() -> None:
    assert engine("llama.cpp").failure_reason("CUDA error: out of memory", 1) == GPU
