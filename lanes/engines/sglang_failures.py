"""What SGLang writes when it fails. After a child's error it kills itself: exit status -9."""

import re

from lanes.failures.causes import FailureWords, Kind, pattern

SGLANG = FailureWords(
    program="SGLang",
    gpu_memory="Lower --mem-fraction-static, --context-length or --max-running-requests.",
    host_memory="Free memory on the host, or lower --hicache-ratio where it is used.",
    error_lines=re.compile(r"^(?:\[[^\]]+\] )?(\w*Error: .+)$"),
    patterns=(
        pattern(
            Kind.GPU_MEMORY,
            r"Not enough memory\. Please try to increase --mem-fraction-static",
            "The model leaves no GPU memory for its cache.",
            "Raise --mem-fraction-static, lower --context-length, or take a quantized model.",
        ),
        pattern(
            Kind.GPU_MEMORY,
            r"Capture cuda ?graph failed: .*out of memory|Capture CUDA graph failed: .*out of mem",
            "The GPU ran out of memory while CUDA graphs were captured.",
            "Lower --cuda-graph-max-bs or --mem-fraction-static, or add --disable-cuda-graph.",
        ),
        pattern(
            Kind.GPU_MEMORY,
            r"The memory capacity is unbalanced",
            "Another program holds memory of one of the lane's GPUs.",
            "Free the cards: nvidia-smi shows who holds them.",
        ),
        pattern(
            Kind.PROGRAM,
            r"No such file or directory: '(ninja|nvcc|gcc|g\+\+)'",
            "SGLang cannot compile its kernels: {0} is not on its PATH.",
            "Install {0} on the host, or take SGLang's container image.",
        ),
    ),
    late_patterns=(
        pattern(
            Kind.CRASH,
            r"Received sigquit from a child process|Scheduler hit an exception",
            "A process of SGLang's failed and said no cause.",
        ),
    ),
)
