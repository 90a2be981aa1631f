"""What the request path knows of the other edges, and how it asks for them."""

import asyncio
from dataclasses import dataclass, field


@dataclass(slots=True)
class Company:
    """Kept up by `Roster` and `Shared`; an edge that is alone asks nobody."""

    is_alone: bool = True
    edges: int = 1  # the last known number of living edges, this one included
    is_away: bool = True  # Valkey does not answer in time, so the others cannot be asked
    wanted: asyncio.Event = field(default_factory=asyncio.Event)  # there is something to ask


@dataclass(frozen=True, slots=True)
class Question:
    """One part of a call to the script of `shared.py`: its keys and arguments."""

    keys: list[str]
    arguments: list[str | int | float]
