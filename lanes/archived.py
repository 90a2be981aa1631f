"""Presets that are offered no more."""

from lanes.models import Preset
from lanes.refusals import Refusal
from wire.words import said


def archived_objection(preset: Preset) -> Refusal | None:
    """Against wanting a preset that is archived, as the database has it now. One query."""
    is_archived = Preset.objects.filter(pk=preset.pk, archived_at__isnull=False).exists()
    return archived_refusal(preset) if is_archived else None


def archived_refusal(preset: Preset) -> Refusal:
    """What to do instead of wanting it."""
    words = said(
        "{preset} is archived: take another preset, or have an administrator bring it back.",
        preset=str(preset),
    )
    return Refusal("archived", words)
