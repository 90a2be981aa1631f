"""Pages about bookings."""

from typing import cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.formats import date_format
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from bookings import services
from bookings.models import Booking, State
from bookings.refusals import SlotTaken
from lanes import clock
from lanes.refusals import Refusal
from slotserve.web.forms import BookForm, ExtendForm

PAST_SHOWN = 20
CHANGES = {
    "release": (services.release, "Given back. Thank you: the GPU is free for others now."),
    "cancel": (services.cancel, "Cancelled."),
    "approve": (services.approve, "Approved."),
    "reject": (services.reject, "Turned down."),
}


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def book(request: HttpRequest) -> HttpResponse:
    """Book a lane now or later."""
    now = clock.database_now()
    if request.method != "POST":
        form = BookForm(now=now, initial=request.GET.dict())
        return render(request, "book.html", {"form": form})
    form = BookForm(request.POST, now=now)
    refusal: Refusal | None = None
    if form.is_valid():
        made = services.book(owner=cast(User, request.user), **form.wish())
        if isinstance(made, Booking):
            messages.success(request, _made_words(made))
            return redirect("lane", made.lane.slug)
        refusal = made
        form.add_error(None, made.words)
    nearest = refusal.nearest if isinstance(refusal, SlotTaken) else ()
    context = {"form": form, "nearest": nearest}
    return render(request, "book.html", context, status=409 if refusal else 400)


@login_required
@require_safe
def mine(request: HttpRequest) -> HttpResponse:
    """The caller's bookings; for administrators also those that wait for them."""
    now = clock.database_now()
    own = Booking.objects.filter(owner=cast(User, request.user)).select_related("lane", "preset")
    context = {
        "now": now,
        "current": own.current(now),
        "past": own.past(now)[:PAST_SHOWN],
        "waiting": _waiting(request, now),
        "form": ExtendForm(),
    }
    return render(request, "bookings.html", context)


@login_required
@require_POST
def change(request: HttpRequest, pk: int, name: str) -> HttpResponse:
    """Release, cancel, approve or reject."""
    booking = get_object_or_404(Booking.objects.visible_to(request.user), pk=pk)
    service, words = CHANGES[name]
    done = service(booking, actor=cast(User, request.user))
    _say(request, done, words)
    return redirect("bookings")


@login_required
@require_POST
def extend(request: HttpRequest, pk: int) -> HttpResponse:
    """Give a booking another end."""
    booking = get_object_or_404(Booking.objects.visible_to(request.user), pk=pk)
    form = ExtendForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Say the new end as a date and time.")
        return redirect("bookings")
    done = services.extend(booking, actor=cast(User, request.user), end=form.cleaned_data["end"])
    _say(request, done, "The end was changed.")
    return redirect("bookings")


def _waiting(request: HttpRequest, now: object) -> object:
    if not cast(User, request.user).is_staff:
        return ()
    pending = Booking.objects.filter(state=State.PENDING, end__gt=now)
    return pending.select_related("lane", "preset", "owner")


def _made_words(booking: Booking) -> str:
    end = date_format(timezone.localtime(booking.end), "j M H:i")
    if booking.state == State.PENDING:
        return f"Asked for: an administrator decides. Until then {booking.lane} is kept for you."
    return f"{booking.lane} is yours until {end}."


def _say(request: HttpRequest, done: Booking | Refusal, words: str) -> None:
    if isinstance(done, Refusal):
        messages.error(request, done.words)
    else:
        messages.success(request, words)
