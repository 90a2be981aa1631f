"""What callers may want to know of the presets, read in a fixed number of queries."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from django.db.models import OuterRef, Subquery

from gateway.edge.table import ModelInfo
from gateway.route_facts import LaneFacts
from lanes.engines.base import ServerFacts
from lanes.engines.registry import engine_with
from lanes.estimates import first_guess, measured_loads
from lanes.models import Preset, Runtime


@dataclass(frozen=True, slots=True)
class PresetFacts:
    """One preset as its current revision says; without one it has a name only."""

    pk: int
    slug: str
    name: str
    engine: str | None = None
    arguments: tuple[str, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    size_bytes: int | None = None
    host_id: int | None = None  # where its file is
    runtime_id: int | None = None  # the newest server of this revision that told of itself


def read_presets() -> list[PresetFacts]:
    """Every preset that is not archived, by slug; one query."""
    told = Runtime.objects.filter(revision=OuterRef("current"), context_length__isnull=False)
    rows = (
        Preset.objects.filter(archived_at=None)
        .order_by("slug")
        .values_list(
            "pk",
            "slug",
            "name",
            "current__engine",
            "current__arguments",
            "current__options",
            "current__aliases",
            "current__model_file__size_bytes",
            "current__model_file__host",
            Subquery(told.order_by("-pk").values("pk")[:1]),
        )
    )
    return [
        PresetFacts(
            pk, slug, name, kind, tuple(arguments or ()), options or {}, tuple(aliases or ()), *rest
        )
        for pk, slug, name, kind, arguments, options, aliases, *rest in rows
    ]


def preset_names(presets: Iterable[PresetFacts]) -> dict[str, str]:
    """Every name of a preset with its slug: aliases, and slugs, which win."""
    by_slug = sorted(presets, key=lambda preset: preset.slug, reverse=True)
    names = {alias: preset.slug for preset in by_slug for alias in preset.aliases}
    return names | {preset.slug: preset.slug for preset in by_slug}


def read_catalogue(
    presets: Iterable[PresetFacts], lanes: Sequence[LaneFacts]
) -> dict[str, ModelInfo]:
    """What can be said of each preset that has a revision; two queries."""
    known = [preset for preset in presets if preset.engine is not None]
    told = _told({preset.runtime_id for preset in known if preset.runtime_id is not None})
    slugs = {lane.pk: lane.slug for lane in lanes}
    of_hosts: dict[int | None, list[str]] = defaultdict(list)
    for lane in lanes:
        of_hosts[lane.host_id].append(lane.slug)
    loads: dict[int, dict[str, float]] = defaultdict(dict)
    for (lane_pk, preset_pk), seconds in measured_loads().items():
        if lane_pk in slugs:
            loads[preset_pk][slugs[lane_pk]] = round(seconds, 1)
    return {
        preset.slug: replace(
            _info(preset, told.get(preset.runtime_id)),
            lane_seconds=loads[preset.pk],
            lanes=tuple(of_hosts[preset.host_id]),
        )
        for preset in known
    }


def _told(runtimes: set[int]) -> dict[int | None, ServerFacts]:
    fields = ("pk", "slots", "context_length", "capabilities")
    rows = Runtime.objects.filter(pk__in=runtimes).values_list(*fields)
    return {pk: ServerFacts(slots, context, tuple(able)) for pk, slots, context, able in rows}


def _info(preset: PresetFacts, told: ServerFacts | None) -> ModelInfo:
    """What its newest server said; before there was one, what its arguments let expect."""
    facts = told or engine_with(preset.engine or "", preset.options).facts(preset.arguments, None)
    size = preset.size_bytes or None
    return ModelInfo(
        name=preset.name,
        context_length=facts.context_length,
        capabilities=facts.capabilities,
        size_bytes=size,
        load_seconds=round(first_guess(size), 1) if size else None,
    )
