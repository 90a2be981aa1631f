"""What holds for every request and every answer of the web process, pages and REST alike."""

import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus

from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse
from django.http.request import RawPostDataException
from django.template.loader import render_to_string
from django.utils.cache import patch_cache_control

from slotserve.api.fallback import bad_request, busy
from slotserve.database_refusals import refusal_of

log = logging.getLogger(__name__)


class Doors:
    """Middleware: nothing that no database can keep comes in, no cache keeps what goes out."""

    sync_capable = True
    async_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Refuse a NUL in path, query or cookie; answers are for this viewer, now."""
        if _has_nul(request):
            return bad_request(request, SuspiciousOperation())
        response = self.get_response(request)
        if response.status_code == HTTPStatus.METHOD_NOT_ALLOWED and not response.content:
            response.content = render_to_string("405.html", request=request)
            response["Content-Length"] = str(len(response.content))
        _log_refusal(request, response)
        if not response.has_header("Cache-Control"):
            patch_cache_control(response, private=True, no_store=True)
        return response

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """What is busy is a 503; a value that no database can keep, and a form in the place of
        another body, a 400; the rest is a 500."""
        if isinstance(error, RawPostDataException):
            return bad_request(request, error)
        refusal = refusal_of(error, request.path)
        if refusal is None:
            return None
        return busy(request.path) if refusal.code == "busy" else bad_request(request, error)


def _log_refusal(request: HttpRequest, response: HttpResponse) -> None:
    """Why REST answers 400, beside Django's line: the code and the fields, no values."""
    said = getattr(response, "data", None)
    if response.status_code == HTTPStatus.BAD_REQUEST and isinstance(said, Mapping):
        names = ", ".join(str(name) for name in said.get("fields", ()))
        reason = f"{said.get('code')} ({names})" if names else said.get("code")
        log.warning("refused %s %r: %r", request.method, request.path, reason)


def _has_nul(request: HttpRequest) -> bool:
    return (
        "\0" in request.path
        or "%00" in request.META.get("QUERY_STRING", "")
        or any("\0" in value for value in request.COOKIES.values())
    )
