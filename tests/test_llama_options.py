"""llama-server's flags on the built-in runner."""

import pytest

from lanes.engines.llama_flags import without_owned
from lanes.llama_options import OPTIONS, Params
from lanes.llama_runner import ArgumentError, read_arguments


def read(*arguments: str) -> Params:
    """The parameters of a command line with a model."""
    return read_arguments(["-m", "x.gguf", *arguments])


@pytest.mark.parametrize(
    ("arguments", "path", "value"),
    [
        (["-c", "4096"], "n_ctx", 4096),
        (["--ctx_size", "4096"], "n_ctx", 4096),
        (["-np", "2"], "n_parallel", 2),
        (["-ngl", "99"], "n_gpu_layers", 99),
        (["--gpu-layers", "all"], "n_gpu_layers", -2),
        (["-ngl", "auto"], "n_gpu_layers", -1),
        (["-t", "3"], "cpuparams.n_threads", 3),
        (["-tb", "4"], "cpuparams_batch.n_threads", 4),
        (["-b", "64"], "n_batch", 64),
        (["-ub", "32"], "n_ubatch", 32),
        (["-fa", "on"], "flash_attn_type", 1),
        (["-fa", "off"], "flash_attn_type", 0),
        (["--cache-ram", "100"], "cache_ram_mib", 100),
        (["-ctk", "q8_0"], "cache_type_k", 8),
        (["--cache-type-v", "q4_0"], "cache_type_v", 2),
        (["--embeddings"], "embedding", True),
        (["--reranking"], "pooling_type", 4),
        (["--pooling", "mean"], "pooling_type", 1),
        (["--no-jinja"], "use_jinja", False),
        (["--metrics"], "endpoint_metrics", True),
        (["--no-slots"], "endpoint_slots", False),
        (["--webui"], "ui", True),
        (["--chat-template", "chatml"], "chat_template", "chatml"),
        (["--seed", "-1"], "sampling.seed", 0xFFFFFFFF),
        (["-n", "10"], "n_predict", 10),
        (["--mmproj", "p.gguf"], "mmproj.path", "p.gguf"),
        (["--rope-scale", "4"], "rope_freq_scale", 0.25),
        (["--rope-scaling", "yarn"], "rope_scaling_type", 2),
        (["--temp", "0"], "sampling.temp", 0.0),
        (["--top-k", "1"], "sampling.top_k", 1),
        (["--sleep-idle-seconds", "60"], "sleep_idle_seconds", 60),
        (["-nocb"], "cont_batching", False),
        (["--no-warmup"], "warmup", False),
        (["--no-mmap"], "load_mode", 0),
        (["-lm", "mmap+mlock"], "load_mode", 3),
        (["-lm", "dio"], "load_mode", 4),
        (["-nkvo"], "no_kv_offload", True),
        (["-sm", "none"], "split_mode", 0),
        (["-fit", "off"], "fit_params", False),
        (["-cmoe"], "tensor_buft_overrides", r"\.ffn_(up|down|gate|gate_up)_(ch|)exps=CPU"),
        (["--host", "10.0.0.1"], "hostnames", ["10.0.0.1"]),
        (["--alias", "a,b"], "model_alias", {"a", "b"}),
        (
            ["--chat-template-kwargs", '{"think": false}'],
            "default_template_kwargs",
            {"think": "false"},
        ),
    ],
)
def test_a_flag_sets_its_field(arguments: list[str], path: str, value: object) -> None:
    found = read(*arguments)
    for field in path.split("."):
        found = getattr(found, field)
    assert found == value


def test_the_defaults_are_llama_server_s_but_for_old_prompts_and_web_pages() -> None:
    params = read()
    assert (params.hostnames, params.port) == (["127.0.0.1"], 8080)
    assert (params.n_parallel, params.kv_unified) == (4, True)
    assert (params.cache_ram_mib, params.ui) == (0, False)


def test_a_number_of_slots_divides_the_context() -> None:
    assert not read("-np", "2").kv_unified


def test_an_embedding_server_takes_a_batch_at_once() -> None:
    assert read("--embeddings", "-b", "2048", "-ub", "512").n_batch == 512


def test_a_sampling_default_holds_against_the_model_s_own() -> None:
    assert read("--temp", "0.1", "--top-p", "0.5").sampling.user_sampling_config == 64 + 4


def test_shares_of_devices_fill_up_with_zero() -> None:
    assert list(read("-ts", "3,1").tensor_split)[:3] == [3.0, 1.0, 0.0]


def test_adapters_add_up() -> None:
    params = read("--lora", "a.gguf,b.gguf", "--lora-scaled", "c.gguf:0.5")
    assert [(a.path, a.scale) for a in params.lora_adapters] == [
        ("a.gguf", 1.0),
        ("b.gguf", 1.0),
        ("c.gguf", 0.5),
    ]


def test_a_grammar_and_a_schema_are_taken() -> None:
    assert read("--grammar", 'root ::= "a"').sampling.grammar.grammar == 'root ::= "a"'
    assert "boolean" in read("-j", '{"type": "boolean"}').sampling.grammar.grammar


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--nope"], "error: invalid argument: --nope"),
        (["stray"], "error: invalid argument: stray"),
        (["-c"], "error: expected value for argument -c"),
        (["-c", "many"], 'error while handling argument "-c"'),
        (["-fa", "maybe"], 'error while handling argument "-fa": unknown value: maybe'),
        (["-ctk", "q9"], 'error while handling argument "-ctk": unknown value: q9'),
        (
            ["--chat-template-file", "/nowhere"],
            'error while handling argument "--chat-template-file"',
        ),
        (["--chat-template-kwargs", "[]"], "error while handling argument"),
        (["--lora-scaled", "c.gguf"], 'error while handling argument "--lora-scaled"'),
        (["--api-key", "x"], "error: invalid argument: --api-key"),
    ],
)
def test_what_llama_server_would_not_take_ends_with_its_words(
    arguments: list[str], words: str
) -> None:
    with pytest.raises(ArgumentError) as caught:
        read(*arguments)
    assert words in str(caught.value)


def test_without_a_model_there_is_no_server() -> None:
    with pytest.raises(ArgumentError, match="no model is given"):
        read_arguments(["-c", "1"])


def test_no_spelling_stands_for_two_flags() -> None:
    spelled = [name for option in OPTIONS for name in option.names.split()]
    assert len(spelled) == len(set(spelled))


def test_only_what_slotserve_itself_sets_is_both_owned_and_known() -> None:
    spelled = [name for option in OPTIONS for name in option.names.split()]
    kept, _ = without_owned(spelled)
    own = {"-m", "--model", "--host", "--port", "-a", "--alias"}
    log_level = {"-lv", "--verbosity", "--log-verbosity"}
    assert set(spelled) - set(kept) == own | log_level
