"""The cards of a lane: fragments of its page that refresh by themselves."""

from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from lanes import clock
from lanes.models import Lane
from slotserve import gpus
from slotserve.live.reading import cards_digest
from slotserve.overview import lanes_for_people
from slotserve.web.access import members_only
from slotserve.web.gpu_picture import WIDTH, draw

WINDOWS = (1, 6, 24)  # hours; a day is kept


@members_only
@require_safe
def lane_gpus(request: HttpRequest, slug: str) -> HttpResponse:
    """What the lane's cards do now, and who is on them."""
    lane = get_object_or_404(lanes_for_people(), slug=slug)
    return render(request, "_gpus.html", cards_context(lane, clock.database_now()))


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
    return next((hours for hours in WINDOWS if str(hours) == asked), WINDOWS[-1])


def cards_context(lane: Lane, now: datetime) -> dict[str, Any]:
    """What the fragment of cards is made of."""
    driver = gpus.drivers([lane.host]).get(lane.host_id)
    cards = gpus.cards_of_lane(lane, now)
    digest = cards_digest((card.gpu for card in cards), now)
    return {"lane": lane, "cards": cards, "cards_digest": digest, "driver": driver}


def day_context(lane: Lane, now: datetime, hours: int) -> dict[str, Any]:
    """What the picture is made of: a day is drawn, and the last hours of it are shown."""
    total = sum(gpu.memory_bytes for gpu in lane.gpus.all())
    since = now - timedelta(hours=hours)
    minutes = [each for each in gpus.day_of_lane(lane, now) if each.minute >= since]
    picture = draw(minutes, total, now, timezone.get_current_timezone())
    window = {"hours": hours, "windows": WINDOWS, "window_width": 60 * hours}
    shown = {"lane": lane, "picture": picture, "total_bytes": total}
    return {**shown, **window, "window_x": WIDTH - 60 * hours}
