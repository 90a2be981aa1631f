"""Presets that are offered no more."""

from lanes.models import Preset
from lanes.refusals import Refusal


def archived_objection(preset: Preset) -> Refusal | None:
    """Against wanting a preset that is archived, as the database has it now. One query."""
    if not Preset.objects.filter(pk=preset.pk, archived_at__isnull=False).exists():
        return None
    words = f"{preset} is archived: take another preset, or have an administrator bring it back."
    return Refusal("archived", words)
