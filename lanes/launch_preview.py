"""What a host would start for a preset, as it can be shown: by the code that starts it."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace

from lanes.containers import launching
from lanes.engines import llama_cpp
from lanes.engines.base import Launch, ServerSpec
from lanes.models import Engine, Host, Lane, LlamaServer, PresetRevision
from lanes.secret_names import MASK, shown
from lanes.starting import launch_of, server_spec

PORT = 0  # the host gives one at the start


@dataclass(frozen=True, slots=True)
class Preview:
    """One command. `argv` is of the process, or goes behind the image's entry point."""

    lane: Lane
    argv: tuple[str, ...]
    environment: Mapping[str, str]  # what the engine and the preset add; secrets masked
    image: str  # empty: a process of the host
    files: tuple[str, ...]  # written before the start, by path

    @property
    def line(self) -> str:
        """The words as a shell would be given them; nothing is ever given to one."""
        return shlex.join(self.argv)


def preview(lane: Lane, revision: PresetRevision) -> Preview:
    """What its host would start on this lane; the revision need not be saved.

    The port is shown as 0 and the key as a mask: the host makes both at the start.
    """
    address = launching.INSIDE if revision.image else lane.host.address
    spec = server_spec(lane, revision, address, PORT, MASK)
    known = _known(lane.host, revision)
    launch = launch_of(revision, replace(spec, flags=frozenset(known.flags if known else ())))
    return Preview(
        lane=lane,
        argv=_argv(revision, launch, known),
        environment=_environment(spec, launch),
        image=revision.image,
        files=tuple(launch.files),
    )


def _argv(revision: PresetRevision, launch: Launch, known: LlamaServer | None) -> tuple[str, ...]:
    if revision.image:
        entry_point, command = launching.words_of(revision, launch)
        return (*entry_point, *command)
    if known is None:
        return launch.argv
    return (*_program(known, launch), *launch.argv[launch.program_words :])


def _known(host: Host, revision: PresetRevision) -> LlamaServer | None:
    """The llama-server that the host's worker told of, if that is what would start."""
    if revision.engine != Engine.LLAMA_CPP or revision.image:
        return None
    return LlamaServer.objects.filter(host=host).exclude(identity="").first()


def _program(known: LlamaServer, launch: Launch) -> tuple[str, ...]:
    """Its words on that host: of the built-in runner this machine's are as good as any."""
    path = known.identity.rsplit(", ", 2)[0]
    if path.startswith("/"):
        return (path,)
    return llama_cpp.RUNNER if known.identity.startswith("built in") else _words(launch)


def _words(launch: Launch) -> tuple[str, ...]:
    return launch.argv[: launch.program_words]


def _environment(spec: ServerSpec, launch: Launch) -> dict[str, str]:
    told = {**launch.environment, "CUDA_VISIBLE_DEVICES": ",".join(spec.gpu_uuids)}
    return {name: shown(name, text) for name, text in sorted(told.items())}
