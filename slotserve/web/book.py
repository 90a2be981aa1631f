"""The page that books a slot or a series, and what it foretells while the form is filled in.

It works as a page of its own and, where scripts run, in a dialog over another (`book.js`).
"""

from datetime import datetime, timedelta
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_safe

from bookings import services
from bookings.models import Booking, State
from bookings.policies import standing_of
from bookings.policy_words import left_words
from bookings.refusals import Offering
from bookings.series import (
    AskedSeries,
    MadeSeries,
    SeriesRefused,
    book_series,
    nearest_starts,
    preview,
)
from lanes import clock
from lanes.fitting import warnings
from lanes.models import Lane
from lanes.refusals import Refusal
from lanes.telling import moment
from slotserve.web.access import members_only
from slotserve.web.answers import leave_for, member
from slotserve.web.forms import BookForm
from slotserve.web.outlook import Asked, in_the_way, must_wait, outlook
from slotserve.web.repeating import RepeatForm, occurrence_rows, series_offers
from slotserve.web.rows import offers, rows
from slotserve.web.waitlist import waits_offered

CLAIMS_SHOWN = 8
NEAR = timedelta(hours=6)  # before the wished start: since then, what is booked there is shown


@members_only
@require_http_methods(["GET", "HEAD", "POST"])
def book(request: HttpRequest) -> HttpResponse:
    """Book a lane now or later, once or again and again."""
    now = clock.database_now()
    if request.method != "POST":
        initial = request.GET.dict()
        form, repeat = BookForm(now=now, initial=initial), RepeatForm(initial=initial)
        return render(request, "book.html", {"form": form, "repeat": repeat})
    form, repeat = BookForm(request.POST, now=now), RepeatForm(request.POST)
    is_valid = form.is_valid() and repeat.is_valid()
    if not is_valid:
        return render(request, "book.html", {"form": form, "repeat": repeat}, status=400)
    if repeat.is_wanted:
        return _book_series(request, form, repeat, now)
    made = services.book(owner=member(request), **form.wish())
    if isinstance(made, Booking):
        messages.success(request, _made_words(made))
        _warn(request, made)
        return leave_for(request, reverse("lane", args=[made.lane.slug]))
    return _refused(request, form, repeat, made, now)


@members_only
@require_safe
def expect(request: HttpRequest) -> HttpResponse:
    """A fragment of the form's page: what to expect of the slot as it is filled in so far."""
    now = clock.database_now()
    form, repeat = BookForm(request.GET, now=now), RepeatForm(request.GET)
    form.is_valid()  # fills cleaned_data with what is valid so far
    asked = _asked(form)
    if asked is None:
        return render(request, "_expect.html")
    standing = standing_of(member(request), asked.lane, now)
    is_ready_to_say = "what" in form.cleaned_data
    series = _preview(request, form, repeat, now) if is_ready_to_say else {}
    refusal = in_the_way(asked, standing) if is_ready_to_say and not series else None
    is_shown = is_ready_to_say and not refusal
    context = {
        "sentences": outlook(asked, member(request), now) if is_shown else (),
        "left": left_words(standing, asked.start or now),
        "approval": must_wait(asked, standing) if is_shown else "",
        **_beside(request, asked.lane, form, refusal, now),
        **series,
    }
    return render(request, "_expect.html", context)


def _book_series(
    request: HttpRequest, form: BookForm, repeat: RepeatForm, now: datetime
) -> HttpResponse:
    asked = repeat.asked(form.wish(), now)
    if "show" in request.POST:
        context = _preview(request, form, repeat, now)
        return render(request, "book.html", {"form": form, "repeat": repeat, **context})
    leaves_out = repeat.cleaned_data["leave_out"]
    made = book_series(owner=member(request), asked=asked, leaves_out=leaves_out)
    if isinstance(made, Refusal):
        return _refused(request, form, repeat, made, now)
    messages.success(request, _series_words(made))
    _warn(request, made.bookings[0])
    return leave_for(request, reverse("bookings"))


def _refused(
    request: HttpRequest, form: BookForm, repeat: RepeatForm, refusal: Refusal, now: datetime
) -> HttpResponse:
    form.add_error(None, refusal.words)
    context = _beside(request, form.cleaned_data["lane"], form, refusal, now)
    if isinstance(refusal, SeriesRefused):
        context["occurrences"] = occurrence_rows(refusal.judged)
        context["series_offers"] = series_offers(refusal.nearest, form.data)
    context |= {"form": form, "repeat": repeat}
    return render(request, "book.html", context, status=409)


def _preview(
    request: HttpRequest, form: BookForm, repeat: RepeatForm, now: datetime
) -> dict[str, Any]:
    """Every occurrence as it would be, or what is wrong with the series; nothing without one."""
    is_valid = repeat.is_valid() and form.is_valid()
    if not (repeat.is_wanted and is_valid):
        return {}
    asked: AskedSeries = repeat.asked(form.wish(), now)
    found = preview(owner=member(request), asked=asked)
    if isinstance(found, Refusal):
        return {"lane": asked.lane, "series_refusal": found.words}
    context = {"lane": asked.lane, "occurrences": occurrence_rows(found)}
    if all(each.refusal is None for each in found):
        return context
    nearest = nearest_starts(member(request), asked)
    return context | {"series_offers": series_offers(nearest, form.data)}


def _asked(form: BookForm) -> Asked | None:
    """The wish so far; None without a lane, or while its start is not known."""
    said = form.cleaned_data
    lane = said.get("lane")
    is_later, start = said.get("begins") == "later", said.get("start")
    if not isinstance(lane, Lane) or (is_later and start is None):
        return None
    return Asked(lane, said.get("what"), start, said.get("end"))


def _beside(
    request: HttpRequest, lane: Lane, form: BookForm, refusal: Refusal | None, now: datetime
) -> dict[str, Any]:
    """What stands beside the form: what is in the way, what is free, what is booked there."""
    kept = {name: form.data.get(name, "") for name in ("lane", "what", "purpose")}
    start = form.cleaned_data.get("start") if form.data.get("begins") == "later" else None
    since = max(now, start - NEAR) if start else now
    claims = lane.bookings.current(since).select_related("owner", "preset")
    return {
        "lane": lane,
        "refusal": refusal,
        "offers": offers(refusal if isinstance(refusal, Offering) else None, kept),
        "can_wait": waits_offered(form) if isinstance(refusal, Offering) else (),
        "rows": rows(claims[:CLAIMS_SHOWN], member(request), now),
    }


def _warn(request: HttpRequest, booking: Booking) -> None:
    for words in warnings(booking.lane, booking.preset):
        messages.warning(request, words)


def _made_words(booking: Booking) -> str:
    if booking.state == State.PENDING:
        words = _("Asked for: an administrator decides. Until then %(lane)s is kept for you.")
        return words % {"lane": booking.lane.name}
    values = {"lane": booking.lane.name, "start": moment(booking.start), "end": moment(booking.end)}
    if booking.start > clock.database_now():
        return _("%(lane)s is yours from %(start)s to %(end)s.") % values
    return _("%(lane)s is yours until %(end)s.") % values


def _series_words(made: MadeSeries) -> str:
    count, left = len(made.bookings), len(made.left_out)
    words = ngettext("%(count)s slot is booked.", "%(count)s slots are booked.", count)
    said = words % {"count": count}
    if left:
        words = ngettext("%(count)s was left out.", "%(count)s were left out.", left)
        said += " " + words % {"count": left}
    return said
