"""The viewer's time zone: the browser says it in a cookie, pages show and read times in it."""

from collections.abc import Callable
from urllib.parse import unquote

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from wire.zones import zone_named

COOKIE = "zone"


class ViewerZone:
    """Middleware that activates the zone of the cookie; without one, the installation's."""

    sync_capable = True
    async_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer with the viewer's zone in force, for this request only."""
        zone = zone_named(unquote(request.COOKIES.get(COOKIE, "")))  # as browsers write it
        with timezone.override(zone):  # None: the installation's
            return self.get_response(request)
