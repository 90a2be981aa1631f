"""Why a llama-server ended, read from the end of its log. Pure.

The texts are llama.cpp's own, seen in builds b10068 and b11434 and in the built-in runner.
"""

import re
import signal
from collections.abc import Callable

LOWER = "lower -ngl or -c"
MOST_QUOTED = 200
# Lines that hold words of a failure though the server goes on after them.
_HARMLESS = re.compile(r"pinned memory|mlock|fit_params")

Say = Callable[[re.Match[str]], str]


def _text(sentence: str) -> Say:
    return lambda found: sentence.format(*found.groups())


# The first pattern that any line has wins: causes stand before the lines that follow from them.
_CAUSES: tuple[tuple[re.Pattern[str], Say], ...] = tuple(
    (re.compile(pattern), _text(sentence))
    for pattern, sentence in (
        (
            r"(?:CUDA|HIP|ROCm) error.*out of memory|(?:cuda|hip)Malloc failed: out of memory"
            r"|OutOfDeviceMemory|ErrorOutOfMemory|CommandBuffer.*OutOfMemory"
            r"|failed to allocate (?:CUDA|ROCm|Vulkan|Metal|MTL|SYCL)\w* buffer"
            r"|(?:cuda|CUDA|vulkan|Vulkan|Metal|ROCm)\w*.*out of memory"
            r"|unable to allocate (?:CUDA|ROCm|Vulkan|Metal|SYCL)\w* buffer"
            r"|ggml_vulkan: (?:Device|Host) memory allocation .*failed",
            f"The GPU ran out of memory: {LOWER}.",
        ),
        (
            r"insufficient memory \(attempted to allocate ([\d.]+) MB\)",
            f"The host ran out of memory (it asked for {{0}} MB): {LOWER}.",
        ),
        (
            r"std::bad_alloc|Cannot allocate memory|failed to allocate buffer|[Oo]ut of memory",
            f"The host ran out of memory: {LOWER}.",
        ),
        (
            r"couldn't bind HTTP server socket, hostname: (\S+), port: (\d+)",
            "Port {1} of {0} is in use by another program: it is tried again with another port.",
        ),
        (
            r"error while loading shared libraries: ([^:\s]+)",
            "llama-server cannot start: the library {0} is missing on this host.",
        ),
        (
            r"failed to open GGUF file '(.*)' \(No such file or directory\)",
            "The model file {0} does not exist on this host.",
        ),
        (
            r"failed to open GGUF file '(.*)' \((.+?)\)",
            "The model file {0} cannot be opened ({1}).",
        ),
        (
            r"invalid magic characters|failed to read magic",
            "The model file is not a GGUF file: register another file.",
        ),
        (
            r"not within the file bounds|model is corrupted or incomplete",
            "The model file is cut off or damaged: fetch it again.",
        ),
        (
            r"unknown model architecture: '(.+?)'",
            "This llama.cpp does not know the architecture {0}: a newer one is needed.",
        ),
        (
            r"check_tensor_dims: tensor '(.+?)' not found|missing tensor '(.+?)'",
            "The model file lacks tensors that a model needs (it may be a vocabulary or a part).",
        ),
        (
            r"GGUFv1 is no longer supported|unsupported GGUF version|failed to read key-value",
            "The model file is of a GGUF version that this llama.cpp cannot read.",
        ),
        (
            r"V cache quantization requires flash_attn|quantized V cache.*flash",
            "A quantized V cache needs flash attention: add -fa on, or drop --cache-type-v.",
        ),
        (
            r"error: invalid argument: (\S+)",
            "llama-server does not know the argument {0}: take it out of the preset.",
        ),
        (
            r"error while handling argument \"(.+?)\"",
            "The value of the argument {0} is not one that llama-server takes.",
        ),
        (
            r"expected value for argument",
            "The last argument of the preset lacks its value.",
        ),
        (
            r"illegal instruction|Illegal instruction|AMX is not ready",
            "This llama-server needs instructions that the processor lacks: use another build.",
        ),
    )
)
_ERROR_LINE = re.compile(r"^[\d.]+ E (.+)$|^(?:llama_server: )?error:? (.+)$", re.IGNORECASE)
_SIGNALS = {
    signal.SIGILL: "This llama-server needs instructions that the processor lacks (SIGILL): "
    "use another build.",
    signal.SIGKILL: "It was killed without a word in its log; most likely the host ran out of "
    f"memory: {LOWER}.",
    signal.SIGSEGV: "llama-server crashed (SIGSEGV): try another build or other arguments.",
    signal.SIGABRT: "llama-server gave up (SIGABRT): the end of its log may say why.",
    signal.SIGBUS: "Reading the model file failed (SIGBUS): the disk may be full, gone or broken.",
}


def failure_reason(log_tail: str, exit_status: int | None) -> str:
    """One sentence: the cause its log names, else what its exit status says (-9: by signal 9).

    `exit_status` is None while the process lives, as when a load takes too long.
    """
    lines = [line for line in log_tail.splitlines() if not _HARMLESS.search(line)]
    named = _named_cause(lines)
    if named:
        return named
    number = _signal_number(exit_status)
    if number in _SIGNALS:
        return _SIGNALS[signal.Signals(number)]
    return _ending(number, exit_status) + _last_error(lines)


def _named_cause(lines: list[str]) -> str | None:
    for pattern, say in _CAUSES:
        for line in reversed(lines):
            found = pattern.search(line)
            if found:
                return say(found)[: MOST_QUOTED * 2]
    return None


def _signal_number(exit_status: int | None) -> int:
    """The signal that ended it, or 0. Shells and containers say 128 + n for signal n."""
    if exit_status is None:
        return 0
    if exit_status < 0:
        return -exit_status
    return exit_status - 128 if 128 < exit_status < 160 else 0


def _ending(number: int, exit_status: int | None) -> str:
    if number:
        return f"It was ended by signal {number}"
    if exit_status is None:
        return "It does not answer"
    return f"It ended with status {exit_status}"


def _last_error(lines: list[str]) -> str:
    for line in reversed(lines):
        found = _ERROR_LINE.match(line.strip())
        if found:
            return f'; its last error: "{(found[1] or found[2])[:MOST_QUOTED].strip()}".'
    return " and its log names no error."
