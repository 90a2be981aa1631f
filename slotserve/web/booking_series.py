"""Giving slots of a series back: which they are is shown first."""

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_http_methods

from bookings import series_changes
from bookings.models import Booking
from bookings.series_changes import Span
from lanes import clock
from lanes.refusals import Refusal
from slotserve.api.errors import STATUS_OF
from slotserve.booking_series import CHANGEABLE, Member, series_view
from slotserve.web.access import members_only
from slotserve.web.answers import member

SPANS = [
    (Span.THIS.value, gettext_lazy("This slot alone")),
    (Span.FOLLOWING.value, gettext_lazy("This one and those after it")),
    (Span.ALL.value, gettext_lazy("All of the series")),
]


class SpanField(forms.ChoiceField):
    """Which bookings of a series are meant."""

    def __init__(self) -> None:
        radios = forms.RadioSelect(attrs={"class": "form-check-input"})
        label = gettext_lazy("Change")
        hint = gettext_lazy("The others change by as much; another length is for all of them.")
        super().__init__(choices=SPANS, label=label, widget=radios, help_text=hint, required=False)


def span_of(value: str | None) -> Span:
    """What a form says; otherwise this one alone."""
    return next((span for span in Span if span.value == value), Span.THIS)


@members_only
@require_http_methods(["GET", "HEAD", "POST"])
def release(request: HttpRequest, pk: int) -> HttpResponse:
    """Give back this slot, it and those after it, or all: asked first, then done."""
    found = Booking.objects.of_people(request.user).select_related("series")
    booking = get_object_or_404(found, pk=pk)
    if not booking.is_changeable_by(request.user):
        raise PermissionDenied(_("This booking belongs to somebody else."))
    if booking.series is None:
        raise Http404
    said = request.POST if request.method == "POST" else request.GET
    span = span_of(said.get("span"))
    refusal: Refusal | None = None
    if request.method == "POST":
        done = series_changes.release_series(booking, actor=member(request), span=span)
        if not isinstance(done, Refusal):
            messages.success(request, _given_back(len(done)))
            return redirect("booking", pk)
        refusal = done
    context = {
        "booking": booking,
        "span": span.value,
        "meant": _meant(booking, span),
        "refusal": refusal,
    }
    status = STATUS_OF.get(refusal.code, 400) if refusal else 200
    return render(request, "series_release.html", context, status=status)


def _meant(booking: Booking, span: Span) -> list[Member]:
    """Those that are not over, of the ones that the span means."""
    view = series_view(booking, clock.database_now())
    members = view.members if view else ()
    if span is Span.THIS:
        members = tuple(each for each in members if each.is_this)
    elif span is Span.FOLLOWING:
        members = tuple(each for each in members if each.booking.start >= booking.start)
    return [each for each in members if each.status in CHANGEABLE]


def _given_back(count: int) -> str:
    words = ngettext("%(count)s slot is given back.", "%(count)s slots are given back.", count)
    return words % {"count": count}
