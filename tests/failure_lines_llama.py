"""Single lines of a failing llama-server, as they were seen, and what is to be said of them."""

from lanes.failures.causes import Kind

LLAMA_LINES = [
    (
        Kind.GPU_MEMORY,
        "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 9000.00 MiB on device 0: "
        "cudaMalloc failed: out of memory",
        "The GPU ran out of memory.",
    ),
    (
        Kind.GPU_MEMORY,
        "0.1 E alloc_tensor_range: failed to allocate CUDA0 buffer of size 22593124608",
        "The GPU ran out of memory.",
    ),
    (
        Kind.GPU_MEMORY,
        "llama_model_load: error loading model: unable to allocate ROCm0 buffer",
        "The GPU ran out of memory.",
    ),
    (Kind.GPU_MEMORY, "CUDA error: out of memory", "The GPU ran out of memory."),
    (Kind.GPU_MEMORY, "ROCm error: out of memory", "The GPU ran out of memory."),
    (
        Kind.GPU_MEMORY,
        "ggml_vulkan: Device memory allocation of size 1058982400 failed.",
        "The GPU ran out of memory.",
    ),
    (
        Kind.GPU_MEMORY,
        "ggml_vulkan: vk::Device::allocateMemory: ErrorOutOfDeviceMemory",
        "The GPU ran out of memory.",
    ),
    (
        Kind.GPU_MEMORY,
        "error: Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)",
        "The GPU ran out of memory.",
    ),
    (
        Kind.HOST_MEMORY,
        "0.18.2 E ggml_aligned_malloc: insufficient memory (attempted to allocate 2197271.25 MB)",
        "The host ran out of memory (it asked for 2197271.25 MB more).",
    ),
    (
        Kind.HOST_MEMORY,
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "The host ran out of memory.",
    ),
    (
        Kind.HOST_MEMORY,
        "0.1 E llama_mmap: mmap failed: Cannot allocate memory",
        "The host ran out of memory.",
    ),
    (
        Kind.HOST_MEMORY,
        "failed to initialize the context: failed to allocate buffer for kv cache",
        "The host ran out of memory.",
    ),
    (
        Kind.FILE_MISSING,
        "0.1 E gguf_init_from_file: failed to open GGUF file '/m/a b.gguf' "
        "(No such file or directory)",
        "The model file a b.gguf does not exist on this host.",
    ),
    (
        Kind.FILE_MISSING,
        "0.1 E gguf_init_from_file: failed to open GGUF file '/m/x.gguf' (Permission denied)",
        "The model file x.gguf cannot be opened (Permission denied).",
    ),
    (
        Kind.FILE_BROKEN,
        "0.1 E gguf_init_from_reader: invalid magic characters: 'vers', expected 'GGUF'",
        "The model file is not a GGUF file.",
    ),
    (
        Kind.FILE_BROKEN,
        "0.1 E gguf_init_from_reader: failed to read magic",
        "The model file is not a GGUF file.",
    ),
    (
        Kind.FILE_BROKEN,
        "0.1 E llama_model_load: error loading model: tensor 'blk.16.ffn_down.weight' data is not "
        "within the file bounds, model is corrupted or incomplete",
        "The model file is cut off or damaged.",
    ),
    (
        Kind.UNSUPPORTED,
        "error loading model: unknown model architecture: 'llama9'",
        "This llama.cpp does not know the architecture llama9.",
    ),
    (
        Kind.FILE_BROKEN,
        "error loading model: check_tensor_dims: tensor 'token_embd.weight' not found",
        "The model file lacks tensors that a model needs (it may be a vocabulary or a part).",
    ),
    (
        Kind.ARGUMENT,
        "error: invalid argument: --no-mmap",
        "llama-server does not know the argument --no-mmap.",
    ),
    (
        Kind.ARGUMENT,
        'error while handling argument "-c": stoi',
        "The value of the argument -c is not one that llama-server takes.",
    ),
    (
        Kind.DRIVER,
        'error while handling argument "--device": invalid device: CUDA0',
        "llama-server finds no device CUDA0.",
    ),
    (
        Kind.ARGUMENT,
        "error: expected value for argument",
        "The last argument of the preset lacks its value.",
    ),
    (
        Kind.ARGUMENT,
        "llama_init_from_model: V cache quantization requires flash_attn",
        "A quantized V cache needs flash attention.",
    ),
    (
        Kind.PORT_TAKEN,
        "0.1 E srv start: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 18131",
        "Port 18131 of 127.0.0.1 is in use by another program.",
    ),
    (
        Kind.PROGRAM,
        "llama-server: error while loading shared libraries: libcublas.so.12: cannot open shared "
        "object file: No such file or directory",
        "llama-server cannot start: the library libcublas.so.12 is missing on this host.",
    ),
    (
        Kind.INSTRUCTION,
        "AMX is not ready to be used!",
        "This llama-server needs instructions that the processor lacks.",
    ),
]
