"""The catalogue of models and presets, as members are shown it. Reads only."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Exists, F, OuterRef, Prefetch, Q, QuerySet

from lanes.engines.base import ServerFacts
from lanes.fitting import gpu_memory, lanes_too_small
from lanes.models import Gpu, Lane, ModelFile, Preset, PresetRevision, Runtime
from slotserve.preset_figures import Figures, facts_of, figures, kept_speeds

BOOKABLE, LOADED = "presets", "loaded"


@dataclass(frozen=True, slots=True)
class Wish:
    """What of the catalogue is asked for; empty: all."""

    words: str = ""
    host: str = ""  # key
    lane: Lane | None = None  # on whose cards it fits
    able: str = ""  # a capability
    show: str = ""  # BOOKABLE or LOADED


@dataclass(frozen=True, slots=True)
class PresetRow:
    """One preset of a model. Times are seconds; None: never measured."""

    preset: Preset
    revision: PresetRevision
    facts: ServerFacts
    fastest: float | None  # of the lanes' mean loads
    slowest: float | None
    speed: float | None  # tokens a second, on the lane where it is fastest
    running: Sequence[Runtime]
    lane: Lane | None  # to book it on: where it runs already, else the first that it fits


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One model, the lanes of its host, and its presets."""

    file: ModelFile
    fits: Sequence[Lane]
    too_small: Sequence[Lane]
    presets: Sequence[PresetRow]

    @property
    def lanes(self) -> int:
        """How many its host has."""
        return len(self.fits) + len(self.too_small)


class Catalogue:
    """What every page of the catalogue needs, read in four queries."""

    def __init__(self) -> None:
        cards = Prefetch("gpus", Gpu.objects.only("memory_bytes"))
        lanes = Lane.objects.filter(enabled=True).only("slug", "name", "host", "enabled")
        self.lanes = list(lanes.prefetch_related(cards))
        self.revisions = list(current_revisions())
        self.facts: Mapping[int, ServerFacts] = facts_of(self.revisions)

    @property
    def abilities(self) -> list[str]:
        """Every capability that some preset has."""
        return sorted({able for facts in self.facts.values() for able in facts.capabilities})

    def files(self, wish: Wish) -> QuerySet[ModelFile]:
        """The models that are asked for; those that can be booked come first."""
        current = PresetRevision.objects.filter(
            preset__current=F("pk"), preset__archived_at=None, model_file=OuterRef("pk")
        )
        found = self._narrowed(ModelFile.objects.listed().select_related("host"), wish)
        if wish.show == BOOKABLE:
            found = found.filter(Exists(current))
        return found.order_by(Exists(current).desc(), "name", "pk")

    def _narrowed(self, found: QuerySet[ModelFile], wish: Wish) -> QuerySet[ModelFile]:
        if wish.host:
            found = found.filter(host__key=wish.host)
        if wish.lane is not None:
            found = _fitting(found, wish.lane)
        if wish.able:
            found = found.filter(pk__in=self._able(wish.able))
        if wish.show == LOADED:
            found = found.filter(pk__in=_loaded())
        for word in wish.words.split():
            found = found.filter(self._named(word))
        return found

    def rows(self, files: Iterable[ModelFile]) -> list[ModelRow]:
        """These models with their presets and what was measured of them; four queries, three where
        speeds were read within a minute."""
        files = list(files)
        shown = {file.pk for file in files}
        revisions = [each for each in self.revisions if each.model_file_id in shown]
        measured = figures(revisions, self.lanes, kept_speeds())
        of_file: dict[int, list[PresetRow]] = {}
        for each in revisions:
            of_file.setdefault(each.model_file_id, []).append(self._preset(each, measured))
        return [self._model(file, of_file.get(file.pk, [])) for file in files]

    def _model(self, file: ModelFile, presets: list[PresetRow]) -> ModelRow:
        fits, too_small = fitting(self.lanes, file)
        return ModelRow(file, fits, too_small, presets)

    def _preset(self, revision: PresetRevision, measured: Figures) -> PresetRow:
        preset = revision.preset
        fits, _ = fitting(self.lanes, revision.model_file)
        loads = [
            measured.loads[key]
            for lane in self.lanes
            if (key := (lane.pk, preset.pk)) in measured.loads
        ]
        speeds = [speed for (_, slug), speed in measured.speeds.items() if slug == preset.slug]
        running = measured.running.get(preset.pk, [])
        free = [runtime.lane for runtime in running if runtime.lane.enabled]
        return PresetRow(
            preset=preset,
            revision=revision,
            facts=self.facts[revision.pk],
            fastest=min(loads, default=None),
            slowest=max(loads, default=None),
            speed=max(speeds, default=None),
            running=running,
            lane=next(iter([*free, *fits]), None),
        )

    def _able(self, able: str) -> set[int]:
        return {
            each.model_file_id
            for each in self.revisions
            if able in self.facts[each.pk].capabilities
        }

    def _named(self, word: str) -> Q:
        """Whether a word is in what a model is called, or its presets."""
        lowered = word.lower()
        presets = {
            each.model_file_id
            for each in self.revisions
            if any(lowered in name.lower() for name in _names(each))
        }
        facts = Q(architecture__icontains=word) | Q(quantisation__icontains=word)
        return Q(name__icontains=word) | facts | Q(pk__in=presets)


def current_revisions() -> QuerySet[PresetRevision]:
    """The newest of each preset that can be booked, with its preset and model; one query."""
    offered = PresetRevision.objects.filter(preset__current=F("pk"), preset__archived_at=None)
    return offered.select_related("preset", "model_file").order_by("preset__name")


def fitting(lanes: Iterable[Lane], file: ModelFile) -> tuple[list[Lane], list[Lane]]:
    """The lanes of its host on whose cards it fits, and those on whose cards it does not."""
    own = [lane for lane in lanes if lane.host_id == file.host_id]
    too_small = lanes_too_small(own, file)
    return [lane for lane in own if lane not in too_small], too_small


def _fitting(files: QuerySet[ModelFile], lane: Lane) -> QuerySet[ModelFile]:
    memory = gpu_memory(lane)
    found = files.filter(host=lane.host_id)
    return found.filter(size_bytes__lte=memory) if memory else found


def _loaded() -> QuerySet[Runtime, int]:
    alive = Runtime.objects.filter(ended_at=None).order_by()
    return alive.values_list("revision__model_file", flat=True)


def _names(revision: PresetRevision) -> list[str]:
    return [revision.preset.slug, revision.preset.name, *revision.aliases]
