"""The engines by their names in `PresetRevision.engine`."""

from lanes.engines.base import EngineAdapter
from lanes.engines.llama_cpp import LlamaCpp

ENGINES: dict[str, EngineAdapter] = {"llama.cpp": LlamaCpp()}


def engine(name: str) -> EngineAdapter:
    """The adapter of this engine; KeyError for a name that no preset can have."""
    return ENGINES[name]
