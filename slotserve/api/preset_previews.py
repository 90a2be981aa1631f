"""What a host would start for a preset, as JSON."""

from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers

from lanes import presets
from lanes.engines.well_formed import MOST_IMAGE
from lanes.launch_preview import preview
from lanes.models import Engine, Lane, ModelFile, Preset
from lanes.preset_notes import notes_of_host
from lanes.refusals import Refusal
from lanes.telling import tell
from slotserve.api.bodies import StrictBody
from slotserve.api.preset_fields import OptionsField, TextsField, VariablesField


class PreviewWriteSerializer(StrictBody):
    """What would be saved; what is left out is as the preset's newest revision says."""

    lane = serializers.SlugRelatedField(
        slug_field="slug",
        queryset=Lane.objects.select_related("host"),
        required=False,
        help_text="of the model's host; left out: its first by name",
    )
    model_id = serializers.PrimaryKeyRelatedField(
        queryset=ModelFile.objects.listed(), required=False
    )
    engine = serializers.ChoiceField(choices=Engine.choices, required=False)
    arguments = TextsField(required=False)
    environment = VariablesField(required=False)
    options = OptionsField(required=False)
    image = serializers.CharField(max_length=MOST_IMAGE, required=False, allow_blank=True)
    aliases = TextsField(required=False)


class PreviewSerializer(serializers.Serializer[Any]):
    """A command by the code that starts it: port 0 and a mask for what only the host knows."""

    lane = serializers.CharField(source="lane.slug")
    argv = serializers.ListField(child=serializers.CharField())
    environment = serializers.DictField(child=serializers.CharField())
    image = serializers.CharField(help_text="behind whose entry point argv goes; empty: none")
    files = serializers.ListField(child=serializers.CharField(), help_text="written before")
    notes = serializers.ListField(child=serializers.CharField(), help_text="what is left out")


def previewed(preset: Preset, wish: dict[str, Any]) -> Any:
    """The answer to such a body, or a Refusal."""
    lane = wish.pop("lane", None)
    said = {**presets.as_said(preset), **wish}
    file = said.pop("model_id", None) or said.pop("model_file")
    said.pop("model_file", None)
    drafted = presets.draft(preset.slug, file, **said)
    if isinstance(drafted, Refusal):
        return drafted
    lane = lane or Lane.objects.filter(host=file.host_id).select_related("host").first()
    if lane is None or lane.host_id != file.host_id:
        return Refusal(
            "wrong_host", _("No such lane is on the host of %(file)s.") % {"file": file.name}
        )
    revision, notes = drafted
    shown = preview(lane, revision)
    told = {
        name: getattr(shown, name) for name in ("lane", "argv", "environment", "image", "files")
    }
    return PreviewSerializer({**told, "notes": [*map(tell, notes), *notes_of_host(revision)]}).data
