"""Pages about bookings."""

from datetime import datetime
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import pgettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from bookings import services
from bookings.models import Booking, State
from bookings.policies import standing_of
from bookings.policy_words import left_words
from bookings.refusals import Offering
from lanes import clock
from lanes.fitting import warnings
from lanes.models import Lane
from lanes.refusals import Refusal
from slotserve.web.access import came_from, members_only
from slotserve.web.answers import member, say
from slotserve.web.forms import BookForm, ExtendForm
from slotserve.web.outlook import Asked, in_the_way, must_wait, outlook
from slotserve.web.rows import offers, rows
from wire.words import marked

PAST_SHOWN = 20
CLAIMS_SHOWN = 8
CHANGES = {
    "release": (
        services.release,
        marked("Given back. Thank you: the lane is free for others now."),
    ),
    "cancel": (services.cancel, marked("Cancelled.")),
    "approve": (services.approve, marked("Approved.")),
    "reject": (services.reject, marked("Turned down.")),
}

DECISIONS = {"approve", "reject"}


@members_only
@require_http_methods(["GET", "HEAD", "POST"])
def book(request: HttpRequest) -> HttpResponse:
    """Book a lane now or later."""
    now = clock.database_now()
    if request.method != "POST":
        form = BookForm(now=now, initial=request.GET.dict())
        return render(request, "book.html", {"form": form})
    form = BookForm(request.POST, now=now)
    if not form.is_valid():
        return render(request, "book.html", {"form": form}, status=400)
    made = services.book(owner=member(request), **form.wish())
    if isinstance(made, Booking):
        messages.success(request, _made_words(made))
        for words in warnings(made.lane, made.preset):
            messages.warning(request, words)
        return redirect("lane", made.lane.slug)
    form.add_error(None, made.words)
    context = _beside(request, form.cleaned_data["lane"], form, made, now)
    return render(request, "book.html", {"form": form, **context}, status=409)


@members_only
@require_safe
def expect(request: HttpRequest) -> HttpResponse:
    """A fragment of the form's page: what to expect of the slot as it is filled in so far."""
    now = clock.database_now()
    form = BookForm(request.GET, now=now)
    form.is_valid()  # fills cleaned_data with what is valid so far
    asked = _asked(form)
    if asked is None:
        return render(request, "_expect.html")
    standing = standing_of(member(request), asked.lane, now)
    is_ready_to_say = "what" in form.cleaned_data
    refusal = in_the_way(asked, standing) if is_ready_to_say else None
    context = {
        "sentences": outlook(asked, now) if is_ready_to_say and not refusal else (),
        "left": left_words(standing, asked.start or now),
        "needs_approval": is_ready_to_say and must_wait(asked, standing),
        **_beside(request, asked.lane, form, refusal, now),
    }
    return render(request, "_expect.html", context)


@members_only
@require_safe
def mine(request: HttpRequest) -> HttpResponse:
    """The caller's bookings; for administrators also those that wait for them."""
    now = clock.database_now()
    user = member(request)
    own = Booking.objects.filter(owner=user).select_related("lane", "preset", "owner")
    context = {
        "current": rows(own.current(now), user, now),
        "shared": rows(_shared(user, now), user, now),
        "past": rows(own.past(now)[:PAST_SHOWN], user, now),
        "waiting": _waiting(user, now),
        "back": request.path,
    }
    return render(request, "bookings.html", context)


@members_only
@require_POST
def change(request: HttpRequest, pk: int, name: str) -> HttpResponse:
    """Release, cancel, approve or reject; then back to the page that has the button."""
    booking = get_object_or_404(Booking.objects.visible_to(request.user), pk=pk)
    service, words = CHANGES[name]
    said = {"comment": request.POST.get("comment", "")} if name in DECISIONS else {}
    say(request, service(booking, actor=member(request), **said), _(words))
    return redirect(came_from(request, reverse("bookings")))


@members_only
@require_http_methods(["GET", "HEAD", "POST"])
def extend(request: HttpRequest, pk: int) -> HttpResponse:
    """Give a booking another end."""
    found = Booking.objects.visible_to(request.user).select_related("lane", "preset", "owner")
    booking = get_object_or_404(found, pk=pk)
    if not booking.is_changeable_by(request.user):
        raise PermissionDenied("This booking belongs to somebody else.")
    form = ExtendForm(request.POST or None, initial={"end": booking.end})
    if form.is_valid():
        done = _end_at(booking, form.cleaned_data["end"], member(request))
        if isinstance(done, Booking):
            messages.success(request, _("It ends %(moment)s now.") % {"moment": _moment(done.end)})
            return redirect(came_from(request, reverse("bookings")))
        form.add_error("end", done.words)
    later = booking.lane.bookings.current(booking.end).exclude(pk=pk)
    context = {
        "form": form,
        "booking": booking,
        "following": later.first(),
        "back": came_from(request, reverse("bookings")),
    }
    return render(request, "extend.html", context, status=400 if form.errors else 200)


def _asked(form: BookForm) -> Asked | None:
    """The wish so far; None without a lane."""
    said = form.cleaned_data
    lane = said.get("lane")
    start = said.get("start") if said.get("begins") == "later" else None
    if not isinstance(lane, Lane):
        return None
    return Asked(lane, said.get("what"), start, said.get("end"))


def _beside(
    request: HttpRequest, lane: Lane, form: BookForm, refusal: Refusal | None, now: datetime
) -> dict[str, Any]:
    """What stands beside the form: what is in the way, what is free, what is booked there."""
    kept = {name: form.data.get(name, "") for name in ("lane", "what", "purpose")}
    claims = lane.bookings.current(now).select_related("owner", "preset")
    return {
        "lane": lane,
        "refusal": refusal,
        "offers": offers(refusal if isinstance(refusal, Offering) else None, kept),
        "rows": rows(claims[:CLAIMS_SHOWN], member(request), now),
    }


def _end_at(booking: Booking, end: datetime, actor: User) -> Booking | Refusal:
    """A later end extends it; an earlier one gives the rest back."""
    if end > booking.end:
        return services.extend(booking, actor=actor, end=end)
    return services.move(booking, actor=actor, start=booking.start, end=end)


def _shared(user: User, now: datetime) -> QuerySet[Booking]:
    """Those of others that this member may use."""
    theirs = Booking.objects.shared_with(user).current(now)
    return theirs.select_related("lane", "preset", "owner")


def _waiting(user: User, now: datetime) -> object:
    """Bookings that wait for this administrator."""
    if not user.is_staff:
        return ()
    pending = Booking.objects.filter(state=State.PENDING, end__gt=now)
    return pending.select_related("lane", "preset", "owner").order_by("start")


def _made_words(booking: Booking) -> str:
    if booking.state == State.PENDING:
        words = _("Asked for: an administrator decides. Until then %(lane)s is kept for you.")
        return words % {"lane": booking.lane.name}
    words = _("%(lane)s is yours until %(end)s.")
    return words % {"lane": booking.lane.name, "end": _moment(booking.end)}


def _moment(value: datetime) -> str:
    return date_format(timezone.localtime(value), pgettext("date format", "j M") + " H:i")
