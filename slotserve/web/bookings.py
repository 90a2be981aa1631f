"""Pages about bookings."""

from datetime import datetime

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import pgettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from bookings import services, waitlist
from bookings.models import Booking, State
from lanes import clock
from lanes.refusals import Refusal
from slotserve.live.reading import bookings_digest
from slotserve.web.access import came_from, members_only
from slotserve.web.answers import leave_for, member, say
from slotserve.web.booking import end_at, offers_beside
from slotserve.web.forms import ExtendForm
from slotserve.web.rows import rows
from wire.words import marked

PAST_SHOWN = 20
WAITING_SHOWN = 10  # all of them are on the page of approvals
CLAIMS_SHOWN = 8
CHANGES = {
    "release": (
        services.release,
        marked("Given back. Thank you: the lane is free for others now."),
    ),
    "confirm": (waitlist.confirm, marked("Booked.")),
    "cancel": (services.cancel, marked("Cancelled.")),
    "approve": (services.approve, marked("Approved.")),
    "reject": (services.reject, marked("Turned down.")),
}

DECISIONS = {"approve", "reject"}


@members_only
@require_safe
def mine(request: HttpRequest) -> HttpResponse:
    """The caller's bookings; for administrators also those that wait for them."""
    digest = bookings_digest()  # before what is shown: what comes between is asked for anew
    now = clock.database_now()
    user = member(request)
    own = Booking.objects.filter(owner=user).select_related("lane", "preset", "owner")
    past = Paginator(own.past(now), PAST_SHOWN).get_page(request.GET.get("page"))
    waiting = _waiting(user, now)
    context = {
        "current": rows(own.current(now), user, now),
        "shared": rows(_shared(user, now), user, now),
        "places": waitlist.places_of(user, now),
        "page": past,
        "past": rows(past, user, now),
        "waiting": waiting[:WAITING_SHOWN],
        "more_wait": len(waiting) > WAITING_SHOWN,
        "back": request.path,
        "here": request.get_full_path(),
        "digest": digest,
    }
    is_part = request.htmx  # type: ignore[attr-defined]
    return render(request, "_bookings.html" if is_part else "bookings.html", context)


@members_only
@require_POST
def change(request: HttpRequest, pk: int, name: str) -> HttpResponse:
    """Release, cancel, approve or reject; then back to the page that has the button."""
    booking = get_object_or_404(Booking.objects.visible_to(request.user), pk=pk)
    service, words = CHANGES[name]
    said = {"comment": request.POST.get("comment", "")} if name in DECISIONS else {}
    say(request, service(booking, actor=member(request), **said), _(words))
    return leave_for(request, came_from(request, reverse("bookings")))


@members_only
@require_http_methods(["GET", "HEAD", "POST"])
def extend(request: HttpRequest, pk: int) -> HttpResponse:
    """Give a booking another end."""
    found = Booking.objects.visible_to(request.user).select_related("lane", "preset", "owner")
    booking = get_object_or_404(found, pk=pk)
    if not booking.is_changeable_by(request.user):
        raise PermissionDenied(_("This booking belongs to somebody else."))
    form = ExtendForm(request.POST or None, initial={"end": booking.end})
    refusal: Refusal | None = None
    if form.is_valid():
        done = end_at(booking, form.cleaned_data["end"], member(request))
        if isinstance(done, Booking):
            messages.success(request, _("It ends %(moment)s now.") % {"moment": _moment(done.end)})
            return redirect(came_from(request, reverse("bookings")))
        refusal = done
        form.add_error("end", done.words)
    later = booking.lane.bookings.current(booking.end).exclude(pk=pk)
    context = {
        "form": form,
        "booking": booking,
        "following": later.first(),
        "offers": offers_beside(booking, refusal),
        "back": came_from(request, reverse("bookings")),
    }
    return render(request, "extend.html", context, status=400 if form.errors else 200)


def _shared(user: User, now: datetime) -> QuerySet[Booking]:
    """Those of others that this member may use."""
    theirs = Booking.objects.shared_with(user).current(now)
    return theirs.select_related("lane", "preset", "owner")


def _waiting(user: User, now: datetime) -> list[Booking]:
    """Bookings that wait for this administrator: one more than are shown, if there are so many."""
    if not user.is_staff:
        return []
    pending = Booking.objects.filter(state=State.PENDING, end__gt=now)
    first = pending.select_related("lane", "preset", "owner").order_by("start", "pk")
    return list(first[: WAITING_SHOWN + 1])


def _moment(value: datetime) -> str:
    return date_format(timezone.localtime(value), pgettext("date format", "j M") + " H:i")
