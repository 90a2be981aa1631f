"""Moving a booking by a plain form: another start, end or lane."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods

from bookings.models import Booking
from bookings.refusals import Offering
from bookings.series_changes import Span
from bookings.wall_clock import wall_of
from lanes.models import Lane
from lanes.refusals import Refusal
from slotserve.calendar import moving, words
from slotserve.calendar.telling import exact
from slotserve.web.access import members_only
from slotserve.web.answers import member, with_wait
from slotserve.web.booking_series import SpanField, span_of
from slotserve.web.calendar import back_to
from slotserve.web.fields import LocalDateTimeInput, NamedField, StyledForm
from slotserve.web.wall_times import AskingForm, WallClockField


class MoveForm(AskingForm, StyledForm):
    """Where a booking shall go. `which_*` are moments chosen where a time comes twice or never."""

    lane = NamedField(
        Lane.objects.none(), to_field_name="slug", empty_label=None, label=gettext_lazy("Lane")
    )
    start = WallClockField(label=gettext_lazy("Start"), widget=LocalDateTimeInput())
    end = WallClockField(label=gettext_lazy("End"), widget=LocalDateTimeInput())

    meant = ""  # the moments that were understood

    def __init__(self, *args: Any, booking: Booking, span: Span = Span.THIS, **kwargs: Any) -> None:
        initial = {"lane": booking.lane.slug, "start": booking.start, "end": booking.end}
        initial["span"] = span.value
        super().__init__(*args, initial=initial, **kwargs)
        lanes = Lane.objects.filter(enabled=True) | Lane.objects.filter(pk=booking.lane_id)
        self.fields["lane"].queryset = lanes.order_by("name")  # type: ignore[attr-defined]
        if booking.series_id is not None:
            self.fields["span"] = SpanField()


@members_only
@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest, pk: int) -> HttpResponse:
    """Move a booking; refusals come with the nearest free slots, a button each."""
    found = Booking.objects.visible_to(request.user)
    booking = get_object_or_404(found.select_related("lane", "preset", "owner", "series"), pk=pk)
    if not booking.is_changeable_by(request.user):
        raise PermissionDenied(_("This booking belongs to somebody else."))
    span = span_of(request.GET.get("span"))
    form = MoveForm(request.POST or None, booking=booking, span=span)
    refusal: Refusal | None = None
    if form.is_valid():
        done = _moved(request, form, booking)
        if done is not None and not isinstance(done, Refusal):
            messages.success(request, with_wait(_moved_words(done), *done))
            return redirect(back_to(request))
        refusal = done
    context = {
        "form": form,
        "booking": booking,
        "refusal": refusal,
        "nearest": _nearest(refusal),
        "seen": _seen(request, booking),
        "back": back_to(request),
    }
    status = 409 if refusal else 400 if form.errors else 200
    return render(request, "calendar_move.html", context, status=status)


def _moved_words(done: Sequence[Booking]) -> str:
    first = done[0]
    said = words.times(first.start, first.end, timezone.get_current_timezone())
    if len(done) == 1:
        return _("Moved: %(lane)s, %(times)s.") % {"lane": first.lane.name, "times": said}
    values = {"count": len(done), "lane": first.lane.name, "times": said}
    return _("%(count)s slots are changed; the first: %(lane)s, %(times)s.") % values


def _moved(
    request: HttpRequest, form: MoveForm, booking: Booking
) -> Sequence[Booking] | Refusal | None:
    """What was moved, or a refusal; None when the form now asks something."""
    seen = _seen(request, booking)
    said = {"booking": booking.pk, "seen": seen, "lane": form.cleaned_data["lane"].slug}
    sure = request.POST.get("sure", "")  # of these times, which were asked about
    said["is_sure"] = bool(sure)
    taken = (sure or request.POST.get("take", "")).split("/")
    for number, name in enumerate(("start", "end")):
        chosen = taken[number] if len(taken) == 2 else request.POST.get(f"which_{name}", "")
        said[name] = chosen or _typed(form.cleaned_data[name], seen[name])
    asked = moving.wish(said, timezone.get_current_timezone())
    if isinstance(asked, moving.Asked):
        form.ask(asked, moving.question(asked))
        form.add_error(asked.field, _("Choose below which time is meant."))
        return None
    if isinstance(asked, Refusal):
        return asked
    form.meant = _moments(asked.start, asked.end)
    span = span_of(form.cleaned_data.get("span"))
    return moving.move_span(asked, member(request), span)


def _typed(wall: datetime, seen: str) -> str:
    """What was typed; the moment itself where it was left, as the picker knows only minutes."""
    before = moving.parsed(seen)
    if before is None or timezone.is_naive(before):
        return wall.isoformat()
    shown = wall_of(before, timezone.get_current_timezone()).replace(second=0, microsecond=0)
    return seen if wall == shown else wall.isoformat()


def _seen(request: HttpRequest, booking: Booking) -> dict[str, str]:
    """How the form showed the booking; at first, as it is."""
    now = {"start": exact(booking.start), "end": exact(booking.end), "lane": booking.lane.slug}
    return {name: request.POST.get(f"seen_{name}") or value for name, value in now.items()}


def _nearest(refusal: Refusal | None) -> list[tuple[str, str]]:
    """Free slots: what their buttons send and say."""
    zone = timezone.get_current_timezone()
    slots = refusal.nearest if isinstance(refusal, Offering) else ()
    return [
        (_moments(slot.start, slot.end), words.times(slot.start, slot.end, zone)) for slot in slots
    ]


def _moments(start: datetime, end: datetime) -> str:
    """What a button sends that takes these times."""
    return f"{exact(start)}/{exact(end)}"
