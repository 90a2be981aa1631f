"""What a preset's author should know: what was left out, and what its host makes of it."""

from django.utils.translation import gettext as _

from lanes.engines import llama_drift
from lanes.models import Engine, LlamaServer, Preset, PresetRevision
from lanes.telling import tell
from wire.words import said


def notes_of(preset: Preset) -> list[str]:
    """Sentences about its newest revision. Reads `current__model_file__host__llama_server`."""
    revision = preset.current
    return [] if revision is None else [*revision.told_notes, *notes_of_host(revision)]


def notes_of_host(revision: PresetRevision) -> list[str]:
    """About the flags that the host's llama-server knows; an image has a program of its own."""
    host = revision.model_file.host
    known: LlamaServer | None = getattr(host, "llama_server", None)
    if revision.engine != Engine.LLAMA_CPP or revision.image or known is None:
        return []
    if known.trouble:
        words = _("Nobody knows which flags llama-server on %(host)s takes: %(why)s.")
        return [words % {"host": host.name, "why": known.told}]
    server = " ".join(filter(None, ("llama-server", known.version)))
    program = said("{program} on {host}", program=server, host=host.name)
    return [
        tell(note)
        for note in llama_drift.notes(revision.arguments, frozenset(known.flags), program)
    ]
