"""The contract of an engine: what the product asks of a kind of model server.

An engine is one module with a class of these attributes and methods, listed in `registry`. A launch
is told as a command line; for a container the first `program_words` words give way to its image's
entry point, `spec` says what the server sees inside, and `files` are mounted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from lanes.engines.forms import ANYTHING, Form
from lanes.engines.options import Options
from lanes.failures.causes import Cause, FailureWords


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
    other_names: tuple[str, ...] = ()  # that callers may use as well
    folder: str = ""  # empty at each start and the server's alone
    flags: frozenset[str] = frozenset()  # that the host's program takes; empty: nobody knows


@dataclass(frozen=True, slots=True)
class Launch:
    """argv and environment of the process; the key is in the environment or a file, never in argv.

    `files` (text by whole path) and `folders` are made before the start, for its user alone.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    program_words: int = 1  # of argv: the program, where an image has an entry point of its own
    files: Mapping[str, str] = field(default_factory=dict)
    folders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What a model server can do, as far as is known."""

    slots: int | None = None  # requests it works on at once; None: as many as it is sent
    context_length: int | None = None  # tokens for one request
    capabilities: tuple[str, ...] = ()  # "completion", "vision", "tools", "embedding", "rerank" …


Kept = tuple[list[str], list[str]]


class EngineAdapter(Protocol):
    """One engine. Stateless. Engines inherit what they have nothing of their own to say to."""

    health_path: str  # answers 200 without a key when the model is loaded
    protected_path: str | None  # answers 200 with the key and 401 without; None: has no keys
    facts_path: str | None  # where a ready server tells of itself, with the key; None: nowhere
    failure_words: FailureWords  # how its log is read when it failed
    loads: frozenset[Form] = ANYTHING  # the forms of models that it can be given

    def arguments(self, given: Sequence[str]) -> Kept:
        """A preset's arguments without the flags that are SlotServe's own, in every spelling, and a
        note for each that was left out."""
        raise NotImplementedError

    def variables(self, given: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
        """A preset's variables that may reach the server, and a note for each that may not."""
        raise NotImplementedError

    def launch(self, spec: ServerSpec) -> Launch:
        """How to start it."""
        raise NotImplementedError

    def facts(self, arguments: Sequence[str], answer: bytes | None) -> ServerFacts:
        """What a server of these arguments can do; `answer` is what its `facts_path` said."""
        raise NotImplementedError

    def objection(self, arguments: Sequence[str], variables: Mapping[str, str]) -> str:
        """Why a preset that says this cannot be saved; empty: it can."""
        return ""

    def refusal(self, spec: ServerSpec) -> Cause | None:
        """Why this host does not start it; None: it does."""
        return None

    def stop(self, spec: ServerSpec) -> Launch | None:
        """The command that asks it to end, in place of the first TERM; None: TERM does."""
        return None

    def with_options(self, options: Options) -> "EngineAdapter":
        """The engine as a preset with these options has it; itself, when it takes none."""
        return self
