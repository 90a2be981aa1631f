"""What a lane did: all its sentences, a page at a time, and its loads."""

from typing import Any

from django import forms
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from lanes.models import Lane, LoadRecord
from slotserve.overview import lanes_for_people
from slotserve.web.access import members_only
from slotserve.web.fields import StyledForm
from slotserve.web.load_picture import Loads, draw_loads

EVENTS_SHOWN = 50  # a page
LOADS_SHOWN = 40
MOST = 2**63 - 1
DECISIONS = Q(kind__in=("order", "restart"))
SERVERS = Q(
    kind__in=(
        "starting",
        "ready",
        "draining",
        "stopping",
        "stopped",
        "failed",
        "blocked",
        "swept",
        "refused",
    )
)
BOOKINGS = Q(kind__startswith="booking.")
PEOPLE = Q(kind__in=("choice", "reload", "edit", "test", "maintenance"))
KINDS = {
    "decisions": (_("Decisions"), DECISIONS),
    "servers": (_("Model servers"), SERVERS),
    "bookings": (_("Bookings"), BOOKINGS),
    "people": (_("Administration"), PEOPLE),
    "others": (_("Host, cards and files"), ~(DECISIONS | SERVERS | BOOKINGS | PEOPLE)),
}


class HistoryForm(StyledForm):
    """Which sentences, and before which one; what it does not know is left out."""

    kind = forms.ChoiceField(
        required=False,
        label=_("Show"),
        choices=[("", _("Everything")), *((name, label) for name, (label, _q) in KINDS.items())],
    )
    before = forms.IntegerField(min_value=1, max_value=MOST, required=False)


@members_only
@require_safe
def page(request: HttpRequest, slug: str) -> HttpResponse:
    """The lane's loads, and its sentences, the newest first."""
    lane = get_object_or_404(lanes_for_people(), slug=slug)
    form = HistoryForm(request.GET)
    form.is_valid()
    kind, before = form.cleaned_data.get("kind", ""), form.cleaned_data.get("before")
    found = lane.events.select_related("actor").order_by("-pk")
    if kind:
        found = found.filter(KINDS[kind][1])
    if before:
        found = found.filter(pk__lt=before)
    events = list(found[: EVENTS_SHOWN + 1])
    context: dict[str, Any] = {
        "lane": lane,
        "form": form,
        "kind": kind,
        "before": before,
        "events": events[:EVENTS_SHOWN],
        "older": events[EVENTS_SHOWN - 1].pk if len(events) > EVENTS_SHOWN else None,
        "loads": loads_of(lane, LOADS_SHOWN),
    }
    return render(request, "lane_history.html", context)


def loads_of(lane: Lane, count: int) -> Loads:
    """Its newest loads as a picture; one query."""
    newest = LoadRecord.objects.filter(lane=lane).select_related("revision__preset")
    return draw_loads(list(newest[:count]))
