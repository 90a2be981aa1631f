"""The overview's cards, each rendered once for all who see the same."""

from functools import lru_cache
from urllib.parse import urlencode

from django import template
from django.contrib.auth.models import User
from django.core.cache import caches
from django.template import Engine
from django.template.context import RequestContext
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language

from bookings.models import Booking
from bookings.names import Names
from slotserve.live.state import digest_of
from slotserve.names import names_of
from slotserve.overview import LaneOverview

TEMPLATE = "_lane_card.html"
KEPT_SECONDS = 3600  # names hold all that cards show: this only lets those of lanes that went go

register = template.Library()


@register.simple_tag(takes_context=True)
def lane_card(context: RequestContext, view: LaneOverview) -> SafeString:
    """One card; kept by all that it shows, but for those that move or have something to press."""
    if is_moving(view):
        return _rendered(context, view)
    name = name_of(view, context["user"], names_of(context["request"]))
    kept = caches["cards"].get(name)
    if kept is None:
        kept = _rendered(context, view)
        caches["cards"].set(name, kept, KEPT_SECONDS)
    card: SafeString = mark_safe(kept)  # noqa: S308 - it was rendered by the template
    return card


def is_moving(view: LaneOverview) -> bool:
    """Whether it shows a clock that runs, or a form."""
    is_troubled = bool(view.trouble or view.held_up or view.is_host_silent)
    return is_troubled or view.is_switching or view.progress is not None


def name_of(view: LaneOverview, viewer: User, names: Names) -> str:
    """Under which a card is kept: another one whenever anything on it differs."""
    lane, memory = view.lane, view.memory
    return digest_of(
        *(view.digest, lane.pk, lane.slug, view.phase, view.order.words if view.order else None),
        view.runtime.revision.preset.name if view.runtime else None,
        *(_claim(claim, viewer, names) for claim in (view.booking, view.next_booking)),
        (view.choice.preset.slug if view.choice.preset else "") if view.choice else None,
        *(memory.memory, memory.used, memory.busy),
        *(gpu.name for gpu in lane.gpus.all()),
        *(get_language(), timezone.get_current_timezone_name(), timezone.localdate()),
    )


def _claim(claim: Booking | None, viewer: User, names: Names) -> tuple[object, ...]:
    if claim is None:
        return ()
    slug = claim.preset.slug if claim.preset else None
    return (names.of(claim.owner.username), claim.owner_id == viewer.pk, slug)


@register.simple_tag
@lru_cache(maxsize=1000)
def lane_addresses(slug: str) -> dict[str, str]:
    """Those on a lane's card, by the pages' names: resolving them takes long."""
    query = urlencode({"lane": slug})
    queried = {name: f"{reverse(name)}?{query}" for name in ("overview", "book")}
    return {**queried, **{name: reverse(name, args=(slug,)) for name in ("lane", "use")}}


def _rendered(context: RequestContext, view: LaneOverview) -> SafeString:
    found = Engine.get_default().get_template(TEMPLATE)
    with context.push(view=view):
        return found.render(context)
