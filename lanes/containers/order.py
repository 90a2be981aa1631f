"""What an attendant is told: one container, as JSON in a variable of its environment. Pure.

It stands there and not in argv, as it holds the server's key.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

VARIABLE = "SLOTSERVE_CONTAINER"
INSTALLATION_LABEL = "slotserve.installation"
LANE_LABEL = "slotserve.lane"
GENERATION_LABEL = "slotserve.generation"


@dataclass(frozen=True, slots=True)
class ContainerOrder:
    """One container: its image with its entry point, and what goes behind that."""

    socket: str  # the Docker Engine's, a path
    name: str
    image: str
    entry_point: tuple[str, ...]  # empty: the image's own
    command: tuple[str, ...]
    environment: Mapping[str, str]
    labels: Mapping[str, str]
    address: str  # of the host, where `port` is published
    port: int  # inside and outside
    read_only: tuple[str, ...] = ()  # paths of the host, seen inside at the same place
    writable: tuple[str, ...] = ()
    gpu_uuids: tuple[str, ...] = ()
    shm_bytes: int = 2**30
    note_path: str = ""  # where the attendant writes which container it is


def to_text(order: ContainerOrder) -> str:
    """JSON."""
    return json.dumps(asdict(order))


def from_text(text: str) -> ContainerOrder:
    """What `to_text` wrote; ValueError or TypeError when it is anything else."""
    told = json.loads(text)
    for name in ("entry_point", "command", "read_only", "writable", "gpu_uuids"):
        told[name] = tuple(told[name])
    return ContainerOrder(**told)


def labels(installation: str, lane_pk: int, generation: int) -> dict[str, str]:
    """By these a container is known as ours."""
    return {
        INSTALLATION_LABEL: installation,
        LANE_LABEL: str(lane_pk),
        GENERATION_LABEL: str(generation),
    }


def container_name(installation: str, lane_pk: int, generation: int) -> str:
    """A name for people: two installations on one host do not meet."""
    return f"slotserve-{installation[:8]}-lane{lane_pk}-g{generation}"


def lane_filter(labels_of_one: Mapping[str, str]) -> dict[str, list[str]]:
    """The Docker Engine's filter for containers of the same lane, of any generation."""
    names = (INSTALLATION_LABEL, LANE_LABEL)
    return {"label": [f"{name}={labels_of_one[name]}" for name in names]}
