"""Pages about lanes."""

from datetime import datetime

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from bookings import choices
from lanes import clock, services
from lanes.log_reading import may_read
from lanes.maintenance import not_over
from lanes.models import Lane
from lanes.refusals import Refusal
from lanes.telling import tell
from slotserve.live.reading import lanes_digest
from slotserve.overview import lanes_for_people, overviews, recent_events
from slotserve.web.access import came_from, members_only, page_of, staff_required
from slotserve.web.answers import member, say
from slotserve.web.forms import ChooseForm, DefaultForm
from slotserve.web.gpus import cards_context, day_context, hours_of
from slotserve.web.lane_filters import Wish
from slotserve.web.lane_history import loads_of
from slotserve.web.logs import Shown
from slotserve.web.maintenance import LaneMaintenanceForm
from slotserve.web.notices import notice_context
from slotserve.web.rows import rows

CLAIMS_SHOWN = 20
LOADS_SHOWN = 20


@members_only
@require_safe
def overview(request: HttpRequest) -> HttpResponse:
    """All lanes with what they do now; for a refresh the fragment alone, or one lane's card."""
    now = clock.database_now()
    if request.htmx and "lane" in request.GET:  # type: ignore[attr-defined]
        lane = get_object_or_404(lanes_for_people(), slug=request.GET["lane"])
        (view,) = overviews([lane], now, member(request))
        return render(request, "_lane_card.html", {"view": view, "here": page_of(request)})
    views = overviews(lanes_for_people().order_by("name"), now, member(request))
    wish = Wish.of(request.GET)
    context = {
        "lanes": wish.of_all(views, member(request)),
        "count": len(views),
        "wish": wish,
        "here": page_of(request),
        "lanes_digest": lanes_digest(view.lane.slug for view in views),
        **notice_context(now),
    }
    template = "_lanes.html" if request.htmx else "overview.html"  # type: ignore[attr-defined]
    return render(request, template, context)


@members_only
@require_safe
def lane(request: HttpRequest, slug: str) -> HttpResponse:
    """One lane: state, bookings, events; for administrators its controls."""
    found = get_object_or_404(lanes_for_people(), slug=slug)
    now = clock.database_now()
    return _page(request, found, ChooseForm(lane=found, now=now), now)


@members_only
@require_safe
def use(request: HttpRequest, slug: str) -> HttpResponse:
    """How to call its model: that part of its page alone."""
    found = get_object_or_404(lanes_for_people(), slug=slug)
    (view,) = overviews([found], clock.database_now(), member(request))
    context = {"view": view, "lane": found, "gateway": settings.SLOTSERVE_GATEWAY_URL}
    return render(request, "_use.html", context)


@staff_required
@require_http_methods(["GET", "HEAD", "POST"])
def choose(request: HttpRequest, slug: str) -> HttpResponse:
    """Load a preset, or unload, until a time."""
    if request.method != "POST":  # somebody reloads the address of a refusal
        return redirect("lane", slug)
    found = get_object_or_404(lanes_for_people(), slug=slug)
    now = clock.database_now()
    form = ChooseForm(request.POST, lane=found, now=now)
    if form.is_valid():
        made = choices.choose(found, actor=member(request), **form.cleaned_data)
        if not isinstance(made, Refusal):
            messages.success(request, _("Chosen: %(made)s.") % {"made": tell(made.words)})
            return redirect("lane", slug)
        form.add_error(None, made.words)
    return _page(request, found, form, now)


@staff_required
@require_POST
def clear_choice(request: HttpRequest, slug: str) -> HttpResponse:
    """End the choice in force."""
    found = get_object_or_404(Lane, slug=slug)
    say(request, choices.clear_choice(found, actor=member(request)), _("The choice has ended."))
    return redirect("lane", slug)


@staff_required
@require_POST
def reload(request: HttpRequest, slug: str) -> HttpResponse:
    """Restart the model server at once."""
    found = get_object_or_404(Lane, slug=slug)
    refusal = choices.reload(found, actor=member(request))
    say(request, refusal, _("The model server is restarted."))
    return redirect("lane", slug)


@staff_required
@require_http_methods(["GET", "HEAD", "POST"])
def set_default(request: HttpRequest, slug: str) -> HttpResponse:
    """What the lane runs between bookings."""
    if request.method != "POST":  # somebody reloads the address of a refusal
        return redirect("lane", slug)
    found = get_object_or_404(lanes_for_people(), slug=slug)
    form, words = DefaultForm(request.POST, lane=found), _("Choose one of the presets of its host.")
    if form.is_valid():
        saved = services.save_lane(found, actor=member(request), **form.cleaned_data)
        if not isinstance(saved, Refusal):
            messages.success(request, _("The default is saved."))
            return redirect("lane", slug)
        words = saved.words
    messages.error(request, words)
    now = clock.database_now()
    return _page(request, found, ChooseForm(lane=found, now=now), now, default=form)


@members_only
@require_POST
def retry(request: HttpRequest, slug: str) -> HttpResponse:
    """Try at once what failed; then back to the page that has the button."""
    found = get_object_or_404(Lane, slug=slug)
    refusal = choices.retry(found, actor=member(request))
    say(request, refusal, _("It is tried again now."))
    return redirect(came_from(request, reverse("lane", args=[slug])))


def _page(
    request: HttpRequest,
    lane: Lane,
    form: ChooseForm,
    now: datetime,
    *,
    default: DefaultForm | None = None,
) -> HttpResponse:
    """The lane's page; `default` is the refused form of its default, with what was chosen there."""
    (view,) = overviews([lane], now, member(request))
    claims = lane.bookings.current(now).select_related("owner", "preset")[:CLAIMS_SHOWN]
    context = {
        "view": view,
        **notice_context(now),
        "lane": lane,
        "events": recent_events(lane),
        "rows": rows(claims, member(request), now),
        "back": reverse("lane", args=[lane.slug]),
        "gateway": settings.SLOTSERVE_GATEWAY_URL,
        "form": form,
    }
    if member(request).is_staff:
        context["default_form"] = default or DefaultForm(lane=lane)
        context["maintenance"] = not_over(now, [lane.pk])
        names = {"auto_id": "maintenance_%s", "initial": {"lanes": [lane.pk]}}
        context["maintenance_form"] = LaneMaintenanceForm(**names)
    is_news = bool(request.htmx)  # type: ignore[attr-defined]
    template = "_lane.html" if is_news else "lane.html"
    context |= {"loads": loads_of(lane, LOADS_SHOWN), "is_news": is_news}
    if template == "lane.html":
        context |= {"may_read": may_read(member(request)), "no_run": Shown(None)}
    if template == "lane.html" and lane.gpus.all():
        context |= cards_context(lane, now, member(request))
        context |= day_context(lane, now, hours_of(request))
    return render(request, template, context, status=400 if form.errors or default else 200)
