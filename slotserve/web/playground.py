"""The playground: a chat with what a lane has loaded, through the gateway, from the browser."""

from dataclasses import dataclass
from datetime import datetime
from typing import cast
from urllib.parse import urlsplit

from csp.decorators import csp_update
from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from bookings.models import Booking, State
from gateway import browser_tokens
from gateway.publish import publish
from lanes import clock
from lanes.models import Lane
from lanes.refusals import Refusal
from slotserve.web.access import members_only
from slotserve.web.answers import member
from wire.sealing import has_table_keys

CODE_KINDS = (  # as static/slotserve/playground_code.js writes them
    ("curl", "curl"),
    ("openai", "Python, OpenAI"),
    ("anthropic", "Python, Anthropic"),
    ("environment", gettext_lazy("Environment")),
)


@dataclass(frozen=True, slots=True)
class LaneChoice:
    """A lane to chat with."""

    slug: str
    name: str
    preset: str  # that it should run; empty: none
    is_mine: bool  # in this person's slot, or one shared with them


@members_only
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """The page; what it does is in the browser. `?lane=` and `?beside=` choose lanes."""
    lanes = lane_choices(member(request), clock.database_now())
    slugs = [lane.slug for lane in lanes]
    asked, beside = request.GET.get("lane", ""), request.GET.get("beside", "")
    context = {
        "lanes": lanes,
        "chosen": asked if asked in slugs else _best(lanes),
        "beside": beside if beside in slugs else "",
        "gateway": settings.SLOTSERVE_GATEWAY_URL.rstrip("/"),
        "pages": settings.SLOTSERVE_WEB_URL,
        "code_kinds": CODE_KINDS,
    }
    allowed = {"connect-src": [gateway_origin()]}
    shown = csp_update(allowed)(lambda asked: render(asked, "playground.html", context))
    return cast(HttpResponse, shown(request))


@members_only
@never_cache
@require_POST
def token(request: HttpRequest) -> HttpResponse:
    """A token for this browser's session, kept in the memory of the page alone."""
    made = browser_tokens.make_browser_token(member(request), request.session.session_key or "")
    if isinstance(made, Refusal):
        return JsonResponse({"code": made.code, "words": made.words}, status=403)
    text, _ = made
    if has_table_keys():  # its first question must not come before the gateway knows it
        publish()
    seconds = browser_tokens.LIFETIME.total_seconds()
    return JsonResponse({"token": text, "seconds": seconds})


def lane_choices(viewer: User, now: datetime) -> list[LaneChoice]:
    """The lanes that take bookings, by name; two queries."""
    mine = Booking.objects.usable_by(viewer).filter(
        state=State.CONFIRMED, start__lte=now, confirmed_at__lte=now, end__gt=now
    )
    own = set(mine.order_by().values_list("lane_id", flat=True))
    rows = Lane.objects.filter(enabled=True).order_by("name", "pk")
    fields = ("pk", "slug", "name", "order__target__preset__slug")
    return [
        LaneChoice(slug, name, preset or "", pk in own)
        for pk, slug, name, preset in rows.values_list(*fields)
    ]


def gateway_origin() -> str:
    """Scheme, host and port of the gateway, as a policy names them."""
    parts = urlsplit(settings.SLOTSERVE_GATEWAY_URL)
    return f"{parts.scheme}://{parts.netloc}"


def _best(lanes: list[LaneChoice]) -> str:
    """The lane of the viewer's own slot, else the first that runs something."""
    ranked = sorted(lanes, key=lambda lane: (not lane.is_mine, not lane.preset))
    return ranked[0].slug if ranked else ""
