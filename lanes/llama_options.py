"""llama-server's flags as fields of xllamacpp's CommonParams. Imports no Django."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import xllamacpp

from lanes.llama_values import (
    Reader,
    file_text,
    grammar,
    layers,
    margins,
    member,
    one_of,
    rope_scale,
    schema,
    seed,
    shares,
    template_values,
)

Params = Any  # xllamacpp.CommonParams: the package has no types
Apply = Callable[[Params, str], None]
EXPERTS = r"\.ffn_(up|down|gate|gate_up)_(ch|)exps"


@dataclass(frozen=True, slots=True)
class Option:
    """One flag: its spellings, whether a value follows, and what it does to the parameters."""

    names: str
    takes_value: bool
    apply: Apply


def _put(params: Params, path: str, value: object) -> None:
    *folders, field = path.split(".")
    for folder in folders:
        params = getattr(params, folder)
    setattr(params, field, value)


def _value(names: str, path: str, convert: Reader = str) -> Option:
    return Option(names, True, lambda params, text: _put(params, path, convert(text)))


def _switch(names: str, path: str, value: object = True) -> Option:
    return Option(names, False, lambda params, _: _put(params, path, value))


def _either(yes: str, no: str, path: str) -> tuple[Option, Option]:
    return _switch(yes, path, True), _switch(no, path, False)


def _sampler(names: str, field: str, convert: Reader, bit: str) -> Option:
    """A sampling default; its bit keeps the model's own metadata from overriding it."""
    flag = int(xllamacpp.common_params_sampling_config[f"COMMON_PARAMS_SAMPLING_CONFIG_{bit}"])

    def apply(params: Params, text: str) -> None:
        _put(params, f"sampling.{field}", convert(text))
        params.sampling.user_sampling_config |= flag

    return Option(names, True, apply)


def _rerank(params: Params, _: str) -> None:
    params.embedding = True
    params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_RANK


def _timeout(params: Params, text: str) -> None:
    params.timeout_read = params.timeout_write = int(text)


def _override(params: Params, text: str) -> None:
    params.tensor_buft_overrides = ",".join(filter(None, (params.tensor_buft_overrides, text)))


def _experts_of_first(params: Params, text: str) -> None:
    for layer in range(int(text)):
        _override(params, rf"blk\.{layer}{EXPERTS}=CPU")


def _adapters(params: Params, text: str) -> None:
    adapters = [xllamacpp.CommonAdapterLoraInfo(path, 1.0) for path in text.split(",")]
    params.lora_adapters = [*params.lora_adapters, *adapters]


def _scaled_adapters(params: Params, text: str) -> None:
    pairs = [part.rsplit(":", 1) for part in text.split(",")]
    adapters = [xllamacpp.CommonAdapterLoraInfo(path, float(scale)) for path, scale in pairs]
    params.lora_adapters = [*params.lora_adapters, *adapters]


_cache_type = member(xllamacpp.ggml_type, "GGML_TYPE_")
LOAD_MODES = {"auto": -1, "none": 0, "mmap": 1, "mlock": 2, "mmap+mlock": 3, "dio": 4}
_three_ways = one_of(auto=-1, off=0, on=1)

OPTIONS: tuple[Option, ...] = (
    # what is served, and where
    _value("-m --model", "model.path"),
    _value("--host", "hostnames", lambda text: text.split(",")),
    _value("--port", "port", int),
    _value("-a --alias", "model_alias", lambda text: set(text.split(","))),
    _value("--tags", "model_tags", lambda text: set(text.split(","))),
    Option("-to --timeout", True, _timeout),
    _value("--threads-http", "n_threads_http", int),
    _value("--sse-ping-interval", "sse_ping_interval", int),
    _value("--sleep-idle-seconds", "sleep_idle_seconds", int),
    _switch("--metrics", "endpoint_metrics"),
    *_either("--slots", "--no-slots", "endpoint_slots"),
    *_either("--ui --webui", "--no-ui --no-webui", "ui"),
    _switch("--embedding --embeddings", "embedding"),
    Option("--rerank --reranking", False, _rerank),
    _value("-lv --verbosity --log-verbosity", "verbosity", int),
    # context, batches, caches
    _value("-c --ctx-size", "n_ctx", int),
    _value("-n --predict --n-predict", "n_predict", int),
    _value("-b --batch-size", "n_batch", int),
    _value("-ub --ubatch-size", "n_ubatch", int),
    _value("--keep", "n_keep", int),
    _value("-np --parallel", "n_parallel", int),
    *_either("-cb --cont-batching", "-nocb --no-cont-batching", "cont_batching"),
    *_either("-kvu --kv-unified", "-no-kvu --no-kv-unified", "kv_unified"),
    _value("--kv-unified-per-slot", "kv_unified_per_slot", int),
    _value("-cram --cache-ram", "cache_ram_mib", int),
    *_either("--cache-prompt", "--no-cache-prompt", "cache_prompt"),
    *_either("--cache-idle-slots", "--no-cache-idle-slots", "cache_idle_slots"),
    _value("--cache-reuse", "n_cache_reuse", int),
    _value("-ctk --cache-type-k", "cache_type_k", _cache_type),
    _value("-ctv --cache-type-v", "cache_type_v", _cache_type),
    _value("-ctxcp --ctx-checkpoints --swa-checkpoints", "n_ctx_checkpoints", int),
    _value("-cms --checkpoint-min-step", "checkpoint_min_step", int),
    *_either("--context-shift", "--no-context-shift", "ctx_shift"),
    _switch("--swa-full", "swa_full"),
    _value("-sps --slot-prompt-similarity", "slot_prompt_similarity", float),
    # devices, memory, threads
    _value("-t --threads", "cpuparams.n_threads", int),
    _value("-tb --threads-batch", "cpuparams_batch.n_threads", int),
    _value("--poll", "cpuparams.poll", int),
    _value("-ngl --gpu-layers --n-gpu-layers", "n_gpu_layers", layers),
    _value(
        "-sm --split-mode", "split_mode", member(xllamacpp.llama_split_mode, "LLAMA_SPLIT_MODE_")
    ),
    _value("-ts --tensor-split", "tensor_split", shares),
    _value("-mg --main-gpu", "main_gpu", int),
    Option("-ot --override-tensor", True, _override),
    Option("-cmoe --cpu-moe", False, lambda params, _: _override(params, EXPERTS + "=CPU")),
    Option("-ncmoe --n-cpu-moe", True, _experts_of_first),
    _value("-fa --flash-attn", "flash_attn_type", _three_ways),
    _value("-fit --fit", "fit_params", one_of(on=True, off=False)),
    _value("-fitt --fit-target", "fit_params_target", margins),
    _value("-fitc --fit-ctx", "fit_params_min_ctx", int),
    _switch("-kvo --kv-offload", "no_kv_offload", False),
    _switch("-nkvo --no-kv-offload", "no_kv_offload"),
    _switch("--op-offload", "no_op_offload", False),
    _switch("--no-op-offload", "no_op_offload"),
    _switch("--repack", "no_extra_bufts", False),
    _switch("-nr --no-repack", "no_extra_bufts"),
    _switch("--no-host", "no_host"),
    _value("-lm --load-mode", "load_mode", one_of(**LOAD_MODES)),
    _switch("--mmap", "load_mode", LOAD_MODES["mmap"]),
    _switch("--no-mmap", "load_mode", LOAD_MODES["none"]),
    _switch("--mlock", "load_mode", LOAD_MODES["mlock"]),
    _value("--numa", "numa", member(xllamacpp.ggml_numa_strategy, "GGML_NUMA_STRATEGY_")),
    _switch("--check-tensors", "check_tensors"),
    *_either("--warmup", "--no-warmup", "warmup"),
    _switch("--perf", "no_perf", False),
    _switch("--no-perf", "no_perf"),
    # the model and what goes with it
    _value("-mm --mmproj", "mmproj.path"),
    _switch("--no-mmproj --no-mmproj-auto", "no_mmproj"),
    *_either("--mmproj-offload", "--no-mmproj-offload", "mmproj_use_gpu"),
    _value("--image-min-tokens", "image_min_tokens", int),
    _value("--image-max-tokens", "image_max_tokens", int),
    Option("--lora", True, _adapters),
    Option("--lora-scaled", True, _scaled_adapters),
    _value(
        "--pooling", "pooling_type", member(xllamacpp.llama_pooling_type, "LLAMA_POOLING_TYPE_")
    ),
    _value(
        "--attention",
        "attention_type",
        member(xllamacpp.llama_attention_type, "LLAMA_ATTENTION_TYPE_"),
    ),
    _value("--embd-normalize", "embd_normalize", int),
    _value(
        "--rope-scaling",
        "rope_scaling_type",
        member(xllamacpp.llama_rope_scaling_type, "LLAMA_ROPE_SCALING_TYPE_"),
    ),
    _value("--rope-scale", "rope_freq_scale", rope_scale),
    _value("--rope-freq-base", "rope_freq_base", float),
    _value("--rope-freq-scale", "rope_freq_scale", float),
    _value("--yarn-orig-ctx", "yarn_orig_ctx", int),
    _value("--yarn-ext-factor", "yarn_ext_factor", float),
    _value("--yarn-attn-factor", "yarn_attn_factor", float),
    _value("--yarn-beta-slow", "yarn_beta_slow", float),
    _value("--yarn-beta-fast", "yarn_beta_fast", float),
    # chat
    *_either("--jinja", "--no-jinja", "use_jinja"),
    _value("--chat-template", "chat_template"),
    _value("--chat-template-file", "chat_template", file_text),
    _value("--chat-template-kwargs", "default_template_kwargs", template_values),
    _value(
        "--reasoning-format",
        "reasoning_format",
        member(xllamacpp.common_reasoning_format, "COMMON_REASONING_FORMAT_"),
    ),
    _value("-rea --reasoning", "enable_reasoning", _three_ways),
    _value("--reasoning-budget", "sampling.reasoning_budget_tokens", int),
    _value("--reasoning-budget-message", "sampling.reasoning_budget_message"),
    *_either("--prefill-assistant", "--no-prefill-assistant", "prefill_assistant"),
    _switch("-sp --special", "special"),
    # sampling defaults
    _value("-s --seed", "sampling.seed", seed),
    _sampler("--samplers", "samplers", str, "SAMPLERS"),
    _sampler("--temp --temperature", "temp", float, "TEMP"),
    _sampler("--top-k", "top_k", int, "TOP_K"),
    _sampler("--top-p", "top_p", float, "TOP_P"),
    _sampler("--min-p", "min_p", float, "MIN_P"),
    _sampler("--xtc-probability", "xtc_probability", float, "XTC_PROBABILITY"),
    _sampler("--xtc-threshold", "xtc_threshold", float, "XTC_THRESHOLD"),
    _sampler("--repeat-last-n", "penalty_last_n", int, "PENALTY_LAST_N"),
    _sampler("--repeat-penalty", "penalty_repeat", float, "PENALTY_REPEAT"),
    _sampler("--mirostat", "mirostat", int, "MIROSTAT"),
    _sampler("--mirostat-ent", "mirostat_tau", float, "MIROSTAT_TAU"),
    _sampler("--mirostat-lr", "mirostat_eta", float, "MIROSTAT_ETA"),
    _value("--typical --typical-p", "sampling.typ_p", float),
    _value("--presence-penalty", "sampling.penalty_present", float),
    _value("--frequency-penalty", "sampling.penalty_freq", float),
    _value("--dry-multiplier", "sampling.dry_multiplier", float),
    _value("--dry-base", "sampling.dry_base", float),
    _value("--dry-allowed-length", "sampling.dry_allowed_length", int),
    _value("--dry-penalty-last-n", "sampling.dry_penalty_last_n", int),
    _value("--dynatemp-range", "sampling.dynatemp_range", float),
    _value("--dynatemp-exp", "sampling.dynatemp_exponent", float),
    _switch("--ignore-eos", "sampling.ignore_eos"),
    _value("--grammar", "sampling.grammar", grammar),
    _value("--grammar-file", "sampling.grammar", lambda text: grammar(file_text(text))),
    _value("-j --json-schema", "sampling.grammar", schema),
)
