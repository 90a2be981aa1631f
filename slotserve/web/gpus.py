"""The cards of a lane: fragments of its page that refresh by themselves."""

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.cache import caches
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from lanes import clock
from lanes.models import Lane
from slotserve import gpus
from slotserve.live.reading import cards_digest
from slotserve.live.state import digest_of
from slotserve.overview import lanes_for_people
from slotserve.web.access import members_only
from slotserve.web.answers import member
from slotserve.web.gpu_picture import OF_A_DAY, OF_A_WEEK, Picture, Scale, draw

DAY, WEEK = 24, 7 * 24
WINDOWS = (1, 6, DAY, WEEK)  # hours; a day is kept by minutes, a week by five


@members_only
@require_safe
def lane_gpus(request: HttpRequest, slug: str) -> HttpResponse:
    """What the lane's cards do now, and who is on them."""
    lane = get_object_or_404(lanes_for_people(), slug=slug)
    context = cards_context(lane, clock.database_now(), member(request))
    return render(request, "_gpus.html", context)


@members_only
@require_safe
def lane_day(request: HttpRequest, slug: str) -> HttpResponse:
    """The picture of the lane's last hours."""
    lane = get_object_or_404(lanes_for_people(), slug=slug)
    context = day_context(lane, clock.database_now(), hours_of(request))
    return render(request, "_gpu_day.html", context)


def hours_of(request: HttpRequest) -> int:
    """How many hours the picture is to show; what is not offered is a day."""
    asked = request.GET.get("hours", "")
    return next((hours for hours in WINDOWS if str(hours) == asked), DAY)


def cards_context(lane: Lane, now: datetime, viewer: User) -> dict[str, Any]:
    """What the fragment of cards is made of."""
    driver = gpus.drivers([lane.host]).get(lane.host_id)
    cards = gpus.cards_of_lane(lane, now)
    if not viewer.is_staff:
        cards = [gpus.without_names(card) for card in cards]
    digest = cards_digest((card.gpu for card in cards), now)
    return {"lane": lane, "cards": cards, "cards_digest": digest, "driver": driver}


def day_context(lane: Lane, now: datetime, hours: int) -> dict[str, Any]:
    """What the picture is made of: a week, or a day of which the last hours are shown."""
    total = sum(gpu.memory_bytes for gpu in lane.gpus.all())
    scale = OF_A_WEEK if hours > DAY else OF_A_DAY
    width = 60 * hours // scale.minutes
    picture = _picture(lane, now, hours, total, scale)
    windows = [(each, _window_words(each)) for each in WINDOWS]
    window = {"hours": hours, "windows": windows, "window_width": width, "scale": scale}
    shown = {"lane": lane, "picture": picture, "total_bytes": total}
    return {**shown, **window, "window_x": scale.width - width}


def _picture(lane: Lane, now: datetime, hours: int, total: int, scale: Scale) -> Picture:
    """Drawn once a minute for all who look in the same language and zone."""
    zone, minute = timezone.get_current_timezone(), int(now.timestamp()) // 60
    name = digest_of("hours", lane.pk, hours, total, minute, str(zone), get_language())
    kept: Picture | None = caches["sums"].get(name)
    if kept is None:
        rows = gpus.week_of_lane(lane, now) if hours > DAY else gpus.day_of_lane(lane, now)
        since = now - timedelta(hours=hours)
        kept = draw([each for each in rows if each.minute >= since], total, now, zone, scale)
        caches["sums"].set(name, kept, 60)
    return kept


def _window_words(hours: int) -> str:
    return _("7 days") if hours == WEEK else _("%(hours)s h") % {"hours": hours}
