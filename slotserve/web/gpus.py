"""The cards of a lane: fragments of its page that refresh by themselves."""

from datetime import datetime
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
from slotserve.web.gpu_picture import draw


@members_only
@require_safe
def lane_gpus(request: HttpRequest, slug: str) -> HttpResponse:
    """What the lane's cards do now, and who is on them."""
    lane = get_object_or_404(lanes_for_people(), slug=slug)
    return render(request, "_gpus.html", cards_context(lane, clock.database_now()))


@members_only
@require_safe
def lane_day(request: HttpRequest, slug: str) -> HttpResponse:
    """The picture of the lane's last 24 hours."""
    lane = get_object_or_404(lanes_for_people(), slug=slug)
    return render(request, "_gpu_day.html", day_context(lane, clock.database_now()))


def cards_context(lane: Lane, now: datetime) -> dict[str, Any]:
    """What the fragment of cards is made of."""
    driver = gpus.drivers([lane.host]).get(lane.host_id)
    cards = gpus.cards_of_lane(lane, now)
    digest = cards_digest((card.gpu for card in cards), now)
    return {"lane": lane, "cards": cards, "cards_digest": digest, "driver": driver}


def day_context(lane: Lane, now: datetime) -> dict[str, Any]:
    """What the picture is made of."""
    total = sum(gpu.memory_bytes for gpu in lane.gpus.all())
    minutes = gpus.day_of_lane(lane, now)
    picture = draw(minutes, total, now, timezone.get_current_timezone())
    return {"lane": lane, "picture": picture, "total_bytes": total}
