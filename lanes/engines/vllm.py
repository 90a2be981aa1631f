"""vLLM: `vllm serve`, of a Hugging Face folder or a GGUF file.

The server answers to the preset's names and to `auto`, and to any other besides, since the gateway
alone decides which request runs where (as during a fallback). It takes its key from VLLM_API_KEY
and asks for it below /v1 only: the rest is guarded by the gateway's list of routes and, on this
host, by nothing, which docs/engines.md says. `--max-num-seqs` is how many requests it works on at
once; without it vLLM takes 256, or 1024 on cards of 70 GiB and more.
"""

from collections.abc import Mapping, Sequence

from django.conf import settings

from lanes.engines.argparse_flags import has_flag, value_of, whole_number
from lanes.engines.base import EngineAdapter, Kept, Launch, ServerFacts, ServerSpec
from lanes.engines.forms import Form
from lanes.engines.hosting import gpus, passed_on, words_of
from lanes.engines.model_card import max_model_len
from lanes.engines.vllm_failures import VLLM
from lanes.engines.vllm_flags import OWNED, allowed_variables

LEAST_SEQUENCES = 256
OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
}


class Vllm(EngineAdapter):
    """The adapter of vLLM's OpenAI-compatible server."""

    health_path = "/health"  # answers once the engine runs; until then nothing listens
    protected_path: str | None = "/v1/models"
    facts_path: str | None = "/v1/models"
    failure_words = VLLM
    loads = frozenset({Form.HUGGING_FACE, Form.GGUF})

    def arguments(self, given: Sequence[str]) -> Kept:
        """Without the flags of `vllm_flags`."""
        return OWNED.without(given)

    def variables(self, given: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
        """Those of `vllm_flags` that tune a server."""
        return allowed_variables(given)

    def launch(self, spec: ServerSpec) -> Launch:
        """The model first: `--served-model-name` takes all words up to the next flag."""
        program = words_of(settings.SLOTSERVE_VLLM)
        names = dict.fromkeys((spec.alias, *spec.other_names, "auto"))
        own = ("--served-model-name", *names, "--host", spec.address, "--port", str(spec.port))
        kept, _ = OWNED.without(spec.arguments)
        chosen, _ = allowed_variables(spec.environment)
        environment = {
            **passed_on(),
            **chosen,
            **OFFLINE,
            **gpus(spec),
            "VLLM_API_KEY": spec.api_key,
            "VLLM_SKIP_MODEL_NAME_VALIDATION": "1",
            "VLLM_NO_USAGE_STATS": "1",
            "VLLM_HOST_IP": "127.0.0.1",  # where its own processes meet
        }
        argv = (*program, spec.model_path, *own, *kept)
        return Launch(argv, environment, program_words=len(program))

    def facts(self, arguments: Sequence[str], answer: bytes | None) -> ServerFacts:
        """By its arguments; the context by what `/v1/models` said."""
        kept, _ = OWNED.without(arguments)
        asked = whole_number(value_of(kept, "--max-model-len"))
        return ServerFacts(
            slots=whole_number(value_of(kept, "--max-num-seqs")) or LEAST_SEQUENCES,
            context_length=max_model_len(answer) or asked,
            capabilities=_capabilities(kept),
        )


def _capabilities(arguments: Sequence[str]) -> tuple[str, ...]:
    """What its arguments say; a server for pooling does nothing else."""
    convert = value_of(arguments, "--convert", "--task") or ""
    if convert in {"embed", "embedding"}:
        return ("embedding",)
    if convert in {"classify", "score", "reward"}:
        return ("rerank",)
    if value_of(arguments, "--runner") == "pooling":
        return ("embedding",)
    tools = ("tools",) if has_flag(arguments, "--enable-auto-tool-choice") else ()
    return ("completion", *tools)
