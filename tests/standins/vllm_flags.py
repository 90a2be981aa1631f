"""The command line of `vllm serve` (0.10 to 0.22): its flags, and how its parser reads them."""

import argparse
import json
import re
from typing import Any

SWITCHES = """
--enable-auto-tool-choice --enable-force-include-usage --enable-prompt-tokens-details
--enable-request-id-headers --enable-server-load-tracking --enable-tokenizer-info-endpoint
--enable-log-outputs --enable-log-deltas --enable-ssl-refresh --disable-fastapi-docs
--disable-uvicorn-access-log --disable-frontend-multiprocessing --return-tokens-as-token-ids
--trust-request-chat-template --exclude-tools-when-tool-choice-none --log-error-stack
--tokens-only --allow-credentials --headless --enable-log-requests --disable-log-stats
--trust-remote-code --enforce-eager --enable-prompt-embeds --skip-tokenizer-init
--disable-sliding-window --disable-cascade-attn --enable-sleep-mode --use-tqdm-on-load
--disable-custom-all-reduce --enable-dbo --enable-eplb --enable-expert-parallel
--ray-workers-use-nsight --data-parallel-hybrid-lb --data-parallel-external-lb
--enable-prefix-caching --calculate-kv-scales --interleave-mm-strings --enable-lora
--enable-lora-bias --fully-sharded-loras --enable-tower-connector-lora --enable-chunked-prefill
--disable-chunked-mm-input --disable-hybrid-kv-cache-manager --async-scheduling
--enable-mfu-metrics --enable-layerwise-nvtx-tracing
"""
VALUES = """
--host --uds --uvicorn-log-level --chat-template --chat-template-content-format --response-role
--ssl-keyfile --ssl-certfile --ssl-ca-certs --ssl-cert-reqs --ssl-ciphers --root-path
--tool-call-parser --tool-parser-plugin --tool-server --log-config-file --max-log-len
--h11-max-incomplete-event-size --h11-max-header-count --api-server-count --config --runner
--convert --task --tokenizer --tokenizer-mode --dtype --seed --hf-config-path
--allowed-local-media-path --revision --code-revision --tokenizer-revision --quantization
--max-logprobs --logprobs-mode --config-format --hf-token --hf-overrides --generation-config
--override-generation-config --model-impl --load-format --download-dir --pt-load-map-location
--safetensors-load-strategy --reasoning-parser --reasoning-parser-plugin
--distributed-executor-backend --nnodes --node-rank --master-addr --master-port
--data-parallel-rank --data-parallel-start-rank --data-parallel-size-local
--data-parallel-address --data-parallel-rpc-port --data-parallel-backend --all2all-backend
--eplb-config --max-parallel-loading-workers --worker-cls --worker-extension-cls --block-size
--gpu-memory-utilization --kv-cache-memory-bytes --swap-space --kv-cache-dtype
--num-gpu-blocks-override --prefix-caching-hash-algo --cpu-offload-gb --kv-offloading-size
--mm-processor-kwargs --mm-processor-cache-gb --mm-encoder-tp-mode --max-loras --max-lora-rank
--lora-dtype --max-cpu-loras --otlp-traces-endpoint --max-num-batched-tokens --max-num-seqs
--max-num-partial-prefills --max-long-partial-prefills --long-prefill-token-threshold
--scheduling-policy --scheduler-cls --stream-interval --kv-transfer-config --kv-events-config
--additional-config --structured-outputs-config --speculative-config --compilation-config
--optimization-level --attention-backend
"""
LISTS = """
--served-model-name --allowed-origins --allowed-methods --allowed-headers --api-key --lora-modules
--allowed-media-domains --cudagraph-capture-sizes --collect-detailed-traces --logits-processors
--ignore-patterns
"""
SHORT = {
    "--tensor-parallel-size": "-tp",
    "--pipeline-parallel-size": "-pp",
    "--data-parallel-size": "-dp",
    "--quantization": "-q",
    "--node-rank": "-r",
    "--nnodes": "-n",
    "--data-parallel-rank": "-dpn",
    "--data-parallel-start-rank": "-dpr",
    "--data-parallel-size-local": "-dpl",
    "--data-parallel-address": "-dpa",
    "--data-parallel-rpc-port": "-dpp",
    "--data-parallel-backend": "-dpb",
    "--data-parallel-hybrid-lb": "-dph",
    "--data-parallel-external-lb": "-dpe",
    "--api-server-count": "-asc",
    "--compilation-config": "-cc",
}
_NAME = re.compile(r"(?<=--)[^.]*")


def parser() -> argparse.ArgumentParser:
    """argparse's own parser, abbreviations and all, with vLLM's positional model."""
    made = argparse.ArgumentParser(prog="vllm serve")
    made.add_argument("model_tag", nargs="?")
    made.add_argument("--model", default="Qwen/Qwen3-0.6B")
    made.add_argument("--port", type=int, default=8000)
    made.add_argument("--max-model-len", type=_length)
    for name in ("--tensor-parallel-size", "--pipeline-parallel-size", "--data-parallel-size"):
        made.add_argument(name, SHORT[name], type=int, default=1)
    made.add_argument("--middleware", action="append", default=[])
    for name in SWITCHES.split():
        _add(made, name, action=argparse.BooleanOptionalAction)
    for name in VALUES.split():
        _add(made, name)
    for name in LISTS.split():
        _add(made, name, nargs="+" if name != "--api-key" else "*")
    return made


def parse(words: list[str]) -> argparse.Namespace:
    """What vLLM makes of these words: `_` for `-`, `--json.member value`, `-O3`."""
    return parser().parse_args(list(_joined(_plain(words))))


def _add(made: argparse.ArgumentParser, name: str, **how: Any) -> None:
    made.add_argument(*[SHORT[name]] if name in SHORT else [], name, **how)


def _plain(words: list[str]) -> list[str]:
    plain = []
    for word in words:
        if word.startswith("--"):
            name, is_joined, value = word.partition("=")
            dashed = _NAME.sub(lambda found: found[0].replace("_", "-"), name, count=1)
            plain.append(dashed + is_joined + value)
        elif word.startswith("-O") and word != "-O":
            plain += ["--optimization-level", word[2:].lstrip("=")]
        else:
            plain.append(word)
    return plain


def _joined(words: list[str]) -> list[str]:
    """Members of JSON as one argument each."""
    rest, members = [], dict[str, dict[str, str]]()
    words = list(words)
    while words:
        word = words.pop(0)
        name, is_joined, value = word.partition("=")
        if not word.startswith("--") or "." not in name:
            rest.append(word)
            continue
        if not is_joined:
            value = words.pop(0) if words else ""
        owner, _, member = name.partition(".")
        members.setdefault(owner, {})[member] = value
    return rest + [word for name, told in members.items() for word in (name, json.dumps(told))]


def _length(text: str) -> int:
    factor = {"k": 10**3, "K": 2**10, "m": 10**6, "M": 2**20}.get(text[-1:], 1)
    return int(text[:-1]) * factor if factor > 1 else int(text)
