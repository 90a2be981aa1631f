"""What the supervisor asks of an engine (a kind of model server)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from lanes.failures.causes import FailureWords


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """One model server to start: a preset revision at an address, with a key of its own."""

    model_path: str
    alias: str  # the preset's slug: the name the server answers to
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    address: str
    port: int
    api_key: str
    gpu_uuids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Launch:
    """argv and environment of the process; the key is in the environment, never in argv."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What a model server can do, as far as is known."""

    slots: int | None = None  # requests it works on at once
    context_length: int | None = None  # tokens for one request
    capabilities: tuple[str, ...] = ()  # "completion", "vision", "tools", "embedding", "rerank" …


class EngineAdapter(Protocol):
    """One engine. Stateless."""

    health_path: str  # answers 200 without a key when the model is loaded
    protected_path: str | None  # answers 200 with the key and 401 without; None: has no keys
    facts_path: str | None  # where a ready server tells of itself, with the key; None: nowhere
    failure_words: FailureWords  # how its log is read when it failed

    def launch(self, spec: ServerSpec) -> Launch:
        """How to start it."""

    def facts(self, arguments: Sequence[str], answer: bytes | None) -> ServerFacts:
        """What a server of these arguments can do; `answer` is what its `facts_path` said."""
