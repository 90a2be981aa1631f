"""The catalogue of models and presets, for all members."""

from dataclasses import dataclass
from typing import Any

from django import forms
from django.conf import settings
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from lanes.models import Host, Preset
from lanes.preset_notes import notes_of
from slotserve.catalogue import BOOKABLE, LOADED, Catalogue, Wish
from slotserve.preset_figures import facts_of
from slotserve.preset_page import RevisionRow, history, lane_rows
from slotserve.web import preset_words
from slotserve.web.access import members_only
from slotserve.web.answers import kept_query, member
from slotserve.web.fields import StyledForm

MODELS_SHOWN = 25  # a page
LONGEST_SEARCH = 100


class CatalogueForm(StyledForm):
    """What of the catalogue is shown; what it does not know is left out rather than refused."""

    q = forms.CharField(max_length=LONGEST_SEARCH, required=False, label=_("Search"))
    show = forms.ChoiceField(
        required=False,
        label=_("Show"),
        choices=[
            ("", _("All models")),
            (BOOKABLE, _("Those that can be booked")),
            (LOADED, _("Those that are loaded now")),
        ],
    )
    lane = forms.ChoiceField(required=False, label=_("Fits the lane"))
    able = forms.ChoiceField(required=False, label=_("Capability"))
    host = forms.ChoiceField(required=False, label=_("Host"))

    def __init__(self, *args: Any, catalogue: Catalogue, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lanes = {lane.slug: lane for lane in catalogue.lanes}
        self.hosts = list(Host.objects.order_by("name"))
        lanes = [(lane.slug, lane.name) for lane in catalogue.lanes]
        self._offer("lane", _("Any lane"), lanes)
        self._offer("able", _("Any"), [(able, able) for able in catalogue.abilities])
        self._offer("host", _("Any host"), [(host.key, host.name) for host in self.hosts])
        self.fields["q"].widget.input_type = "search"

    def wish(self) -> Wish:
        """What is asked for, as far as it can be understood."""
        self.is_valid()
        said = self.cleaned_data
        return Wish(
            words=said.get("q", ""),
            host=said.get("host", ""),
            lane=self._lanes.get(said.get("lane", "")),
            able=said.get("able", ""),
            show=said.get("show", ""),
        )

    def _offer(self, name: str, empty: Any, choices: list[tuple[str, str]]) -> None:
        self.fields[name].choices = [("", empty), *choices]  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """A revision, and what it changed in words."""

    row: RevisionRow
    sentences: list[str]


@members_only
@require_safe
def models(request: HttpRequest) -> HttpResponse:
    """Every model with its presets; the list alone while somebody types."""
    catalogue = Catalogue()
    form = CatalogueForm(request.GET, catalogue=catalogue)
    wish = form.wish()
    page = Paginator(catalogue.files(wish), MODELS_SHOWN).get_page(request.GET.get("page"))
    context = {
        "form": form,
        "rows": catalogue.rows(page.object_list),
        "page": page,
        "query": kept_query(request),
        "is_narrowed": wish != Wish(),
    }
    template = "_catalogue.html" if request.htmx else "catalogue.html"  # type: ignore[attr-defined]
    return render(request, template, context)


@members_only
@require_safe
def preset(request: HttpRequest, slug: str) -> HttpResponse:
    """One preset: what it is, how it does on each lane, how to call it, its history."""
    wanted = Preset.objects.filter(current__isnull=False)
    found = get_object_or_404(
        wanted.select_related("current__model_file__host__llama_server"), slug=slug
    )
    revision = found.current
    lanes = lane_rows(found)
    context = {
        "preset": found,
        "revision": revision,
        "file": revision.model_file if revision else None,
        "facts": facts_of([revision])[revision.pk] if revision else None,
        "lanes": lanes,
        "booked_on": next((row.lane for row in lanes if row.fits), None),
        "history": _history(found, is_told_all=member(request).is_staff),
        "notes": notes_of(found) if member(request).is_staff else [],
        "gateway": settings.SLOTSERVE_GATEWAY_URL,
    }
    return render(request, "preset.html", context)


def _history(preset: Preset, *, is_told_all: bool) -> list[HistoryRow]:
    """Arguments may tell of the host: members are told what an edit was about, no more."""
    rows = history(preset)
    if not is_told_all:
        return [HistoryRow(row, _areas(row)) for row in rows]
    told = [each for row in rows for each in row.changes if each.field == "model"]
    pks = {pk for each in told for pk in (each.old, each.new) if pk}
    files = preset_words.model_names(pks) if pks else {}
    return [
        HistoryRow(row, [preset_words.sentence(each, files) for each in row.changes])
        for row in rows
    ]


def _areas(row: RevisionRow) -> list[str]:
    return list(dict.fromkeys(preset_words.area(each) for each in row.changes))
