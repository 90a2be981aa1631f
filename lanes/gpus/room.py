"""Whether a model has room on a lane's cards, and who is in its way. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from lanes.gpus.outsiders import Verdict
from lanes.gpus.readings import Holder
from wire.words import said

GIB = 2**30
CONTEXT_BYTES = 512 * 2**20  # what a server needs besides its weights, at the very least
MOST_NAMED = 2
# With these a model is only in part on the card: its file's size says nothing.
_PARTLY = {
    "-ngl",
    "--gpu-layers",
    "--n-gpu-layers",
    "-cmoe",
    "--cpu-moe",
    "-ncmoe",
    "--n-cpu-moe",
    "-ot",
    "--override-tensor",
    "-dev",
    "--device",
    "--cpu-offload-gb",
}


class Room(Enum):
    """What the cards have for a load."""

    ENOUGH = "enough"
    UNCLEAR = "unclear"  # too little, but the readings are not settled: look again
    TOO_LITTLE = "too little"


@dataclass(frozen=True, slots=True)
class Space:
    """One card's memory as it is now, and the verdict on who holds it."""

    total_bytes: int
    used_bytes: int
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer, with a sentence when there is too little."""

    room: Room
    words: str = ""


def need(measured: Sequence[int], file_bytes: int, arguments: Sequence[str]) -> int | None:
    """Bytes that a load needs: the most that its last runs held; before any, its file's size.

    None: nobody knows, because the arguments put only a part of the model on the card.
    """
    if measured:
        return max(measured)
    names = {argument.split("=", 1)[0] for argument in arguments}
    if not file_bytes or names & _PARTLY:
        return None
    return file_bytes + CONTEXT_BYTES


def find_room(needed: int | None, spaces: Sequence[Space]) -> Finding:
    """Whether so much is free. Only what outsiders hold can make it too little.

    A model that does not even fit into empty cards is for the server itself to judge, and so is
    memory that nobody outside holds.
    """
    total = sum(space.total_bytes for space in spaces)
    free = total - sum(space.used_bytes for space in spaces)
    if needed is None or not spaces or needed > total or free >= needed:
        return Finding(Room.ENOUGH)
    if not all(space.verdict.is_settled for space in spaces):
        return Finding(Room.UNCLEAR)
    outside = sum(space.verdict.outside_bytes for space in spaces)
    if total - outside >= needed:
        return Finding(Room.ENOUGH)
    return Finding(Room.TOO_LITTLE, _words(needed, free, [space.verdict for space in spaces]))


def has_room_without_lane(needed: int | None, spaces: Sequence[Space]) -> bool:
    """Whether so much would be free if the lane's own server were not there; settled polls only."""
    if needed is None:
        return True
    if not all(space.verdict.is_settled for space in spaces):
        return False
    total = sum(space.total_bytes for space in spaces)
    return total - sum(space.verdict.outside_bytes for space in spaces) >= needed


def size(amount: int) -> str:
    """Bytes for people: "14.0 GiB"."""
    return f"{amount / GIB:.1f} GiB" if amount >= GIB else f"{amount / 2**20:.0f} MiB"


def who(holder: Holder) -> str:
    """A process for people: "a python process of bob (pid 4711)"."""
    if not holder.ticks:
        return said("a process that cannot be seen from here (pid {pid})", pid=holder.pid)
    command = holder.command or "nameless"
    process = said("a {command} process", command=command)
    if command[0].lower() in "aeiou":
        process = said("an {command} process", command=command)
    if holder.user:
        process = said("{process} of {user}", process=process, user=holder.user)
    return said("{process} (pid {pid})", process=process, pid=holder.pid)


def _words(needed: int, free: int, verdicts: Sequence[Verdict]) -> str:
    held = _largest(verdicts)
    unseen = sum(verdict.unseen_bytes for verdict in verdicts)
    if unseen:
        amount = size(unseen)
        held.append(said("{size} is held by processes that cannot be seen from here", size=amount))
    return said(
        "Needs {needed} of GPU memory, {free} free: {holders}",
        needed=size(needed),
        free=size(free),
        holders=_in_a_row(held),
    )


def _in_a_row(parts: Sequence[str]) -> str:
    whole = parts[0] if parts else ""
    for part in parts[1:]:
        whole = said("{first}; {second}", first=whole, second=part)
    return whole


def _largest(verdicts: Sequence[Verdict]) -> list[str]:
    held: dict[tuple[int, int], tuple[Holder, int]] = {}
    for holder in (each for verdict in verdicts for each in verdict.outsiders):
        key = (holder.pid, holder.ticks)  # one process may hold memory of several cards
        before = held[key][1] if key in held else 0
        held[key] = (holder, before + (holder.memory_bytes or 0))
    ordered = sorted(held.values(), key=lambda each: -each[1])
    named: list[str] = [
        said("{who} holds {size}", who=who(holder), size=size(amount))
        for holder, amount in ordered[:MOST_NAMED]
    ]
    more = len(ordered) - MOST_NAMED
    return [*named, said("{count} more", count=more)] if more > 0 else named
