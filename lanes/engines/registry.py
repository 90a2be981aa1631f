"""The engines by their names in `PresetRevision.engine`."""

from collections.abc import Mapping

from lanes.engines.base import EngineAdapter
from lanes.engines.comfyui import ComfyUi
from lanes.engines.command import Command
from lanes.engines.llama_cpp import LlamaCpp
from lanes.engines.options import Options, check_options
from lanes.engines.sglang import Sglang
from lanes.engines.training import Training
from lanes.engines.vllm import Vllm
from lanes.models import PresetRevision

ENGINES: dict[str, EngineAdapter] = {
    "llama.cpp": LlamaCpp(),
    "vllm": Vllm(),
    "sglang": Sglang(),
    "comfyui": ComfyUi(),
    "training": Training(),
    "command": Command(),
}


def engine(name: str) -> EngineAdapter:
    """The adapter of this engine; KeyError for a name that no preset can have."""
    return ENGINES[name]


def engine_of(revision: PresetRevision) -> EngineAdapter:
    """The adapter of a preset's revision, with its options."""
    return engine_with(revision.engine, revision.options)


def engine_with(name: str, options: Mapping[str, object]) -> EngineAdapter:
    """The adapter of this engine, with these options as the database has them."""
    read = check_options(options)
    return engine(name).with_options(read if isinstance(read, Options) else Options())
