"""Single lines of failing vLLM, SGLang and ComfyUI servers, and what is to be said of them."""

from lanes.engines.comfyui_failures import COMFYUI
from lanes.engines.sglang_failures import SGLANG
from lanes.engines.vllm_failures import VLLM
from lanes.failures.causes import Kind

ENGINE_LINES = [
    (
        VLLM,
        Kind.GPU_MEMORY,
        "(EngineCore_DP0 pid=17374) ERROR 09-28 15:47:24 [core.py:718] ValueError: Free memory on "
        "device (3.22/4.0 GiB) on startup is less than desired GPU memory utilization (0.9, 3.6 "
        "GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
        "The GPU has 3.22 of 4.0 GiB free; vLLM wants 3.6 GiB (a share of 0.9).",
        "--gpu-memory-utilization",
    ),
    (
        VLLM,
        Kind.GPU_MEMORY,
        "ValueError: Free memory on device cuda:0 (84.11/287.98 GiB) on startup is less than "
        "desired GPU memory utilization (0.95, 273.59 GiB).",
        "The GPU has 84.11 of 287.98 GiB free; vLLM wants 273.59 GiB (a share of 0.95).",
        "--gpu-memory-utilization",
    ),
    (
        VLLM,
        Kind.GPU_MEMORY,
        "(EngineCore pid=110) ERROR 08-28 07:39:28 [core.py:1346] ValueError: To serve at least "
        "one request with the model's max seq len (40960), (4.38 GiB KV cache is needed, which is "
        "larger than the available KV cache memory (1.0 GiB). Based on the available memory, the "
        "estimated maximum model length is 9344. Try increasing `gpu_memory_utilization` or "
        "decreasing `max_model_len` when initializing the engine.",
        "The cache for 40960 tokens needs 4.38 GiB, and 1.0 GiB of GPU memory are left for it.",
        "Lower --max-model-len to 9344 or less",
    ),
    (
        VLLM,
        Kind.GPU_MEMORY,
        "ValueError: To serve at least one request with the models's max seq len (12288), 1.69 GiB "
        "KV cache is needed, which is larger than the available KV cache memory (0.87 GiB).",
        "The cache for 12288 tokens needs 1.69 GiB, and 0.87 GiB of GPU memory are left for it.",
        "--max-model-len",
    ),
    (
        VLLM,
        Kind.GPU_MEMORY,
        "ValueError: The model's max seq len (131072) is larger than the maximum number of tokens "
        "that can be stored in KV cache (24480). Try increasing `gpu_memory_utilization` or "
        "decreasing `max_model_len` when initializing the engine.",
        "The GPU's memory holds the cache of 24480 tokens, and 131072 are asked for.",
        "Lower --max-model-len to 24480 or less",
    ),
    (
        VLLM,
        Kind.GPU_MEMORY,
        "ERROR 11-18 18:07:28 engine.py:366] ValueError: No available memory for the cache blocks. "
        "Try increasing `gpu_memory_utilization` when initializing the engine.",
        "The model leaves no GPU memory for its cache.",
        "--gpu-memory-utilization",
    ),
    (
        VLLM,
        Kind.GPU_MEMORY,
        "(EngineCore_DP0 pid=9) ERROR 10-25 13:08:43 [core.py:708] torch.OutOfMemoryError: CUDA "
        "out of memory. Tried to allocate 1.75 GiB. GPU 0 has a total capacity of 23.64 GiB",
        "The GPU ran out of memory (it asked for 1.75 GiB more).",
        "--max-model-len",
    ),
    (
        VLLM,
        Kind.UNSUPPORTED,
        "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. "
        "Your Tesla T4 GPU has compute capability 7.5.",
        "The GPU cannot compute in bfloat16.",
        "--dtype half",
    ),
    (
        VLLM,
        Kind.DRIVER,
        "RuntimeError: Failed to infer device type, please set the environment variable "
        "`VLLM_LOGGING_LEVEL=DEBUG` to turn on verbose logging to help debug the issue.",
        "It finds no GPU.",
        "nvidia-smi",
    ),
    (
        VLLM,
        Kind.ARGUMENT,
        "vllm: error: unrecognized arguments: --no-such-flag",
        "vLLM does not know the argument --no-such-flag.",
        "Take it out of the preset.",
    ),
    (
        VLLM,
        Kind.ARGUMENT,
        "vllm serve: error: argument --dtype: invalid choice: 'int3' (choose from 'auto', 'half')",
        "vLLM does not take its arguments: argument --dtype.",
        "arguments",
    ),
    (
        VLLM,
        Kind.CRASH,
        "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. "
        "Failed core proc(s): {}",
        "vLLM's engine ended and said no cause.",
        "log",
    ),
    (
        SGLANG,
        Kind.GPU_MEMORY,
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current "
        "value: mem_fraction_static=0.85",
        "The model leaves no GPU memory for its cache.",
        "--mem-fraction-static",
    ),
    (
        SGLANG,
        Kind.GPU_MEMORY,
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 1.75 GiB.",
        "The GPU ran out of memory (it asked for 1.75 GiB more).",
        "--mem-fraction-static",
    ),
    (
        SGLANG,
        Kind.GPU_MEMORY,
        "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 2.00 MiB.",
        "The GPU ran out of memory while CUDA graphs were captured.",
        "--disable-cuda-graph",
    ),
    (
        SGLANG,
        Kind.PROGRAM,
        "FileNotFoundError: [Errno 2] No such file or directory: 'ninja'",
        "SGLang cannot compile its kernels: ninja is not on its PATH.",
        "Install ninja",
    ),
    (
        SGLANG,
        Kind.PORT_TAKEN,
        "zmq.error.ZMQError: Address already in use (addr='tcp://127.0.0.1:29236')",
        "Its port is in use by another program.",
        "another port",
    ),
    (
        SGLANG,
        Kind.ARGUMENT,
        "launch_server.py: error: unrecognized arguments: --nope",
        "SGLang does not know the argument --nope.",
        "Take it out of the preset.",
    ),
    (
        COMFYUI,
        Kind.GPU_MEMORY,
        "torch.OutOfMemoryError: Allocation on device",
        "The GPU ran out of memory.",
        "--lowvram",
    ),
    (
        COMFYUI,
        Kind.DRIVER,
        "RuntimeError: Found no NVIDIA driver on your system.",
        "The GPU's driver is not there.",
        "nvidia-smi",
    ),
    (
        COMFYUI,
        Kind.DRIVER,
        "AssertionError: Torch not compiled with CUDA enabled",
        "It finds no GPU.",
        "nvidia-smi",
    ),
]
