"""What a browser says of its reader's zone and language is kept for notices, where nothing was
chosen."""

from collections.abc import Callable
from urllib.parse import unquote

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from notices import preferences
from slotserve.web.answers import member
from slotserve.web.zones import COOKIE

KNOWN = "kept-from-browser"  # in the session: what was kept last


class Remembering:
    """Middleware: once a session and value, after a page was shown."""

    sync_capable = True
    async_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer, and keep what is new."""
        response = self.get_response(request)
        if request.method == "GET" and response.headers.get("Content-Type", "").startswith(
            "text/html"
        ):
            _keep(request)
        return response


def _keep(request: HttpRequest) -> None:
    zone = unquote(request.COOKIES.get(COOKIE, ""))
    language = request.COOKIES.get(settings.LANGUAGE_COOKIE_NAME, "")
    is_said = (zone or language) and settings.SESSION_COOKIE_NAME in request.COOKIES
    if not is_said or not request.user.is_authenticated:
        return
    said = f"{zone[:64]} {language[:16]}"
    if request.session.get(KNOWN) != said:
        preferences.remember(member(request), zone, language)
        request.session[KNOWN] = said
