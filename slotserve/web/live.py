"""The stream of what changes, to which each open page listens."""

from http import HTTPStatus
from typing import cast

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from slotserve.live.hub import Connection, hub
from slotserve.live.reading import Visitor
from slotserve.web.answers import member
from wire.http_protocol import CONNECTION

RETRY_SECONDS = 5


@require_safe
def events(request: HttpRequest) -> HttpResponseBase:
    """Server-sent events: `state` (digests by topic, figures by lane), `you` (unread notices),
    `beat` (nothing new) and `end`. 401 without a session; 204, after which browsers do not ask
    again, where nothing can be streamed; 503 when too many listen."""
    if not request.user.is_authenticated:
        return HttpResponse(status=HTTPStatus.UNAUTHORIZED)
    if not isinstance(request, ASGIRequest) or request.method == "HEAD":
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    if hub.is_full:
        return HttpResponse(
            status=HTTPStatus.SERVICE_UNAVAILABLE, headers={"Retry-After": str(RETRY_SECONDS)}
        )
    below = request.scope.get("extensions", {}).get(CONNECTION)
    return StreamingHttpResponse(
        hub.stream(_visitor(request), cast(Connection | None, below)),
        content_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


def _visitor(request: HttpRequest) -> Visitor:
    user = member(request)
    return Visitor(user.pk, request.session.session_key or "", user.password, user.is_staff)
