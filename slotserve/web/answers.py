"""What several pages need of a request: who it is from, and a word about what was done."""

from typing import cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from bookings.models import Booking, State
from lanes.refusals import Refusal

# Of a page whose path or text is secret. Not `no-referrer`: by that browsers send forms from
# "Origin: null", which is refused.
ORIGIN_ALONE = "strict-origin"


def member(request: HttpRequest) -> User:
    """Who is logged in; for views that strangers do not reach."""
    return cast(User, request.user)


def kept_query(request: HttpRequest) -> str:
    """What the address asks for, but for which page: for links to the others."""
    query = request.GET.copy()
    query.pop("page", None)
    return query.urlencode()


def say(request: HttpRequest, done: object, words: str) -> None:
    """Show these words, or the refusal's if that is what a service answered."""
    if isinstance(done, Refusal):
        messages.error(request, done.words)
    else:
        messages.success(request, with_wait(words, done) if isinstance(done, Booking) else words)


def with_wait(words: str, *done: Booking) -> str:
    """These words, and that it waits for approval, if it does."""
    if all(each.state != State.PENDING for each in done):
        return words
    waits = _("It waits for an administrator's approval.")
    return f"{words.rstrip('.')}. {waits}"


def leave_for(request: HttpRequest, url: str) -> HttpResponse:
    """On to a page; a dialog is told where, as it would follow unseen and use up the messages."""
    if "X-In-Dialog" in request.headers:
        return HttpResponse(status=204, headers={"X-Location": url})
    return redirect(url)
