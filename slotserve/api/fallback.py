"""Below /api/ every answer is JSON, also where no view of ours was reached."""

import sys

from django.core.exceptions import BadRequest, SuspiciousOperation
from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from django.views import defaults
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from bookings.guards import is_chance

ROOT = "/api/"
NOTHING_HERE = "There is nothing at this address: see /api/v1/docs/."
UNREADABLE = "This request could not be read."


@extend_schema(exclude=True)
class NotFoundView(APIView):
    """404 for any method."""

    authentication_classes = ()
    permission_classes = (AllowAny,)

    def initial(self, request: Request, *args: object, **kwargs: object) -> None:
        """Nothing to check: there is nothing here."""

    def http_method_not_allowed(  # type: ignore[override]
        self, request: Request, *args: object, **kwargs: object
    ) -> Response:
        """The one answer."""
        body = {"code": "not_found", "detail": NOTHING_HERE}
        return Response(body, status=status.HTTP_404_NOT_FOUND)

    options = http_method_not_allowed


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler400."""
    _leave_form_unread(request)
    return unreadable(request.path) or defaults.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler403."""
    if request.path.startswith(ROOT):
        return _json(403, "permission_denied", _("You may not do this."))
    _leave_form_unread(request)
    return defaults.permission_denied(request, exception)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler404."""
    if request.path.startswith(ROOT):
        return _json(404, "not_found", NOTHING_HERE)
    _leave_form_unread(request)
    return defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """handler500. An error of middleware, which meets a database that is away first, comes here
    without having been anywhere else."""
    error = sys.exc_info()[1]
    if isinstance(error, Exception) and is_chance(error):
        return busy(request.path)
    if request.path.startswith(ROOT):
        return _json(500, "error", _("Something went wrong here; it has been logged."))
    _leave_form_unread(request)
    return defaults.server_error(request)


def busy(path: str) -> HttpResponse:
    """503 with Retry-After. Its page asks the database nothing, which may be away."""
    if path.startswith(ROOT):
        answer = _json(503, "busy", _("The database is busy: try again in a second."))
    else:
        answer = HttpResponse(render_to_string("503.html"), status=503)
    answer["Retry-After"] = "1"
    return answer


def unreadable(path: str) -> HttpResponse | None:
    """400 in JSON for an address below /api/; None elsewhere."""
    return _json(400, "bad_request", UNREADABLE) if path.startswith(ROOT) else None


def _leave_form_unread(request: HttpRequest) -> None:
    """A form that could not be read is none for Django's pages of errors: they look into it again,
    for its CSRF token, and would fail as the page did."""
    if request.method != "POST":
        return
    try:
        request.POST  # noqa: B018 - reads it
    except (SuspiciousOperation, BadRequest, MultiPartParserError, UnreadablePostError):
        request.POST = QueryDict()


def _json(code: int, name: str, words: str) -> HttpResponse:
    return JsonResponse({"code": name, "detail": words}, status=code)
