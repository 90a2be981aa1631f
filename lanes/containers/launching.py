"""From an engine's launch to what the shim starts: an attendant, told of a container."""

import sys
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from django.conf import settings

from lanes import records
from lanes.containers import notes, order
from lanes.containers.docker_engine import is_socket
from lanes.containers.notes import Note
from lanes.containers.order import ContainerOrder
from lanes.engines.base import Launch, ServerSpec
from lanes.engines.hosting import is_of_host
from lanes.failures.causes import Cause, Kind
from lanes.models import Engine, PresetRevision, Runtime
from wire.words import said

MOST_ENTRIES = 10_000
MODEL_FILES = frozenset({".gguf", ".safetensors", ".json", ".model", ".txt", ".jinja", ".py"})
INSIDE = "0.0.0.0"  # noqa: S104 - of the container; outside its port is published at one address
SOURCE_FOLDER = Path(__file__).resolve().parent.parent.parent
ATTENDANT = (sys.executable, "-P", "-m", "lanes.containers.attendant")
REMOVAL = (*ATTENDANT, "--remove")


def refusal() -> Cause | None:
    """Why this host starts no container; None: it does."""
    socket = settings.SLOTSERVE_DOCKER_SOCKET
    if is_socket(socket):
        return None
    return Cause(
        Kind.PROGRAM,
        said("This host has no Docker Engine, which a preset with an image needs."),
        f"no socket at {socket}",
        said(
            "Install one, start it, or set SLOTSERVE_DOCKER_SOCKET in the settings of its worker."
        ),
    )


def attended(container: ContainerOrder) -> Launch:
    """How to start the container's attendant."""
    told = {order.VARIABLE: order.to_text(container), "PYTHONPATH": str(SOURCE_FOLDER)}
    return Launch(ATTENDANT, told)


def container_of(runtime: Runtime, spec: ServerSpec, launch: Launch) -> ContainerOrder:
    """The container of this launch, whose spec says INSIDE for its address.

    The model is seen where it is on the host, and cannot be written to.
    """
    lane_pk, generation, revision = runtime.lane_id, runtime.generation, runtime.revision
    entry_point, command = words_of(revision, launch)
    installation = records.installation_id()
    return ContainerOrder(
        socket=settings.SLOTSERVE_DOCKER_SOCKET,
        name=order.container_name(installation, lane_pk, generation),
        image=revision.image,
        entry_point=entry_point,
        command=command,
        environment={**_inside(launch.environment), **records.marks(lane_pk)},
        labels=order.labels(installation, lane_pk, generation),
        address=runtime.address,
        port=spec.port,
        read_only=model_folders(Path(spec.model_path)),
        writable=(spec.folder,) if launch.files or launch.folders else (),
        gpu_uuids=spec.gpu_uuids,
        shm_bytes=settings.SLOTSERVE_CONTAINER_SHM_MB * 2**20,
        note_path=str(note_path(lane_pk)),
    )


def words_of(revision: PresetRevision, launch: Launch) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The entry point, and what goes behind it. A preset of any command names the program itself;
    else (empty) the image's entry point is the engine's."""
    program = launch.argv[: launch.program_words]
    is_named = revision.engine == Engine.COMMAND
    return program if is_named else (), launch.argv[launch.program_words :]


def note_path(lane_pk: int) -> Path:
    """Where the attendant of a lane writes which its container is."""
    return records.folder() / f"{lane_pk}.container"


def note_of(lane_pk: int) -> Note:
    """What the lane's newest attendant wrote of its container."""
    return notes.read(note_path(lane_pk))


def model_folders(model: Path) -> tuple[str, ...]:
    """The folder of a file, for its other shards, or a folder itself; and the files that links in
    it lead to: they alone, not what lies beside them."""
    folder = model if model.is_dir() else model.parent
    if folder in (Path("/"), Path(settings.SLOTSERVE_DATA)) or not folder.is_dir():
        return (str(model),)
    entries = islice(folder.iterdir(), MOST_ENTRIES)
    linked = {str(entry.resolve()) for entry in entries if _is_linked_weights(entry)}
    return (str(folder), *sorted(linked))


def _is_linked_weights(entry: Path) -> bool:
    """Whether a link leads to a file of a model's, as its own name says."""
    return entry.is_symlink() and entry.suffix in MODEL_FILES and entry.is_file()


def _inside(environment: Mapping[str, str]) -> dict[str, str]:
    """Without what describes the host: paths, users and libraries differ inside."""
    return {name: text for name, text in environment.items() if not is_of_host(name)}
