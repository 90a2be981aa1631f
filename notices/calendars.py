"""Bookings as calendars read them (RFC 5545, invitations by RFC 5546). No secrets, no clock.

A booking has one UID for ever; SEQUENCE rises with each change that people are told of.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from unicodedata import category
from zoneinfo import ZoneInfo

from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from icalendar import Calendar, Event, vCalAddress, vText

from bookings.models import Booking, State
from lanes.telling import tell

REFRESH = timedelta(minutes=15)
YEAR = timedelta(days=366)
PRODUCT = "-//SlotServe//SlotServe//EN"
_CONTROL = frozenset(("Cc", "Cs"))
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


def invitation(dated: Dated, zone: ZoneInfo, organizer: str, person: User) -> tuple[str, bytes]:
    """The method, and a calendar for an e-mail that has it: to the booking's owner an invitation
    while it is confirmed; else, and to whoever had it before, the end of one."""
    booking = dated.booking
    is_theirs = booking.owner_id == person.pk and booking.state == State.CONFIRMED
    method = "REQUEST" if is_theirs else "CANCEL"
    event = _event(dated, zone)
    if not is_theirs:
        event["status"] = vText("CANCELLED")
    event.add("organizer", vCalAddress(f"mailto:{organizer}"))
    guest = vCalAddress(f"mailto:{person.email}")
    guest.params["CN"] = vText(" ".join(_clean(person.get_username()).split()))
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


def _calendar(method: str, events: list[Event]) -> Calendar:
    calendar = Calendar()
    calendar.add("prodid", PRODUCT)
    calendar.add("version", "2.0")
    calendar.add("method", method)
    for event in events:
        calendar.add_component(event)
    days = [event.decoded("dtstart").date() for event in events]
    if days:  # of zones, the clocks of these years; else of 1970 to 2038
        calendar.add_missing_timezones(min(days) - YEAR, max(days) + YEAR)
    return calendar


def _event(dated: Dated, zone: ZoneInfo) -> Event:
    booking, event = dated.booking, Event()
    what = tell(booking.called)
    event.add("uid", uid_of(booking))
    event.add("sequence", dated.sequence)
    event.add("dtstamp", dated.changed_at.astimezone(UTC).replace(microsecond=0))
    start, end = _times(booking, zone)
    event.add("dtstart", start)
    if end > start:  # else it takes no time, which only an event without an end may say
        event.add("dtend", end)
    lane = _clean(booking.lane.name)
    event.add("summary", _("%(what)s on %(lane)s") % {"what": _clean(what), "lane": lane})
    event.add("location", lane)
    event.add("status", STATUSES.get(State(booking.state), "CANCELLED"))
    if booking.purpose and dated.has_purpose:
        event.add("description", _clean(booking.purpose))
    if dated.url:
        event.add("url", dated.url)
    return event


def _times(booking: Booking, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """Start and end in the reader's zone, seconds kept, what is less not. In UTC when one of them
    is the second of two moments that this zone has the same name for: RFC 5545 takes the first."""
    moments = [each.replace(microsecond=0) for each in (booking.start, booking.end)]
    local = [each.astimezone(zone) for each in moments]
    is_utc = zone.key in {"UTC", "Etc/UTC"} or any(each.fold for each in local)
    start, end = [each.astimezone(UTC) for each in moments] if is_utc else local
    return start, end


def _clean(text: str) -> str:
    """Without what no text of a calendar may hold: control characters, but ends of lines."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(each for each in lines if each in "\n\t" or category(each) not in _CONTROL)
