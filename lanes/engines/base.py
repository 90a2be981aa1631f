"""What the supervisor asks of an engine (a kind of model server)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


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


class EngineAdapter(Protocol):
    """One engine. Stateless."""

    health_path: str  # answers 200 without a key when the model is loaded
    protected_path: str | None  # answers 200 with the key and 401 without; None: has no keys

    def launch(self, spec: ServerSpec) -> Launch:
        """How to start it."""

    def failure_reason(self, log_tail: str, exit_status: int | None) -> str:
        """Why it failed to load or died, in a sentence for a person, read from its log."""
