"""What a link in a reminder does, without a log-in. Its secret is in the path; `slotserve.logs`
keeps it out of logs."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from bookings.models import Booking, State
from lanes.refusals import Refusal
from lanes.telling import day, slot
from notices import links
from notices.models import Link
from notices.preferences import in_words_of, preference_of
from slotserve.web.answers import ORIGIN_ALONE

STATUS_OF = {"not_found": 404, "wrong_state": 409, "too_late": 410}


@csrf_exempt
@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest, secret: str) -> HttpResponse:
    """Ask first, because programs that look for viruses fetch links, too; do it on POST.

    Whoever can forge that request has the secret. So no cookie is needed, which a mail program's
    own browser may not take.
    """
    link = links.look_up(secret)
    if isinstance(link, Refusal):
        return _answer(request, {"refusal": link.words}, STATUS_OF.get(link.code, 409))
    with in_words_of(preference_of(link.person)):
        is_hold = link.booking.state == State.HELD
        context = {
            "link": link,
            "slot": slot(link.booking.start, link.booking.end),
            "lets_go": is_hold and link.action == Link.Action.RELEASE,
        }
        if request.method != "POST":
            return _answer(request, context, 200)
        done = links.use(secret)
        if isinstance(done, Refusal):
            return _answer(request, {**context, "refusal": done.words}, 409)
        words = _done(link, done, lets_go=bool(context["lets_go"]))
        return _answer(request, {**context, "done": words % {"end": day(done.end)}}, 200)


def _done(link: Link, booking: Booking, *, lets_go: bool) -> str:
    """What has happened to it; `end` is when it ends."""
    if lets_go:
        return _("It is free for the next who waits.")
    if booking.state == State.CANCELLED:
        return _("It is cancelled: others can have the time.")
    if booking.state == State.PENDING:
        return _("It waits for an administrator's approval.")
    if link.action == Link.Action.CONFIRM:
        return _("It is booked until %(end)s.")
    return _("The slot ends now at %(end)s.") if link.minutes else _("It ended at %(end)s.")


def _answer(request: HttpRequest, context: dict[str, object], status: int) -> HttpResponse:
    response = render(request, "once.html", context, status=status)
    response["Referrer-Policy"] = ORIGIN_ALONE
    response["X-Robots-Tag"] = "noindex"
    return response
