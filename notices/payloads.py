"""What webhooks carry. docs/notices.md has it for those who read them."""

from datetime import UTC, datetime
from typing import Any

from django.conf import settings

from bookings.models import Booking
from lanes.models import Lane, Notice
from lanes.telling import tell
from notices.wording import Words

Payload = dict[str, Any]


def booking_payload(booking: Booking, sequence: int, words: Words) -> Payload:
    """Of what is about a booking."""
    return {
        **_said(words.sentence, words.advice),
        "lane": _lane(booking.lane),
        "booking": {
            "id": booking.pk,
            "owner": booking.owner.get_username(),
            "kind": booking.kind,
            "preset": booking.preset.slug if booking.preset else None,
            "start": iso(booking.start),
            "end": iso(booking.end),
            "state": booking.state,
            "sequence": sequence,
        },
    }


def lane_payload(lane: Lane | None, words: Words, **times: datetime) -> Payload:
    """Of what is about a lane, with times of it."""
    said = {**_said(words.sentence, words.advice), "lane": _lane(lane)}
    return {**said, **{name: iso(time) for name, time in times.items()}}


def notice_payload(notice: Notice) -> Payload:
    """Of what hosts and the planner tell."""
    return {
        **lane_payload(notice.lane, Words(notice.told_sentence, notice.told_advice)),
        "kind": notice.kind,
    }


def iso(moment: datetime) -> str:
    """In UTC, such as 2030-01-15T12:00:00Z."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _said(sentence: str, advice: str) -> Payload:
    return {
        "sentence": tell(sentence),
        "advice": tell(advice),
        "url": settings.SLOTSERVE_WEB_URL or None,
    }


def _lane(lane: Lane | None) -> Payload | None:
    return {"slug": lane.slug, "name": lane.name} if lane else None
