"""A person's notices, and how many are unread in the head of each page."""

from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.functional import SimpleLazyObject
from django.views.decorators.http import require_POST, require_safe

from bookings.models import Booking, State
from lanes import clock, notices
from slotserve.web.access import members_only
from slotserve.web.answers import member

ON_A_PAGE = 50


@members_only
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Notices, the newest first. Looking at them does not take them as read."""
    part = Paginator(notices.notices_of(member(request)), ON_A_PAGE).get_page(
        request.GET.get("page")
    )
    found = list(part)
    newest = max((notice.pk for notice in found), default=0) if part.number == 1 else 0
    about = {each.booking_id_for for each in found if each.booking_id_for is not None}
    theirs = Booking.objects.of_people(request.user).filter(pk__in=about)
    states = dict(theirs.values_list("pk", "state")) if about else {}
    context = {
        "notices": found,
        "page": part,
        "newest": newest,
        "bookings": set(states),
        "held": {pk for pk, state in states.items() if state == State.HELD},
    }
    return render(request, "notices.html", context)


@members_only
@require_POST
def read(request: HttpRequest) -> HttpResponse:
    """Take as read what the page showed; what came since stays new."""
    up_to = request.POST.get("up_to", "")
    number = int(up_to) if up_to.isdecimal() and len(up_to) < 19 else None
    if number is not None:
        notices.mark_read(member(request), clock.database_now(), up_to=number)
    return redirect("notices")


def unread(request: HttpRequest) -> dict[str, Any]:
    """`unread` for templates; asked of the database only where it is shown.

    Pages of errors may come before anybody knows whose request it is.
    """
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {}
    return {"unread": SimpleLazyObject(lambda: notices.unread_count(member(request)))}
