"""Bookings as calendars read them (RFC 5545, invitations by RFC 5546). No secrets, no clock.

A booking has one UID for ever; SEQUENCE rises with each change that people are told of.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _
from icalendar import Calendar, Event, vCalAddress, vText

from bookings.models import Booking, State

REFRESH = timedelta(minutes=15)
PRODUCT = "-//SlotServe//SlotServe//EN"
STATUSES = {State.PENDING: "TENTATIVE", State.CONFIRMED: "CONFIRMED", State.HELD: "TENTATIVE"}


@dataclass(frozen=True, slots=True)
class Dated:
    """A booking with what its entry says."""

    booking: Booking
    sequence: int
    changed_at: datetime
    url: str = ""
    has_purpose: bool = True


def uid_of(booking: Booking) -> str:
    """The same for ever, and no other installation's."""
    return f"booking-{booking.pk}-{booking.created_at.astimezone(UTC):%Y%m%dT%H%M%S%f}@slotserve"


def invitation(dated: Dated, zone: ZoneInfo, organizer: str) -> tuple[str, bytes]:
    """The method, and a calendar for an e-mail to the booking's owner that has it."""
    booking = dated.booking
    method = "REQUEST" if booking.state == State.CONFIRMED else "CANCEL"
    event = _event(dated, zone)
    event.add("organizer", vCalAddress(f"mailto:{organizer}"))
    guest = vCalAddress(f"mailto:{booking.owner.email}")
    guest.params["CN"] = vText(booking.owner.get_username())
    guest.params["PARTSTAT"], guest.params["RSVP"] = vText("ACCEPTED"), vText("FALSE")
    event.add("attendee", guest, encode=False)
    return method, bytes(_calendar(method, [event]).to_ical())


def feed(bookings: Iterable[Dated], zone: ZoneInfo, title: str) -> bytes:
    """All of somebody's bookings; the same bytes while nothing changes."""
    calendar = _calendar("PUBLISH", [_event(each, zone) for each in bookings])
    calendar.add("x-wr-calname", title)
    calendar.add("refresh-interval", REFRESH, parameters={"VALUE": "DURATION"})
    return bytes(calendar.to_ical())


def single(dated: Dated, zone: ZoneInfo) -> bytes:
    """One booking to be taken into a calendar by hand."""
    return bytes(_calendar("PUBLISH", [_event(dated, zone)]).to_ical())


def _calendar(method: str, events: Iterable[Event]) -> Calendar:
    calendar = Calendar()
    calendar.add("prodid", PRODUCT)
    calendar.add("version", "2.0")
    calendar.add("method", method)
    for event in events:
        calendar.add_component(event)
    calendar.add_missing_timezones()
    return calendar


def _event(dated: Dated, zone: ZoneInfo) -> Event:
    booking, event = dated.booking, Event()
    what = booking.preset.name if booking.preset else _("Whole GPU")
    event.add("uid", uid_of(booking))
    event.add("sequence", dated.sequence)
    event.add("dtstamp", dated.changed_at.astimezone(UTC).replace(microsecond=0))
    event.add("dtstart", _local(booking.start, zone))
    event.add("dtend", _local(booking.end, zone))
    event.add("summary", _("%(what)s on %(lane)s") % {"what": what, "lane": booking.lane.name})
    event.add("location", booking.lane.name)
    event.add("status", STATUSES.get(State(booking.state), "CANCELLED"))
    if booking.purpose and dated.has_purpose:
        event.add("description", booking.purpose)
    if dated.url:
        event.add("url", dated.url)
    return event


def _local(moment: datetime, zone: ZoneInfo) -> datetime:
    """In the reader's zone; seconds are kept, what is less is not."""
    is_utc = zone.key in {"UTC", "Etc/UTC"}
    return moment.astimezone(UTC if is_utc else zone).replace(microsecond=0)
