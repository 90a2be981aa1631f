"""SGLang: `python -m sglang.launch_server`, of a Hugging Face folder or a GGUF file.

It knows no variable for its key, so it reads it from a file of arguments (`--config`, from 0.5 on)
that its user alone can read. It asks for the key everywhere but below /health and /metrics, runs a
request under any model name, and writes its arguments to its log: the shim takes the key out of
that. `--max-running-requests` is how many requests it works on at once; without it SGLang works
that out of the memory and tells nobody.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from django.conf import settings

from lanes.engines.argparse_flags import has_flag, value_of, whole_number
from lanes.engines.base import EngineAdapter, Kept, Launch, ServerFacts, ServerSpec
from lanes.engines.forms import Form
from lanes.engines.hosting import gpus, passed_on, words_of
from lanes.engines.model_card import max_model_len
from lanes.engines.sglang_failures import SGLANG
from lanes.engines.sglang_flags import OWNED, allowed_variables
from lanes.engines.vllm import OFFLINE


class Sglang(EngineAdapter):
    """The adapter of SGLang's HTTP server."""

    health_path = "/health"  # 503 until its warm-up has been answered
    protected_path: str | None = "/v1/models"
    facts_path: str | None = "/v1/models"
    failure_words = SGLANG
    loads = frozenset({Form.HUGGING_FACE, Form.GGUF})

    def arguments(self, given: Sequence[str]) -> Kept:
        """Without the flags of `sglang_flags`."""
        return OWNED.without(given)

    def variables(self, given: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
        """Those of `sglang_flags` that tune a server."""
        return allowed_variables(given)

    def launch(self, spec: ServerSpec) -> Launch:
        """The key in a file; the rest on the command line, which counts more than the file."""
        program = words_of(settings.SLOTSERVE_SGLANG)
        config = str(Path(spec.folder) / "sglang.yaml")
        own = ("--config", config, "--model-path", spec.model_path, "--served-model-name")
        place = ("--host", spec.address, "--port", str(spec.port))
        kept, _ = OWNED.without(spec.arguments)
        chosen, _ = allowed_variables(spec.environment)
        environment = {
            **passed_on(),
            **chosen,
            **OFFLINE,
            **gpus(spec),
            # Else each probe makes the model write a token.
            "SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION": "false",
        }
        argv = (*program, *own, spec.alias, *place, *kept)
        files = {config: f"api-key: {json.dumps(spec.api_key)}\n"}
        return Launch(argv, environment, program_words=len(program), files=files)

    def facts(self, arguments: Sequence[str], answer: bytes | None) -> ServerFacts:
        """By its arguments; the context by what `/v1/models` said."""
        kept, _ = OWNED.without(arguments)
        asked = whole_number(value_of(kept, "--context-length"))
        return ServerFacts(
            slots=whole_number(value_of(kept, "--max-running-requests")),
            context_length=max_model_len(answer) or asked,
            capabilities=_capabilities(kept),
        )


def _capabilities(arguments: Sequence[str]) -> tuple[str, ...]:
    """What its arguments say; a server for embeddings does nothing else."""
    if has_flag(arguments, "--is-embedding"):
        return ("embedding",)
    tools = ("tools",) if value_of(arguments, "--tool-call-parser") else ()
    return ("completion", *tools)
