"""Models as people and programs are shown them. Reads only."""

from django.db.models import F, Prefetch, QuerySet

from lanes.models import ModelFile, PresetRevision


def models_for_people() -> QuerySet[ModelFile]:
    """Every model that is not forgotten, with its host and its presets; three queries.

    Its presets are those that name it now and are not archived.
    """
    current = PresetRevision.objects.filter(preset__current=F("pk"), preset__archived_at=None)
    current = current.select_related("preset")
    return (
        ModelFile.objects.listed()
        .select_related("host", "folder")
        .prefetch_related(Prefetch("revisions", current, to_attr="current_revisions"))
    )


def preset_slugs(file: ModelFile) -> list[str]:
    """The presets that name it now, of a model that `models_for_people` gave."""
    revisions: list[PresetRevision] = getattr(file, "current_revisions", [])
    return sorted(each.preset.slug for each in revisions)
