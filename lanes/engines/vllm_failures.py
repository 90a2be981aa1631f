"""What vLLM writes when it fails. Its root cause stands above what its API server says."""

import re

from lanes.failures.causes import FailureWords, Kind, pattern

VLLM = FailureWords(
    program="vLLM",
    gpu_memory="Lower --max-model-len or --gpu-memory-utilization, or take a quantized model.",
    host_memory="Lower --swap-space or --cpu-offload-gb, or free memory on the host.",
    error_lines=re.compile(r"^(?:\(\w+ pid=\d+\) )?(?:ERROR \S+ \S+ \[\S+?\] )?(\w*Error: .+)$"),
    patterns=(
        pattern(
            Kind.GPU_MEMORY,
            r"Free memory on device ?\S* \(([\d.]+)/([\d.]+) GiB\).* \(([\d.]+), ([\d.]+) GiB\)",
            "The GPU has {0} of {1} GiB free; vLLM wants {3} GiB (a share of {2}).",
            "Free the card (nvidia-smi shows who holds it), or lower --gpu-memory-utilization.",
        ),
        pattern(
            Kind.GPU_MEMORY,
            r"max seq len \((\d+)\).*?([\d.]+) GiB KV cache is needed.*?\(([\d.]+) GiB\)"
            r".*estimated maximum model length is (\d+)",
            "The cache for {0} tokens needs {1} GiB, and {2} GiB of GPU memory are left for it.",
            "Lower --max-model-len to {3} or less, or raise --gpu-memory-utilization.",
        ),
        pattern(
            Kind.GPU_MEMORY,
            r"max seq len \((\d+)\).*?([\d.]+) GiB KV cache is needed.*?\(([\d.]+) GiB\)",
            "The cache for {0} tokens needs {1} GiB, and {2} GiB of GPU memory are left for it.",
            "Lower --max-model-len, or raise --gpu-memory-utilization.",
        ),
        pattern(
            Kind.GPU_MEMORY,
            r"max seq len \((\d+)\) is larger than the maximum number of tokens.*\((\d+)\)",
            "The GPU's memory holds the cache of {1} tokens, and {0} are asked for.",
            "Lower --max-model-len to {1} or less, or raise --gpu-memory-utilization.",
        ),
        pattern(
            Kind.GPU_MEMORY,
            r"No available memory for the cache blocks",
            "The model leaves no GPU memory for its cache.",
            "Raise --gpu-memory-utilization, lower --max-model-len, or take a quantized model.",
        ),
        pattern(
            Kind.ARGUMENT,
            r"User-specified max_model_len \((\d+)\) is greater than the derived max_model_len",
            "--max-model-len {0} is more than the model was made for.",
            "Lower --max-model-len to what its config.json says.",
        ),
        pattern(
            Kind.ARGUMENT,
            r"World size \((\d+)\) is larger than the number of available GPUs \((\d+)\)"
            r"|tensor parallel size \((\d+)\) cannot be larger than the number of available GPUs",
            "It is to use more GPUs than the lane has.",
            "Set --tensor-parallel-size to the number of the lane's GPUs.",
        ),
        pattern(
            Kind.ARGUMENT,
            r"Total number of attention heads \((\d+)\) must be divisible by tensor parallel size "
            r"\((\d+)\)",
            "The model's {0} attention heads cannot be shared among {1} GPUs.",
            "Choose a --tensor-parallel-size that divides {0}.",
        ),
        pattern(
            Kind.UNSUPPORTED,
            r"Bfloat16 is only supported on GPUs with compute capability of at least ([\d.]+)",
            "The GPU cannot compute in bfloat16.",
            "Add --dtype half to the preset.",
        ),
    ),
    late_patterns=(
        pattern(
            Kind.CRASH,
            r"Engine core initialization failed|Engine process failed to start"
            r"|EngineCore_?\S* died unexpectedly|EngineDeadError",
            "vLLM's engine ended and said no cause.",
        ),
    ),
)
