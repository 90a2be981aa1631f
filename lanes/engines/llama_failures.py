"""What llama-server writes when it fails, in builds b10068 and b11434 and the built-in runner."""

import re

from lanes.failures.causes import NAME, FailureWords, Kind, pattern

LLAMA = FailureWords(
    program="llama-server",
    gpu_memory="Lower -ngl or -c.",
    host_memory="Lower -c, or raise -ngl where the GPU has room; --cache-ram counts, too.",
    # It goes on: without pinned memory, or on the processor where there is no GPU.
    harmless=re.compile(
        r"pinned memory|mlock|fit_params|ggml_\w+_init: failed to init|no usable GPU found"
    ),
    error_lines=re.compile(r"^[\d.]+ E (.+)$|^(?:llama_server: )?error:? (.+)$", re.IGNORECASE),
    patterns=(
        pattern(
            Kind.GPU_MEMORY,
            r"failed to allocate (?:CUDA|ROCm|Vulkan|Metal|MTL|SYCL)\w* buffer of size (\d+)"
            r"|unable to allocate (?:CUDA|ROCm|Vulkan|Metal|MTL|SYCL)\w* buffer"
            r"|ggml_vulkan: (?:Device|Host) memory allocation .*failed"
            r"|Insufficient Memory \(\d+:kIOGPU",
            "The GPU ran out of memory.",
        ),
        pattern(
            Kind.HOST_MEMORY,
            r"insufficient memory \(attempted to allocate ([\d.]+) MB\)",
            "The host ran out of memory (it asked for {0} MB more).",
        ),
        pattern(
            Kind.PORT_TAKEN,
            r"couldn't bind HTTP server socket, hostname: (\S+), port: (\d+)",
            "Port {1} of {0} is in use by another program.",
        ),
        pattern(
            Kind.FILE_MISSING,
            r"failed to open GGUF file '(.*)' \(No such file or directory\)",
            "The model file {0} does not exist on this host.",
        ),
        pattern(
            Kind.FILE_MISSING,
            r"failed to open GGUF file '(.*)' \((.+?)\)",
            "The model file {0} cannot be opened ({1}).",
            "Let the user that runs model servers read it.",
        ),
        pattern(
            Kind.FILE_BROKEN,
            r"invalid magic characters|failed to read magic",
            "The model file is not a GGUF file.",
            "Register another file, or fetch it again: it may be a git-lfs pointer.",
        ),
        pattern(
            Kind.FILE_BROKEN,
            r"not within the file bounds|model is corrupted or incomplete",
            "The model file is cut off or damaged.",
        ),
        pattern(
            Kind.UNSUPPORTED,
            r"unknown model architecture: '(.+?)'",
            "This llama.cpp does not know the architecture {0}.",
            "Install a newer llama.cpp.",
        ),
        pattern(
            Kind.FILE_BROKEN,
            r"check_tensor_dims: tensor '(.+?)' not found|missing tensor '(.+?)'",
            "The model file lacks tensors that a model needs (it may be a vocabulary or a part).",
            "Register the first part of the whole model.",
        ),
        pattern(
            Kind.UNSUPPORTED,
            r"GGUFv1 is no longer supported|unsupported GGUF version|failed to read key-value",
            "The model file is of a GGUF version that this llama.cpp cannot read.",
            "Convert or fetch it anew, or install a newer llama.cpp.",
        ),
        pattern(
            Kind.ARGUMENT,
            r"V cache quantization requires flash_attn|quantized V cache.*flash",
            "A quantized V cache needs flash attention.",
            "Add -fa on, or drop --cache-type-v.",
        ),
        pattern(
            Kind.ARGUMENT,
            rf"error: invalid argument: {NAME}",
            "llama-server does not know the argument {0}.",
            "Take it out of the preset: it may be of another version.",
        ),
        pattern(
            Kind.ARGUMENT,
            r"error: invalid argument: ",
            "llama-server does not know an argument of the preset.",
            "Take it out of the preset: the server's log names it.",
        ),
        pattern(
            Kind.DRIVER,
            r"error while handling argument \"(?:-dev|--device)\": invalid device: (\S+)",
            "llama-server finds no device {0}.",
        ),
        pattern(
            Kind.ARGUMENT,
            r"error while handling argument \"(.+?)\"",
            "The value of the argument {0} is not one that llama-server takes.",
        ),
        pattern(
            Kind.ARGUMENT,
            r"expected value for argument",
            "The last argument of the preset lacks its value.",
        ),
        pattern(
            Kind.INSTRUCTION,
            r"AMX is not ready",
            "This llama-server needs instructions that the processor lacks.",
        ),
    ),
    late_patterns=(
        pattern(
            Kind.HOST_MEMORY,
            r"failed to allocate buffer",
            "The host ran out of memory.",
        ),
    ),
)
