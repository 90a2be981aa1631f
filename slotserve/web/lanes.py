"""Pages about lanes."""

from typing import cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from bookings import choices
from lanes import clock, log_reading
from lanes.models import Lane
from lanes.refusals import Refusal
from slotserve.overview import lanes_for_people, overviews, recent_events
from slotserve.web.access import staff_required
from slotserve.web.forms import ChooseForm, gateway_address


@login_required
@require_safe
def overview(request: HttpRequest) -> HttpResponse:
    """All lanes with what they do now; the fragment alone for a refresh."""
    lanes = overviews(lanes_for_people().order_by("name"), clock.database_now())
    template = "_lanes.html" if request.htmx else "overview.html"  # type: ignore[attr-defined]
    return render(request, template, {"lanes": lanes, "gateway": gateway_address()})


@login_required
@require_safe
def lane(request: HttpRequest, slug: str) -> HttpResponse:
    """One lane: state, bookings, events; for administrators its controls."""
    found = get_object_or_404(lanes_for_people(), slug=slug)
    now = clock.database_now()
    (view,) = overviews([found], now)
    context = {
        "view": view,
        "lane": found,
        "events": recent_events(found),
        "bookings": found.bookings.current(now).select_related("owner", "preset"),
        "gateway": gateway_address(),
        "form": ChooseForm(initial=ChooseForm.initial_at(now)),
    }
    template = "_lane.html" if request.htmx else "lane.html"  # type: ignore[attr-defined]
    return render(request, template, context)


@staff_required
@require_POST
def choose(request: HttpRequest, slug: str) -> HttpResponse:
    """Load a preset, or unload, until a time."""
    found = get_object_or_404(Lane, slug=slug)
    form = ChooseForm(request.POST)
    if not form.is_valid():
        words = " ".join(str(text) for texts in form.errors.values() for text in texts)
        messages.error(request, words)
        return redirect("lane", slug)
    made = choices.choose(found, actor=cast(User, request.user), **form.cleaned_data)
    if isinstance(made, Refusal):
        messages.error(request, made.words)
    else:
        messages.success(request, made.words)
    return redirect("lane", slug)


@staff_required
@require_POST
def clear_choice(request: HttpRequest, slug: str) -> HttpResponse:
    """End the choice in force."""
    found = get_object_or_404(Lane, slug=slug)
    _say(request, choices.clear_choice(found, actor=cast(User, request.user)), "Choice ended.")
    return redirect("lane", slug)


@staff_required
@require_POST
def reload(request: HttpRequest, slug: str) -> HttpResponse:
    """Restart the model server at once."""
    found = get_object_or_404(Lane, slug=slug)
    refusal = choices.reload(found, actor=cast(User, request.user))
    _say(request, refusal, "Restarting the model server.")
    return redirect("lane", slug)


@staff_required
@require_safe
def log(request: HttpRequest, slug: str) -> HttpResponse:
    """The end of the model server's own output."""
    found = get_object_or_404(Lane, slug=slug)
    lines = log_reading.tail_of_lane(found)
    return render(request, "log.html", {"lane": found, "lines": lines})


def _say(request: HttpRequest, refusal: Refusal | None, words: str) -> None:
    if refusal:
        messages.error(request, refusal.words)
    else:
        messages.success(request, words)
