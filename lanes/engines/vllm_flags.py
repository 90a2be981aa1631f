"""What of a preset's arguments and environment may reach `vllm serve`. Pure.

The flags are those of 0.10 to 0.22. What a flag allows a preset's author, an administrator, to run
in the server (`--trust-remote-code`, parsers of tool calls) is left to them; what it lets callers,
other machines or the log see is not.
"""

import re
from collections.abc import Mapping

from lanes.engines.argparse_flags import owned
from wire.words import said

_DOWNLOADS = "a server loads registered files and downloads nothing"
_HOSTS = "other hosts' devices belong to other lanes"
_LOG = "the log belongs to SlotServe and keeps prompts out"
OWNED = owned(
    ("the model is the preset's own field", "--model --model-tag"),
    (
        "SlotServe chooses where the server listens",
        "--host --port --uds --root-path --grpc --tokens-only",
    ),
    ("callers use the preset's name and aliases", "--served-model-name"),
    ("each server gets a key of its own that only the gateway knows", "--api-key"),
    (
        "HTTPS ends at the gateway",
        "--ssl-keyfile --ssl-certfile --ssl-ca-certs --ssl-cert-reqs --ssl-ciphers "
        "--enable-ssl-refresh",
    ),
    ("arguments stand in the preset, not in a file", "--config"),
    ("it would run code on the way of each request", "--middleware"),
    (_DOWNLOADS, "--hf-token --download-dir --use-tqdm-on-load"),
    ("tools would let callers act on the host", "--tool-server"),
    (
        "files of the host are not served through the server",
        "--allowed-local-media-path",
    ),
    ("callers must not change what the next one gets", "--trust-request-chat-template"),
    (
        _LOG,
        "--enable-log-requests --enable-log-outputs --enable-log-deltas --log-config-file "
        "--uvicorn-log-level --log-error-stack --disable-log-requests",
    ),
    ("what callers ask stays on this host", "--otlp-traces-endpoint --collect-detailed-traces"),
    (
        _HOSTS,
        "--headless --nnodes -n --node-rank -r --master-addr --master-port --data-parallel-address "
        "-dpa --data-parallel-rpc-port -dpp --data-parallel-rank -dpn --data-parallel-start-rank "
        "-dpr --data-parallel-size-local -dpl --data-parallel-hybrid-lb -dph "
        "--data-parallel-external-lb -dpe --data-parallel-backend -dpb --data-parallel-multi-port "
        "--data-parallel-supervisor-port --kv-transfer-config --kv-events-config "
        "--ec-transfer-config --worker-extension-cls --weight-transfer-config",
    ),
    ("it prints something and ends", "--help -h --version -v"),
    families=(
        ("HTTPS ends at the gateway", r"--ssl-.*"),
        (_HOSTS, r"--dp-supervisor-.*"),
        ("it prints something and ends", r"-h.*"),
    ),
)
# Variables that tune a server without changing what it serves, loads, writes or runs on.
TUNING = re.compile(
    r"CUDA_(CACHE_DISABLE|CACHE_MAXSIZE|DEVICE_MAX_CONNECTIONS|DEVICE_ORDER|LAUNCH_BLOCKING)"
    r"|CUDA_(MODULE_LOADING|SCALE_LAUNCH_QUEUES)|NVIDIA_TF32_OVERRIDE"
    r"|GPU_MAX_HW_QUEUES|HSA_ENABLE_SDMA|HSA_OVERRIDE_GFX_VERSION"
    r"|OMP_(NUM_THREADS|PLACES|PROC_BIND|WAIT_POLICY)|MALLOC_ARENA_MAX|TZ|TOKENIZERS_PARALLELISM"
    r"|PYTORCH_(CUDA_|HIP_)?ALLOC_CONF|TORCH_(CUDA_ARCH_LIST|NCCL_\w+)|SAFETENSORS_FAST_GPU"
    r"|NCCL_(P2P_DISABLE|P2P_LEVEL|SHM_DISABLE|IB_DISABLE|CUMEM_ENABLE|NVLS_ENABLE|ALGO|PROTO)"
)
_VLLM = re.compile(
    r"VLLM_(ATTENTION_BACKEND|FLASH_ATTN_VERSION|USE_V1|ENABLE_V1_MULTIPROCESSING"
    r"|ENGINE_ITERATION_TIMEOUT_S|EXECUTE_MODEL_TIMEOUT_SECONDS|CPU_KVCACHE_SPACE"
    r"|CPU_OMP_THREADS_BIND|WORKER_MULTIPROC_METHOD|ALLOW_LONG_MAX_MODEL_LEN"
    r"|DISABLE_COMPILE_CACHE|SLEEP_WHEN_IDLE|MAX_N_SEQUENCES"
    r"|(USE|ENABLE|DISABLE)_(DEEP_GEMM|FLASHINFER|TRITON|CUDNN|MARLIN|AITER|CUDA_GRAPH)\w*"
    r"|(ROCM|MARLIN|MOE|FUSED_MOE|FLASHINFER|DEEP_GEMM|MXFP4|NVFP4|IMAGE|AUDIO|VIDEO)_"
    r"(?!.*(URL|PATH|DIR))\w+)"
)


def allowed_variables(given: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The variables that may reach the server, and a note for each that may not."""
    return tuned(given, _VLLM)


def tuned(given: Mapping[str, str], own: re.Pattern[str]) -> tuple[dict[str, str], list[str]]:
    """Of the variables those that tune PyTorch, or are an engine's own ones; notes for the rest."""
    kept = {
        name: text for name, text in given.items() if TUNING.fullmatch(name) or own.fullmatch(name)
    }
    return kept, [
        said("{name} was left out: it is not one that a preset may set.", name=name)
        for name in given
        if name not in kept
    ]
