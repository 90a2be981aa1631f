"""llama.cpp: a genuine llama-server where there is one, else the built-in runner.

Besides the address, two defaults differ from llama-server's own; a preset's arguments change the
first: `--cache-ram 0` (its 8 GiB of host memory for old prompts would go beyond any estimate, and
would hand one owner's prompts on to the next), and no web pages, no downloads.
"""

import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from django.conf import settings

from lanes.engines.base import EngineAdapter, Kept, Launch, ServerFacts, ServerSpec
from lanes.engines.forms import Form
from lanes.engines.hosting import gpus, passed_on
from lanes.engines.llama_drift import fitted, named
from lanes.engines.llama_facts import facts
from lanes.engines.llama_failures import LLAMA
from lanes.engines.llama_flags import allowed_environment, without_owned

SOURCE_FOLDER = Path(__file__).resolve().parent.parent.parent
# -P keeps the folder it happens to start in off the import path.
RUNNER = (sys.executable, "-P", "-m", "lanes.llama_runner")
PASSED_ON = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")
# As environment twins they count less than the preset's arguments, and a build that does not know
# one ignores it, where an unknown argument would end it.
DEFAULTS = {
    "LLAMA_ARG_CACHE_RAM": "0",
    "LLAMA_ARG_OFFLINE": "1",
    "LLAMA_ARG_UI": "0",
    "LLAMA_ARG_WEBUI": "0",
}


class LlamaCpp(EngineAdapter):
    """The adapter of llama-server and of the runner that stands in for it."""

    health_path = "/health"
    protected_path: str | None = "/props"  # some builds list models without a key; none shows this
    facts_path: str | None = "/props"
    failure_words = LLAMA
    loads = frozenset({Form.GGUF})

    def arguments(self, given: Sequence[str]) -> Kept:
        """Without the flags of `llama_flags`."""
        return without_owned(given)

    def variables(self, given: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
        """Those of `llama_flags` that tune a server."""
        return allowed_environment(given)

    def launch(self, spec: ServerSpec) -> Launch:
        """argv and environment; the address comes first so that no argument can swallow it.

        In the words that this host's build takes, where they are known.
        """
        kept, _ = without_owned(spec.arguments)
        place = ("--host", spec.address, "--port", str(spec.port))
        own = fitted(("-m", spec.model_path, *place), spec.flags).words
        name = named(spec.alias, spec.flags)
        words = program()
        argv = (*words, *own, *name, *fitted(kept, spec.flags).words)
        return Launch(argv, _environment(spec), program_words=len(words))

    def facts(self, arguments: Sequence[str], answer: bytes | None) -> ServerFacts:
        """What a server of these arguments can do; `answer` is what its `/props` said."""
        kept, _ = without_owned(arguments)
        return facts(kept, answer)


def program() -> tuple[str, ...]:
    """How argv begins: SLOTSERVE_LLAMA_SERVER, else llama-server on PATH, else the runner."""
    named = settings.SLOTSERVE_LLAMA_SERVER
    found = shutil.which(named or "llama-server") or named
    return (found,) if found else RUNNER


def is_built_in() -> bool:
    """Whether the built-in runner is what starts."""
    return program() == RUNNER


def host_environment() -> dict[str, str]:
    """What the program needs of its host, whatever it is started for."""
    own = {"PYTHONPATH": str(SOURCE_FOLDER)} if is_built_in() else {}
    return {**passed_on(*PASSED_ON), **own}


def _environment(spec: ServerSpec) -> Mapping[str, str]:
    chosen, _ = allowed_environment(spec.environment)
    return {
        **host_environment(),
        **chosen,
        **DEFAULTS,
        "LLAMA_API_KEY": spec.api_key,
        **gpus(spec),
    }
