"""What of a preset's arguments and environment may reach `sglang.launch_server`. Pure.

The flags are those of 0.4.8 to 0.5.11; see `vllm_flags` for what is left to a preset's author.
"""

import re
from collections.abc import Mapping

from lanes.engines.argparse_flags import owned
from lanes.engines.vllm_flags import tuned

_DOWNLOADS = "a server loads registered files and downloads nothing"
_FILES = "files of the host are neither served nor written through the server"
_HOSTS = "other hosts' devices belong to other lanes"
_LOG = "the log belongs to SlotServe and keeps prompts out"
_TELLS = "what callers ask stays on this host"
OWNED = owned(
    ("the model is the preset's own field", "--model-path --model"),
    (
        "SlotServe chooses where the server listens",
        "--host --port --nccl-port --fastapi-root-path --grpc-mode --smg-grpc-mode --grpc-port "
        "--use-ray",
    ),
    ("callers use the preset's name and aliases", "--served-model-name"),
    ("each server gets a key of its own that only the gateway knows", "--api-key --admin-api-key"),
    ("arguments stand in the preset, not in a file", "--config"),
    ("a lane's cards are SlotServe's choice", "--base-gpu-id --gpu-id-step"),
    (_DOWNLOADS, "--download-dir --model-checksum"),
    ("the model file stays as it is", "--delete-ckpt-after-loading"),
    ("tools would let callers act on the host", "--tool-server"),
    ("callers could run code in the server", "--enable-custom-logit-processor"),
    (
        _FILES,
        "--file-storage-path --crash-dump-folder --export-metrics-to-file "
        "--export-metrics-to-file-dir --debug-tensor-dump-output-folder --modelopt-export-path "
        "--modelopt-checkpoint-save-path --msprobe-dump-config",
    ),
    (
        _LOG,
        "--log-level --log-level-http --log-requests --log-requests-level --log-requests-format "
        "--log-requests-target --decode-log-interval",
    ),
    (_TELLS, "--enable-trace --otlp-traces-endpoint --kv-events-config"),
    (_HOSTS, "--dist-init-addr --nccl-init-addr --nnodes --node-rank --encoder-urls"),
    ("it prints something and ends", "--help -h --version"),
    families=(
        ("HTTPS ends at the gateway", r"--ssl-.*|--enable-ssl-.*"),
        (_HOSTS, r"--disaggregation-.*|--remote-instance-.*|--encoder-.*"),
        ("it prints something and ends", r"-h.*"),
    ),
)
_SGLANG = re.compile(
    r"SGL(ANG)?_(?!.*(URL|PATH|DIR|HOST|PORT|TOKEN|KEY|LOG|PICKLE))"
    r"(USE|ENABLE|DISABLE|CUTLASS|MOE|TORCH|OPT|JIT|NUMA|CHUNKED|SET)_\w+"
)


def allowed_variables(given: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The variables that may reach the server, and a note for each that may not."""
    return tuned(given, _SGLANG)
