"""The preset editor's preview: what a host would start for what is typed."""

from typing import Any

from django.utils.translation import gettext as _

from lanes.launch_preview import Preview, preview
from lanes.models import Lane, ModelFile, Preset, PresetRevision
from lanes.preset_notes import notes_of_host
from lanes.presets import draft
from lanes.refusals import Refusal
from lanes.telling import tell
from slotserve.web.administration_forms import PresetForm

SAID = ("engine", "arguments", "environment", "options", "image", "aliases")
NO_NAME = "model-name"  # while a new preset has none


def of_form(form: PresetForm, lane: str) -> dict[str, Any]:
    """The preview of a form that is being filled in, on the named lane or its host's first."""
    form.is_valid()
    wrong = [str(error) for name in SAID for error in form.errors.get(name, ())]
    file = form.cleaned_data.get("model_file")
    if file is None:
        return {"wrong": [_("Choose a model file.")]}
    if wrong:
        return {"wrong": wrong}
    said = {each: form.cleaned_data[each] for each in SAID if each in form.cleaned_data}
    drafted = draft(form.cleaned_data.get("slug") or NO_NAME, file, **said)
    if isinstance(drafted, Refusal):
        return {"wrong": [drafted.words]}
    revision, notes = drafted
    lanes = lanes_of(file)
    return _shown(revision, notes, sorted(lanes, key=lambda each: each.slug != lane))


def of_preset(preset: Preset) -> dict[str, Any]:
    """What the page shows before anything is typed."""
    return of_revision(preset.current) if preset.current else {}


def of_revision(revision: PresetRevision) -> dict[str, Any]:
    """The same of one that is kept."""
    return _shown(revision, tuple(revision.told_notes), lanes_of(revision.model_file))


def lanes_of(file: ModelFile) -> list[Lane]:
    """The lanes of its host."""
    return list(Lane.objects.filter(host=file.host_id).select_related("host").order_by("name"))


def _shown(revision: PresetRevision, notes: tuple[str, ...], lanes: list[Lane]) -> dict[str, Any]:
    said = [*map(tell, notes), *notes_of_host(revision)]
    if not lanes:
        return {"notes": said, "wrong": [_("Its host has no lane yet: nothing would start it.")]}
    command: Preview = preview(lanes[0], revision)
    shown = sorted(lanes, key=lambda each: each.name)
    return {"command": command, "notes": said, "lanes": shown}
