"""Striking models off the list. What a revision once loaded keeps its name, out of sight."""

from django.db.models import Exists, OuterRef, QuerySet

from lanes import clock
from lanes.models import ModelFile, Preset


def presets_of(file: ModelFile) -> QuerySet[Preset]:
    """The presets whose model it is now, but for archived ones."""
    return Preset.objects.offered().filter(current__model_file=file)


def strike_off(files: QuerySet[ModelFile]) -> None:
    """Forget those of these that are no preset's model now.

    Rows that no revision names are deleted, the others marked. Run it in a transaction, under
    `one_edit_at_a_time` where a preset could be made meanwhile.
    """
    named = Preset.objects.offered().filter(current__model_file=OuterRef("pk"))
    for file in files.filter(~Exists(named), forgotten_at=None):
        if file.revisions.exists():
            ModelFile.objects.filter(pk=file.pk).update(forgotten_at=clock.database_now())
        else:
            file.delete()


def take_back(file: ModelFile) -> None:
    """Have it on the list again, if it was forgotten."""
    ModelFile.objects.filter(pk=file.pk).exclude(forgotten_at=None).update(forgotten_at=None)
