"""A member's bookings for calendar programs, by a secret address and no log-in."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from bookings.models import Booking
from lanes import clock
from notices.feeds import feed_of, file_of
from notices.preferences import owner_of_feed
from slotserve.web.access import members_only
from slotserve.web.answers import member

TYPE = "text/calendar; charset=utf-8"


@require_safe
def feed(request: HttpRequest, secret: str) -> HttpResponse:
    """The calendar; 304 for who has it already. Its secret is in the path: `slotserve.logs` keeps
    that out of logs."""
    person = owner_of_feed(secret)
    if person is None:
        raise Http404
    text, tag = feed_of(person, clock.database_now())
    is_known = tag in request.headers.get("If-None-Match", "")
    response = HttpResponse(status=304) if is_known else HttpResponse(text, content_type=TYPE)
    response["ETag"] = tag
    response["Cache-Control"] = "private, no-cache"
    response["Referrer-Policy"] = "no-referrer"
    return response


@members_only
@require_safe
def file(request: HttpRequest, pk: int) -> HttpResponse:
    """One of the caller's bookings, or one that is shared with them, as a file."""
    theirs = Booking.objects.of_people(request.user).select_related("lane", "preset", "entry")
    booking = get_object_or_404(theirs, pk=pk)
    response = HttpResponse(file_of(booking, member(request)), content_type=TYPE)
    response["Content-Disposition"] = f'attachment; filename="booking-{booking.pk}.ics"'
    return response
