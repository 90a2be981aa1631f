"""The calendar's page, with its list, and what its script asks for."""

import json
from datetime import datetime
from typing import Any

import orjson
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.cache import cache_control
from django.views.decorators.http import conditional_page, require_POST, require_safe

from bookings.changes import ASKS_AGAIN
from bookings.models import OCCUPYING, Booking
from bookings.refusals import Interval, Offering
from lanes import clock
from lanes.refusals import Refusal
from slotserve.api.errors import STATUS_OF
from slotserve.api.parsers import is_storable
from slotserve.calendar import moving, reading, words
from slotserve.calendar.feed import feed, handles
from slotserve.calendar.listing import listing
from slotserve.calendar.month_page import Asked, month_page
from slotserve.calendar.moving import Wish
from slotserve.calendar.reading import Reader, Sought
from slotserve.calendar.spans import Span, View, read_day, read_view, span_of
from slotserve.calendar.telling import exact
from slotserve.live.reading import bookings_digest
from slotserve.names import names_of
from slotserve.web.access import members_only
from slotserve.web.answers import member, with_wait
from slotserve.web.rows import rows

LARGEST_PAGE = 10_000
LONGEST_SEARCH = 100


@members_only
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Day, week or month of all lanes or some; a list where no script runs or it is asked for."""
    now = clock.database_now()
    span, sought = _asked(request, now)
    is_list = request.GET.get("as") == "list"
    closures = reading.closures_of(span, sought)
    context = {
        "span": span,
        "sought": sought,
        "title": words.title(span),
        "notes": words.notes(span),
        "closed": [(row.lane, words.closed_words(row, span.zone)) for row in closures],
        "closures": closures,
        "is_list": is_list,
        "is_said": "view" in request.GET,
        "here": request.get_full_path(),
    }
    if span.view is View.MONTH and not is_list:
        return _month(request, span, sought, now, context)
    found = listing(span, sought, _reader(request), now, _page_number(request))
    more = found.page if found.has_more else 0
    links = _links(span, sought, request.GET.get("as", ""), more)
    return render(request, "calendar.html", {**context, **links, "listing": found})


def _month(
    request: HttpRequest, span: Span, sought: Sought, now: datetime, context: dict[str, Any]
) -> HttpResponse:
    """A month is a table: the same with and without a script; its part alone, when it changed."""
    links = _links(span, sought, request.GET.get("as", ""), 0)
    asked = Asked(links["of_day"], bookings_digest(), context["closures"])
    context["month"] = month_page(span, sought, member(request), now, asked)
    context["digest"] = asked.digest
    is_part = bool(request.htmx)  # type: ignore[attr-defined]
    name = "_calendar_month.html" if is_part else "calendar.html"
    return render(request, name, context | links)


def _page_number(request: HttpRequest) -> int:
    text = request.GET.get("page", "1")
    number = min(int(text[:6]), LARGEST_PAGE) if text.isascii() and text.isdigit() else 1
    return max(number, 1)


@members_only
@require_safe
@cache_control(private=True, no_cache=True)
@conditional_page
def events(request: HttpRequest) -> HttpResponse:
    """A day or week for the script: `feed`; of a month, what can be moved: `handles`. To the
    minute, and 304 for who has it already."""
    now = clock.database_now().replace(second=0, microsecond=0)
    span, sought = _asked(request, now)
    tell = handles if span.view is View.MONTH else feed
    said = orjson.dumps(tell(span, sought, _reader(request), now))
    return HttpResponse(said, content_type="application/json")


@members_only
@require_safe
def booking(request: HttpRequest, pk: int) -> HttpResponse:
    """What is known of a booking and can be done with it: a page, or the inside of a dialog."""
    now = clock.database_now()
    found = Booking.objects.visible_to(request.user).select_related("lane", "owner", "preset")
    row = rows([get_object_or_404(found, pk=pk)], member(request), now)[0]
    zone = timezone.get_current_timezone()
    context = {
        "row": row,
        "booking": row.booking,
        "times": words.times(row.booking.start, row.booking.end, zone),
        "purpose": row.booking.purpose_for(request.user),
        "decision_comment": row.booking.decision_comment_for(request.user),
        "is_over": row.booking.end <= now or row.booking.state not in OCCUPYING,
        "back": back_to(request),
    }
    is_part = bool(request.htmx)  # type: ignore[attr-defined]
    name = "_calendar_booking.html" if is_part else "calendar_booking.html"
    return render(request, name, context)


@members_only
@require_POST
def move(request: HttpRequest) -> HttpResponse:
    """Move a booking that was dragged: JSON of `moving.wish`; answers where it was and is now.

    Refusals have `code` and `detail`, and `nearest` free slots. What is asked back has a `field`
    and `choices` for it: a time that is no moment or two (code "which_time"), and whether a
    confirmed booking may wait for approval ("asks_again").
    """
    zone = timezone.get_current_timezone()
    asked = moving.wish(_body(request), zone)
    if isinstance(asked, moving.Asked):
        return JsonResponse(_question(asked), status=409)
    if isinstance(asked, Refusal):
        return _refused(asked)
    done = moving.move(asked, member(request))
    return _refused(done) if isinstance(done, Refusal) else JsonResponse(_moved(asked, done))


def _asked(request: HttpRequest, now: datetime) -> tuple[Span, Sought]:
    zone = timezone.get_current_timezone()
    view = read_view(request.GET.get("view", "")) or View.DAY
    span = span_of(view, read_day(request.GET.get("date", ""), now, zone), zone)
    words_sought = request.GET.get("q", "")[:LONGEST_SEARCH]
    return span, Sought(tuple(filter(None, request.GET.getlist("lane"))), words_sought)


def _reader(request: HttpRequest) -> Reader:
    return Reader(member(request), names_of(request))


def _links(span: Span, sought: Sought, form: str, page_before: int) -> dict[str, Any]:
    """Where the page's links lead: the same lanes, another view, span or page."""

    def query(**changed: object) -> str:
        said = {"view": span.view, "date": span.day.isoformat(), "as": form, "q": sought.words}
        kept = [(name, str(value)) for name, value in (said | changed).items() if value]
        return urlencode([*kept, *(("lane", lane) for lane in sought.lanes)])

    return {
        "views": [(view, query(view=view)) for view in View],
        "of_day": query(view=View.DAY, date=""),
        "previous": query(date=span.previous),
        "following": query(date=span.following),
        "today": query(date=""),
        "as_list": query(**{"as": "list"}),
        "as_picture": query(**{"as": "picture"}),
        "more": query(page=page_before + 1) if page_before else "",
    }


def back_to(request: HttpRequest) -> str:
    """The calendar as it was, or the booking's page, when its address is named."""
    page_before = request.POST.get("next") or request.GET.get("next", "")
    is_ours = page_before.startswith((reverse("calendar"), reverse("bookings")))
    return page_before if is_ours else reverse("calendar")


def _body(request: HttpRequest) -> dict[str, Any]:
    try:
        said = json.loads(request.body)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) and is_storable(said) else {}


def _question(asked: moving.Asked) -> dict[str, Any]:
    zone = timezone.get_current_timezone()
    offered = moving.choices(asked, zone)
    return {
        "code": "which_time",
        "detail": moving.question(asked),
        "field": asked.field,
        "choices": [{"at": exact(moment), "words": said} for moment, said in offered],
    }


def _refused(refusal: Refusal) -> JsonResponse:
    body: dict[str, Any] = {"code": refusal.code, "detail": refusal.words}
    if isinstance(refusal, Offering):
        body["nearest"] = [_offer(slot) for slot in refusal.nearest]
    if refusal.code == ASKS_AGAIN.code:
        words = _("Change it all the same")
        body |= {"field": "is_sure", "choices": [{"at": True, "words": words}]}
    return JsonResponse(body, status=STATUS_OF.get(refusal.code, 400))


def _offer(slot: Interval) -> dict[str, str]:
    zone = timezone.get_current_timezone()
    said = words.times(slot.start, slot.end, zone)
    return {"start": exact(slot.start), "end": exact(slot.end), "words": said}


def _moved(asked: Wish, done: Booking) -> dict[str, Any]:
    """The booking as it is, and as it was: what undoing asks for."""
    start = timezone.localtime(done.start)
    said = words.times(done.start, done.end, timezone.get_current_timezone())
    return {
        "booking": done.pk,
        "day": date_format(start, "j F"),
        "words": with_wait(f"{done.lane.name}, {said}", done),
        "state": done.state,
        "seen": {"start": exact(done.start), "end": exact(done.end), "lane": done.lane.slug},
    }
