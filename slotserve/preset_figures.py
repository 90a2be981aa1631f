"""What has been measured of presets: loads, tokens a second, what their servers can do. Reads."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.core.cache import caches
from django.db.models import Count, F, Max, OuterRef, Q, Subquery, Sum
from django.db.models.functions import Coalesce

from gateway.models import UsageRecord
from lanes.engines.base import ServerFacts
from lanes.engines.registry import engine_of
from lanes.estimates import Pair, mean_loads
from lanes.models import Lane, LoadRecord, PresetRevision, Runtime, TestLoad

COUNTED_REQUESTS = 10_000  # the newest of all: an index gives them, however long the history
COUNTED_TESTS = 500  # the newest
SAID = ("phase", "lane__slug", "lane__name", "lane__enabled", "revision__preset_id")
SPEEDS, KEPT_SECONDS = "speeds", 60
LEAST_MS = 50.0  # of streaming; shorter answers say nothing of a rate

Speeds = Mapping[tuple[int, str], float]


@dataclass(frozen=True, slots=True)
class Figures:
    """Of some presets on some lanes; what was never seen is not there."""

    loads: Mapping[Pair, float]  # seconds, by lane and preset
    speeds: Speeds  # tokens a second, by lane and the preset's slug
    running: Mapping[int, list[Runtime]]  # living servers, by preset


def figures(
    revisions: Sequence[PresetRevision], lanes: Iterable[Lane], streamed: Speeds
) -> Figures:
    """Three queries. Give the revisions their `model_file`, and the speeds of all."""
    lanes = list(lanes)
    pairs = [
        (lane.pk, revision.preset_id)
        for revision in revisions
        for lane in lanes
        if lane.host_id == revision.model_file.host_id
    ]
    told = {**tested_speeds({revision.preset_id for revision in revisions}), **streamed}
    return Figures(mean_loads(pairs), told, _running(revisions))


def kept_speeds() -> Speeds:
    """`speeds`, kept for a minute: means of thousands of requests, and the same for all."""
    kept: Speeds | None = caches["cards"].get(SPEEDS)
    if kept is None:
        kept = speeds()
        caches["cards"].set(SPEEDS, kept, KEPT_SECONDS)
    return kept


def speeds() -> dict[tuple[int, str], float]:
    """Tokens a second while streaming, of each lane and preset's slug; one query.

    Of the newest requests: completion tokens over the time from the first byte to the last.
    """
    newest = Coalesce(Subquery(UsageRecord.objects.order_by("-pk").values("pk")[:1]), 0)
    streamed = F("duration_ms") - F("first_byte_ms")
    rows = (
        UsageRecord.objects.order_by()
        .filter(pk__gt=newest - COUNTED_REQUESTS, completion_tokens__gt=1, lane__isnull=False)
        .annotate(streamed=streamed)
        .filter(streamed__gte=LEAST_MS)
        .values_list("lane", "preset")
        .annotate(tokens=Sum("completion_tokens"), ms=Sum("streamed"))
    )
    return {(lane, slug): tokens / ms * 1000 for lane, slug, tokens, ms in rows}


def tested_speeds(presets: Collection[int]) -> dict[tuple[int, str], float]:
    """The same of the newest test load of each, which says it before anybody asks; one query."""
    tests = TestLoad.objects.filter(revision__preset__in=presets, tokens_per_second__gt=0)
    newest = tests.order_by("-pk").values_list(
        "lane", "revision__preset__slug", "tokens_per_second"
    )[:COUNTED_TESTS]
    return {(lane, slug): speed for lane, slug, speed in reversed(list(newest)) if speed}


def facts_of(revisions: Iterable[PresetRevision]) -> dict[int, ServerFacts]:
    """What each can do, by primary key: as its newest server said, before there was one as its
    arguments let expect; one query."""
    revisions = list(revisions)
    told = Runtime.objects.filter(revision=OuterRef("pk"), context_length__isnull=False)
    newest = PresetRevision.objects.filter(pk__in=[each.pk for each in revisions]).order_by()
    pks = newest.values(newest=Subquery(told.order_by("-pk").values("pk")[:1]))
    rows = Runtime.objects.filter(pk__in=pks).order_by()
    found = {
        revision: ServerFacts(slots, context, tuple(able))
        for revision, slots, context, able in rows.values_list(
            "revision", "slots", "context_length", "capabilities"
        )
    }
    return {
        each.pk: found.get(each.pk) or engine_of(each).facts(each.arguments, None)
        for each in revisions
    }


def load_counts(preset_pk: int) -> dict[int, tuple[int, int, datetime]]:
    """Of each lane that loaded it: loads that succeeded, those that failed, and when the newest
    began; one query."""
    good, bad = (Count("pk", filter=Q(succeeded=each)) for each in (True, False))
    rows = (
        LoadRecord.objects.filter(revision__preset=preset_pk)
        .order_by()
        .values_list("lane")
        .annotate(good=good, bad=bad, last=Max("started_at"))
    )
    return {lane: (well, badly, last) for lane, well, badly, last in rows}


def _running(revisions: Iterable[PresetRevision]) -> dict[int, list[Runtime]]:
    presets = {each.preset_id for each in revisions}
    alive = Runtime.objects.filter(ended_at=None, revision__preset__in=presets)
    found: dict[int, list[Runtime]] = {}
    for runtime in alive.select_related("lane", "revision").order_by("lane__name").only(*SAID):
        found.setdefault(runtime.revision.preset_id, []).append(runtime)
    return found
