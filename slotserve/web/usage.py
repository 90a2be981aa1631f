"""The page of usage: who held what, what for, and what nobody used."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from django.conf import settings
from django.contrib.auth.models import User
from django.core.cache import caches
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_safe

from gateway import usage_tables
from gateway.usage_tables import Group, Held, Line, Question
from lanes import clock
from lanes.models import Lane
from slotserve.csv_answers import Cell, csv_answer
from slotserve.live.state import digest_of
from slotserve.usage_question import Asked, read_question
from slotserve.web.access import members_only
from slotserve.web.answers import member

HOUR = 3600.0
KEPT_SECONDS = 60
GROUPS_SHOWN = 50  # the rest is in the CSV file
BY_WORDS = {
    "member": gettext_lazy("Member"),
    "lane": gettext_lazy("Lane"),
    "preset": gettext_lazy("Preset"),
}
CSV_HEAD = (
    "day",
    "member",
    "lane",
    "preset",
    "booked_hours",
    "used_hours",
    "loading_hours",
    "idle_hours",
    "whole_gpu_hours",
    "requests",
    "refused",
    "prompt_tokens",
    "completion_tokens",
)


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to a question."""

    days: list[Group]
    groups: list[Group]  # those that held longest
    left_out: int
    held: list[Held]


@members_only
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Charts, each with its table; members see their own, administrators all."""
    viewer, now = member(request), clock.database_now()
    asked = read_question(_parameters(request), viewer, now)
    by = asked.by if asked.by in BY_WORDS else "lane"
    found = _found(viewer, asked.question, by)
    context: dict[str, Any] = {
        "asked": asked,
        "days": found.days,
        "total": usage_tables.total(found.days),
        "groups": found.groups,
        "left_out": found.left_out,
        "by": by,
        "by_word": BY_WORDS[by],
        "by_choices": [each for each in BY_WORDS.items() if _may_divide(each[0], viewer)],
        "held": found.held,
        "zone": settings.TIME_ZONE,
        "query": request.GET.urlencode(),
        **_choices(request, asked),
    }
    return render(request, "usage.html", context, status=400 if asked.errors else 200)


@members_only
@require_GET
def export(request: HttpRequest) -> HttpResponse:
    """The same as CSV, a line for each day, member, lane and preset."""
    viewer, now = member(request), clock.database_now()
    asked = read_question(_parameters(request), viewer, now)
    if asked.errors:
        words = " ".join(asked.errors.values())
        return HttpResponse(words, status=400, content_type="text/plain; charset=utf-8")
    name = f"usage-{asked.question.first}-{asked.question.last}.csv"
    return cast(HttpResponse, csv_answer(name, _csv_batches(request, asked.question)))


def _csv_batches(request: HttpRequest, question: Question) -> Iterator[Sequence[Sequence[Cell]]]:
    yield [CSV_HEAD]
    for day in usage_tables.lines(member(request), question):
        yield [_csv_row(line) for line in day]


def _csv_row(line: Line) -> Sequence[Cell]:
    sums = line.sums
    seconds = (sums.booked, sums.used, sums.loading, sums.idle, sums.unmeasured)
    hours = [round(each / HOUR, 4) for each in seconds]
    counts = (sums.requests, sums.refused, sums.prompt_tokens, sums.completion_tokens)
    return [line.day.isoformat(), line.member, line.lane, line.preset, *hours, *counts]


def _parameters(request: HttpRequest) -> dict[str, str]:
    return {name: str(value) for name, value in request.GET.items()}


def _may_divide(name: str, viewer: User) -> bool:
    return name != "member" or viewer.is_staff


def _found(viewer: User, question: Question, by: str) -> Found:
    """What is asked; kept for whoever sees the same rows, as `_names`."""
    key = digest_of("usage found", _rows_seen(viewer), question, by, GROUPS_SHOWN)
    kept: Found | None = caches["sums"].get(key)
    if kept is None:
        groups = usage_tables.grouped(viewer, question, by)
        kept = Found(
            days=usage_tables.grouped(viewer, question, "day"),
            groups=groups[:GROUPS_SHOWN],
            left_out=max(0, len(groups) - GROUPS_SHOWN),
            held=usage_tables.held_without_computing(viewer, question),
        )
        caches["sums"].set(key, kept, KEPT_SECONDS)
    return kept


def _rows_seen(viewer: User) -> str:
    """The same for those who see the same rows: administrators, or one member."""
    return "all" if viewer.is_staff else f"of {viewer.pk}"


def _choices(request: HttpRequest, asked: Asked) -> dict[str, Any]:
    """What may be chosen of each filter: what is in the period, and lanes that are still there."""
    viewer = member(request)
    members, presets = _names(viewer, Question(asked.question.first, asked.question.last))
    lanes = list(Lane.objects.order_by("name").values_list("pk", "slug", "name"))
    return {
        "members": [(name, name) for name in members] if viewer.is_staff else [],
        "lanes": [(slug, name) for _pk, slug, name in lanes],
        "lane": next((slug for pk, slug, _name in lanes if pk == asked.question.lane_id), ""),
        "presets": [(name, name) for name in presets],
        "nothing": _("(none)"),
    }


def _names(viewer: User, period: Question) -> tuple[list[str], list[str]]:
    """Members and presets of a period; kept for whoever sees the same rows, as long as usage of a
    day is not worked out anew anyway."""
    key = digest_of("usage", _rows_seen(viewer), period)
    kept: tuple[list[str], list[str]] | None = caches["sums"].get(key)
    if kept is None:
        rows = usage_tables.rows_of(viewer, period)  # of which many have the same two names
        found = (rows.values_list(name, flat=True).distinct() for name in ("owner_name", "preset"))
        members, presets = (sorted(name for name in names if name) for names in found)
        kept = members, presets
        caches["sums"].set(key, kept, KEPT_SECONDS)
    return kept
