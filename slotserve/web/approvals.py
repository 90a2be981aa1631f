"""The page for administrators of the bookings that wait for them."""

from collections.abc import Iterable
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from bookings import services
from bookings.approvals import pending, queue
from bookings.models import Booking
from bookings.states import LONGEST_COMMENT
from lanes import clock
from lanes.refusals import Refusal
from slotserve.web.access import staff_required
from slotserve.web.answers import member

ON_A_PAGE = 25
MOST_AT_ONCE = 200
SERVICES = {"approve": services.approve, "reject": services.reject}


@staff_required
@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    """What waits and why; approve or reject one (`only`) or all that are ticked (`booking`)."""
    if request.method == "POST":
        return _decide(request)
    context = _context(request)
    is_part = request.htmx  # type: ignore[attr-defined]
    return render(request, "_approvals.html" if is_part else "approvals.html", context)


def _context(request: HttpRequest) -> dict[str, Any]:
    now = clock.database_now()
    page = Paginator(pending(now), ON_A_PAGE).get_page(request.GET.get("page"))
    return {
        "page": page,
        "rows": queue(page, now),
        "ticked": _numbers((request.POST or request.GET).getlist("booking")),
        "comment": request.POST.get("comment", ""),
        "longest": LONGEST_COMMENT,
    }


def _decide(request: HttpRequest) -> HttpResponse:
    name, _colon, only = request.POST.get("decision", "").partition(":")
    service = SERVICES.get(name)
    numbers = _numbers([only] if only else request.POST.getlist("booking"))
    if service is None or not numbers:
        messages.error(request, _("Tick the bookings that you decide about."))
        return _refused_page(request)
    actor, comment, done, refused = member(request), request.POST.get("comment", ""), 0, 0
    for booking in _found(numbers):
        answer = service(booking, actor=actor, comment=comment)
        done += not isinstance(answer, Refusal)
        if isinstance(answer, Refusal):
            refused += 1
            messages.error(request, _refused(booking, answer))
    if done:
        messages.success(request, _done_words(name, done))
    return _refused_page(request) if refused else _back(request)


def _refused_page(request: HttpRequest) -> HttpResponse:
    """The page with what was ticked and typed, as far as it still waits."""
    return render(request, "approvals.html", _context(request), status=409)


def _back(request: HttpRequest) -> HttpResponse:
    """To the part that was shown; its bookings may be fewer now."""
    page = request.GET.get("page", "")
    return redirect(reverse("approvals", query={"page": page} if page.isdecimal() else None))


def _found(numbers: Iterable[int]) -> Iterable[Booking]:
    found = Booking.objects.filter(pk__in=numbers).select_related("owner", "lane")
    return found.order_by("start", "pk")


def _refused(booking: Booking, refusal: Refusal) -> str:
    values = {"owner": booking.owner.username, "lane": booking.lane.name, "why": refusal.words}
    return _("%(owner)s on %(lane)s: %(why)s") % values


def _done_words(name: str, count: int) -> str:
    words = {
        "approve": ngettext("%(count)s is approved.", "%(count)s are approved.", count),
        "reject": ngettext("%(count)s is rejected.", "%(count)s are rejected.", count),
    }
    return words[name] % {"count": count}


def _numbers(texts: Iterable[str]) -> set[int]:
    """Numbers of bookings; what is none is left out."""
    known = [text for text in texts if text.isdecimal() and len(text) < 19]
    return {int(text) for text in known[:MOST_AT_ONCE]}
