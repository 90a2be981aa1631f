"""A webhook and a chat room that were told of bookings: mostly they answered."""

from datetime import timedelta

from bookings.models import Booking, State
from notices.endpoints import delivery_to
from notices.events import Event
from notices.models import Delivery, Endpoint, EndpointKind
from notices.payloads import booking_payload
from notices.sealed import sealed
from notices.webhooks import new_secret
from notices.wording import Words
from slotserve.demo.company import Company
from slotserve.demo.scale import Demo

LATEST = 12
EVENTS = [Event.CONFIRMED, Event.RELEASED, Event.FAILURE]


def make_hooks(demo: Demo, company: Company) -> None:
    """Two endpoints; the webhook has been told of the latest bookings, once in vain."""
    hook = _endpoint(demo, "Dashboard", EndpointKind.WEBHOOK, "https://dashboard.demo.invalid/")
    _endpoint(demo, "Lab room", EndpointKind.CHAT, "ntfys://ntfy.demo.invalid/gpus")
    told = Booking.objects.filter(state=State.CONFIRMED, lane__in=company.lanes)
    latest = told.select_related("lane", "preset", "owner").order_by("-created_at")[:LATEST]
    rows = [_told(hook, booking, number) for number, booking in enumerate(reversed(latest))]
    Delivery.objects.bulk_create(rows)


def _endpoint(demo: Demo, name: str, kind: EndpointKind, url: str) -> Endpoint:
    return Endpoint.objects.create(
        name=name,
        kind=kind,
        sealed_url=sealed(url),
        shown=f"{url.rpartition('/')[0]}/…" if kind == EndpointKind.WEBHOOK else "ntfys://…",
        sealed_secret=sealed(new_secret()) if kind == EndpointKind.WEBHOOK else "",
        events=sorted(EVENTS),
        created_at=demo.now - timedelta(days=demo.scale.days),
    )


def _told(hook: Endpoint, booking: Booking, number: int) -> Delivery:
    """Told, but the second was given up."""
    words = Words(f"{booking.owner.get_username()} has {booking.lane.name}.", "")
    key = f"{Event.CONFIRMED}:{booking.pk}"
    payload = booking_payload(booking, 0, words)
    row = delivery_to(hook, Event.CONFIRMED, key, payload, booking.created_at)
    is_failed = number == 1
    row.state = Delivery.State.FAILED if is_failed else Delivery.State.SENT
    row.status = 503 if is_failed else 204
    row.attempts = 8 if is_failed else 1
    row.reason = "it answered 503" if is_failed else ""
    row.tried_at = booking.created_at + timedelta(hours=20 if is_failed else 0, seconds=2)
    row.send_from = None
    return row
