"""What pages are told: a digest for each topic, and figures that change often. Pure.

A page carries the digests of what it shows. Told of another one, it asks for that part anew: so a
message that is lost, doubled or late changes nothing.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

STAFF_TOPICS = frozenset({"hosts"})
Figures = Mapping[str, int | None]


@dataclass(frozen=True, slots=True)
class State:
    """Everything at one moment, for everybody."""

    topics: Mapping[str, str] = field(default_factory=dict)  # digests
    figures: Mapping[str, Figures] = field(default_factory=dict)  # by lane slug


NOTHING = State()


def digest_of(*facts: object) -> str:
    """A short name of these facts, the same in every process; their `repr` must tell them apart."""
    return hashlib.blake2b(repr(facts).encode(), digest_size=6).hexdigest()


def news(known: State, state: State, *, is_staff: bool) -> str:
    """What somebody who knows the one must be told to know the other, as an event; may be empty."""
    topics = _changes(known.topics, state.topics)
    if not is_staff:
        topics = {name: digest for name, digest in topics.items() if name not in STAFF_TOPICS}
    figures = _changes(known.figures, state.figures)
    told = {"topics": topics, "figures": figures}
    return event("state", told) if topics or figures else ""


def event(name: str, data: object) -> str:
    """One server-sent event."""
    text = json.dumps(data, separators=(",", ":"), sort_keys=True)
    return f"event: {name}\ndata: {text}\n\n"


def _changes(known: Mapping[str, object], now: Mapping[str, object]) -> dict[str, object]:
    """What is new or different, and None for what is gone."""
    new = {name: value for name, value in now.items() if known.get(name) != value}
    return new | dict.fromkeys(known.keys() - now.keys())
