"""Waiting for time: from the booking form's refusals, and the list of what one waits for."""

from datetime import datetime, timedelta

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from bookings import waitlist
from bookings.models import Waiting
from bookings.waitlist import Wanted
from lanes import clock
from lanes.refusals import Refusal
from slotserve.web.access import members_only
from slotserve.web.answers import leave_for, member, say
from slotserve.web.forms import BookForm

WITHIN = {"0": timedelta(), "1": timedelta(days=1), "7": timedelta(days=7)}


@members_only
@require_POST
def wait(request: HttpRequest) -> HttpResponse:
    """Wait for what the booking form says, or for as long within a day or a week of its start."""
    now = clock.database_now()
    form = BookForm(request.POST, now=now)
    within = WITHIN.get(request.POST.get("within", ""))
    if not form.is_valid() or within is None:
        messages.error(request, _("Say which lane, from when and how long."))
        return leave_for(request, reverse("book"))
    done = waitlist.wait(owner=member(request), wanted=_wanted(form, within, now))
    words = _("You wait for it: you are told when it is free.")
    say(request, done, words)
    return leave_for(request, reverse("book" if isinstance(done, Refusal) else "bookings"))


@members_only
@require_POST
def leave(request: HttpRequest, pk: int) -> HttpResponse:
    """Wait no more."""
    waiting = get_object_or_404(Waiting, pk=pk, owner=member(request))
    say(request, waitlist.leave(waiting, actor=member(request)), _("You wait for it no more."))
    return redirect("bookings")


def waits_of(user: User, now: datetime) -> list[Waiting]:
    """What the member waits for; two queries."""
    found = Waiting.objects.filter(owner=user).unserved(now)
    return list(found.select_related("preset").prefetch_related("lanes"))


def waits_offered() -> list[tuple[str, str]]:
    """The ways to wait: what a button sends, and says."""
    return [
        ("0", _("Wait for this time")),
        ("1", _("Wait for any time within a day")),
        ("7", _("Wait for any time within a week")),
    ]


def _wanted(form: BookForm, within: timedelta, now: datetime) -> Wanted:
    wish = form.wish()
    start = wish["start"] or now
    minutes = max(int((wish["end"] - start) / timedelta(minutes=1)), 0)
    closes = max(wish["end"], start + within) if within else wish["end"]
    return Wanted(
        lanes=[wish["lane"]],
        kind=wish["kind"],
        preset=wish["preset"],
        minutes=minutes,
        opens=start,
        closes=closes,
        purpose=wish["purpose"],
    )
