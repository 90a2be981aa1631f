"""The command line of `sglang.launch_server` (0.5): its flags, and the file they may stand in."""

import argparse
from pathlib import Path

SWITCHES = """
--skip-tokenizer-init --trust-remote-code --is-embedding --enable-multimodal --grpc-mode
--skip-server-warmup --checkpoint-engine-wait-weights-before-ready --enable-fp32-lm-head
--quantize-and-serve --enable-dynamic-chunking --enable-priority-scheduling
--disable-hybrid-swa-memory --enable-prefill-delayer --incremental-streaming-output
--constrained-json-disable-any-whitespace --sleep-on-idle --log-requests --show-time-cost
--enable-metrics --enable-mfu-metrics --enable-metrics-for-all-schedulers
--collect-tokens-histogram --enable-request-time-stats-logging --enable-trace
--export-metrics-to-file --enable-cache-report --enable-lora --enable-lora-overlap-loading
--disable-radix-cache --disable-cuda-graph --disable-overlap-schedule --enable-mixed-chunk
--enable-dp-attention --enable-torch-compile --enable-p2p-check --triton-attention-reduce-in-fp32
--delete-ckpt-after-loading --enable-memory-saver --allow-auto-truncate
--enable-custom-logit-processor --disable-shared-experts-fusion --disable-fast-image-processor
--enable-return-hidden-states --enable-deterministic-inference --encoder-only --language-only
--weight-loader-disable-mmap --enable-hierarchical-cache
"""
VALUES = """
--tokenizer-path --tokenizer-mode --tokenizer-worker-num --load-format
--model-loader-extra-config --context-length --revision --model-impl --fastapi-root-path --warmups
--dtype --quantization --quantization-param-path --kv-cache-dtype --modelopt-quant
--modelopt-checkpoint-restore-path --modelopt-checkpoint-save-path --modelopt-export-path
--mem-fraction-static --max-running-requests --max-queued-requests --max-total-tokens
--chunked-prefill-size --prefill-max-requests --max-prefill-tokens --schedule-policy
--schedule-conservativeness --page-size --swa-full-tokens-ratio --radix-eviction-policy --device
--pp-max-micro-batch-size --stream-interval --random-seed --watchdog-timeout --dist-timeout
--download-dir --model-checksum --base-gpu-id --gpu-id-step --log-level --log-level-http
--log-requests-level --log-requests-format --crash-dump-folder --decode-log-interval
--kv-events-config --otlp-traces-endpoint --export-metrics-to-file-dir --api-key --admin-api-key
--served-model-name --weight-version --chat-template --hf-chat-template-name
--completion-template --file-storage-path --reasoning-parser --tool-call-parser --tool-server
--sampling-defaults --load-balance-method --nnodes --node-rank --json-model-override-args
--preferred-sampling-params --max-lora-rank --max-loras-per-batch --max-loaded-loras
--lora-backend --attention-backend --sampling-backend --grammar-backend --speculative-algorithm
--speculative-draft-model-path --speculative-num-steps --moe-runner-backend --moe-a2a-backend
--hicache-ratio --hicache-size --cuda-graph-max-bs --debug-tensor-dump-output-folder
--disaggregation-mode --disaggregation-transfer-backend --disaggregation-bootstrap-port
--remote-instance-weight-loader-seed-instance-ip --mm-max-concurrent-calls --config
--decrypted-config-file --forward-hooks --msprobe-dump-config --nccl-port
"""
LISTS = """
--log-requests-target --uvicorn-access-log-exclude-prefixes --lora-paths --lora-target-modules
--cuda-graph-bs --custom-weight-loader --encoder-urls --prompt-tokens-buckets
"""
PAIRS = (
    ("--tensor-parallel-size", "--tp-size"),
    ("--pipeline-parallel-size", "--pp-size"),
    ("--data-parallel-size", "--dp-size"),
    ("--expert-parallel-size", "--ep-size"),
)


def parser() -> argparse.ArgumentParser:
    """argparse's own parser, abbreviations and all (`--tp` is one)."""
    made = argparse.ArgumentParser(prog="launch_server.py")
    made.add_argument("--model-path", "--model", required=True)
    made.add_argument("--host", default="127.0.0.1")
    made.add_argument("--port", type=int, default=30000)
    made.add_argument("--dist-init-addr", "--nccl-init-addr")
    for names in PAIRS:
        made.add_argument(*names, type=int, default=1)
    for name in SWITCHES.split():
        made.add_argument(name, action="store_true")
    for name in VALUES.split():
        made.add_argument(name)
    for name in LISTS.split():
        made.add_argument(name, nargs="+")
    return made


def parse(words: list[str]) -> argparse.Namespace:
    """The file's arguments first, so that the command line counts more."""
    if "--config" not in words:
        return parser().parse_args(words)
    at = words.index("--config")
    file = Path(words[at + 1])
    if file.suffix not in (".yaml", ".yml"):
        raise ValueError(f"Config file must be YAML format, got: {file.suffix}")
    told = []
    for line in file.read_text().splitlines():
        name, _, value = line.partition(":")
        told += [f"--{name.strip()}", value.strip().strip('"')]
    return parser().parse_args([*told, *words[:at], *words[at + 2 :]])
