"""The page of one booking, and what its buttons do."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from bookings import services
from bookings.changes import Seen
from bookings.models import Booking, Kind
from bookings.refusals import Offering
from bookings.rules import NO_PRESET
from bookings.series_changes import Span
from bookings.transfers import NO_MEMBER
from lanes import clock
from lanes.models import Preset
from lanes.refusals import Refusal
from slotserve.api.errors import STATUS_OF
from slotserve.booking_page import BookingView, view_of
from slotserve.booking_series import series_view
from slotserve.calendar.moving import parsed
from slotserve.names import meet, names_of
from slotserve.web.access import members_only
from slotserve.web.answers import member, with_wait
from slotserve.web.booking_series import SPANS
from slotserve.web.rows import offers

Deed = Callable[[Booking], Booking | Refusal]
GPU = "gpu"


@members_only
@require_safe
def page(request: HttpRequest, pk: int) -> HttpResponse:
    """A booking of the caller's, or one that is shared with them; for administrators any."""
    return _page(request, _found(request, pk))


@members_only
@require_POST
def end(request: HttpRequest, pk: int) -> HttpResponse:
    """Give it the end that a button names: a later one extends it, an earlier one shortens it."""
    value, actor = parsed(request.POST.get("end", "")), member(request)
    if value is None or timezone.is_naive(value):
        return redirect("extend", pk)
    return _done(request, pk, partial(end_at, end=value, actor=actor), _("The end is changed."))


def end_at(booking: Booking, end: datetime, actor: User) -> Booking | Refusal:
    """A later end extends it; an earlier one gives the rest back."""
    if end > booking.end:
        return services.extend(booking, actor=actor, end=end)
    seen = Seen.of(booking)
    return services.move(booking, actor=actor, start=booking.start, end=end, seen=seen)


@members_only
@require_POST
def load(request: HttpRequest, pk: int) -> HttpResponse:
    """Have it load another preset, or the whole GPU without one."""
    what, actor = request.POST.get("what", ""), member(request)
    is_sure = request.POST.get("is_sure") == "1"
    kind = Kind.GPU if what == GPU else Kind.MODEL
    preset = Preset.objects.filter(slug=what[:63]).first() if kind == Kind.MODEL else None
    if kind == Kind.MODEL and preset is None:
        return _page(request, _found(request, pk), NO_PRESET)

    def deed(booking: Booking) -> Booking | Refusal:
        return services.move(
            booking,
            actor=actor,
            start=booking.start,
            end=booking.end,
            kind=kind,
            preset=preset,
            seen=Seen.of(booking),
            is_sure=is_sure,
        )

    return _done(request, pk, deed, _("What is loaded is changed."))


@members_only
@require_POST
def transfer(request: HttpRequest, pk: int) -> HttpResponse:
    """Give it to another member."""
    deed = partial(services.transfer, actor=member(request))
    return _between(request, pk, lambda each, to: deed(each, to=to), _("It is %(name)s's now."))


@members_only
@require_POST
def share(request: HttpRequest, pk: int) -> HttpResponse:
    """Let another member use the slot as well."""
    deed = partial(services.share, actor=member(request))
    words = _("Shared with %(name)s.")
    return _between(request, pk, lambda each, guest: deed(each, member=guest), words)


@members_only
@require_POST
def end_share(request: HttpRequest, pk: int) -> HttpResponse:
    """End that; guests leave by the same."""
    deed = partial(services.end_share, actor=member(request))
    words = _("No longer shared with %(name)s.")
    return _between(request, pk, lambda each, guest: deed(each, member=guest), words)


def _found(request: HttpRequest, pk: int) -> Booking:
    found = Booking.objects.of_people(request.user)
    related = found.select_related("lane", "owner", "preset", "decided_by", "series")
    return get_object_or_404(related, pk=pk)


def _between(
    request: HttpRequest,
    pk: int,
    deed: Callable[[Booking, User], Booking | Refusal],
    words: str,
) -> HttpResponse:
    """Do it with the member whom the form names."""
    name = request.POST.get("member", "").strip()
    found = User.objects.filter(username=name).first()
    if found is None:
        return _page(request, _found(request, pk), NO_MEMBER)
    return _done(request, pk, lambda each: deed(each, found), words % {"name": found.username})


def _done(request: HttpRequest, pk: int, deed: Deed, words: str) -> HttpResponse:
    """Do it, and show the booking anew; a refusal with what is free instead."""
    booking = _found(request, pk)
    done = deed(booking)
    if isinstance(done, Refusal):
        return _page(request, _found(request, pk), done)
    messages.success(request, with_wait(words, done))
    is_still_theirs = Booking.objects.of_people(request.user).filter(pk=pk).exists()
    return redirect("booking", pk) if is_still_theirs else redirect("bookings")


def _page(request: HttpRequest, booking: Booking, refusal: Refusal | None = None) -> HttpResponse:
    now, viewer = clock.database_now(), member(request)
    view = view_of(booking, viewer, now)
    people = [booking.owner.username, *(each.member.username for each in view.guests)]
    meet(request, people)
    context = {
        "view": view,
        "booking": booking,
        "row": view.row,
        "here": request.path if refusal is None else f"/bookings/{booking.pk}/",
        "refusal": refusal,
        "offers": offers_beside(booking, refusal),
    }
    if request.htmx:  # type: ignore[attr-defined]
        return render(request, "_booking_state.html", context)
    context |= _choices(view, are_named=names_of(request).known is None) | _series(view)
    status = STATUS_OF.get(refusal.code, 400) if refusal else 200
    return render(request, "booking.html", context, status=status)


def _series(view: BookingView) -> dict[str, Any]:
    """Its series, to whoever may change it."""
    if not view.row.is_changeable:
        return {}
    series = series_view(view.booking, view.now)
    return {"series": series, "spans": SPANS, "span": Span.THIS.value}


def _choices(view: BookingView, *, are_named: bool) -> dict[str, Any]:
    """What the forms offer, to whoever may change it while it can be changed; members are typed
    where not all are named."""
    if not (view.is_open and view.row.is_changeable):
        return {}
    chosen: dict[str, Any] = {"presets": _presets(view.booking), "heirs": None, "newcomers": None}
    if not are_named:
        return chosen
    taken = {view.booking.owner_id, *(guest.member_id for guest in view.guests)}
    active = User.objects.filter(is_active=True).order_by("username")
    members = list(active.values_list("pk", "username"))
    return chosen | {
        "heirs": [name for pk, name in members if pk != view.booking.owner_id],
        "newcomers": [name for pk, name in members if pk not in taken],
    }


def _presets(booking: Booking) -> QuerySet[Preset]:
    on_host = Preset.objects.offered().filter(current__model_file__host=booking.lane.host_id)
    return on_host.order_by("name")


def offers_beside(booking: Booking, refusal: Refusal | None) -> object:
    """Free slots of a refusal, as links that book the same anew."""
    what = f"preset:{booking.preset.slug}" if booking.preset else GPU
    kept = {"lane": booking.lane.slug, "what": what, "purpose": booking.purpose}
    return offers(refusal if isinstance(refusal, Offering) else None, kept)
