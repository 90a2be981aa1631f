"""Calendars in mails and feeds: what RFC 5545 and RFC 5546 ask, whatever happens to a booking."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email import charset
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default as modern
from typing import Any
from zoneinfo import ZoneInfo

import icalendar
import pytest
from django.contrib.auth.models import User
from django.core import mail
from hypothesis import example, given
from hypothesis import strategies as st
from pytest_django import Settings

from bookings import services, sharing
from bookings.models import Booking, State
from lanes import clock
from lanes.models import Lane, Preset
from lanes.notices import News, tell_people
from notices.calendars import Dated, invitation, single
from notices.feeds import feed_of
from notices.mail import send_due
from notices.models import Entry, Preference
from notices.routing import route
from notices.telling import tell_bookings
from tests import builders
from wire.words import said

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
ORGANIZER = "slots@example.org"


def now() -> datetime:
    return clock.database_now()


def booked(**fields: object) -> Booking:
    fields.setdefault("owner", builders.person(email="owner@example.org"))
    fields.setdefault("start", now() + 2 * HOUR)
    return builders.booking(**fields)


def look() -> None:
    tell_bookings(now())
    route(now())
    send_due()


def sent() -> list[tuple[str, str, EmailMessage]]:
    """To whom, of what, and the mail as it went over the line."""
    found = []
    for each in mail.outbox:
        raw = each.message().as_bytes()
        whole = BytesParser(policy=modern).parsebytes(raw)
        assert isinstance(whole, EmailMessage)
        found.append((each.to[0].partition("@")[0], str(whole["Subject"]), whole))
    return found


def calendar_of(message: EmailMessage) -> Any:
    """Its calendar, held to what receivers ask of one."""
    (part,) = [each for each in message.walk() if each.get_content_type() == "text/calendar"]
    text = part.get_payload(decode=True)
    assert isinstance(text, bytes)
    checked(text)
    found = icalendar.Calendar.from_ical(text)
    assert part.get_param("method") == str(found["METHOD"])
    assert part.get_content_charset() == "utf-8"
    return found


def checked(text: bytes) -> Any:
    """RFC 5545, 3.1: lines of 75 octets that end in CRLF, no control characters; 3.6: what must be
    there; RFC 5546, 3.2.2 and 3.2.5: what requests and cancellations must have."""
    assert text.endswith(b"END:VCALENDAR\r\n")
    for line in text.removesuffix(b"\r\n").split(b"\r\n"):
        assert len(line) <= 75
        assert not re.search(rb"[\x00-\x08\x0a-\x1f\x7f]", line)
        line.decode()
    calendar = icalendar.Calendar.from_ical(text)
    assert (str(calendar["VERSION"]), bool(calendar["PRODID"])) == ("2.0", True)
    zones = {str(each["TZID"]) for each in calendar.walk("VTIMEZONE")}
    method = str(calendar["METHOD"])
    for event in calendar.walk("VEVENT"):
        assert {"UID", "DTSTAMP", "DTSTART", "SEQUENCE", "SUMMARY"} <= set(event)
        assert event["DTSTAMP"].to_ical()[-1:] == b"Z"
        assert "DTEND" not in event or event.decoded("DTEND") > event.decoded("DTSTART")
        for name in {"DTSTART", "DTEND"} & set(event):
            named = event[name].params.get("TZID")
            assert named in zones if named else event[name].to_ical()[-1:] == b"Z"
        if method in {"REQUEST", "CANCEL"}:
            assert str(event["ORGANIZER"]).lower().startswith("mailto:")
            assert str(event["ATTENDEE"]).lower().startswith("mailto:")
            assert (str(event["STATUS"]) == "CANCELLED") == (method == "CANCEL")
        else:
            assert not {"ORGANIZER", "ATTENDEE"} & set(event)
    return calendar


def told(message: EmailMessage) -> tuple[str, int]:
    calendar = calendar_of(message)
    (event,) = calendar.walk("VEVENT")
    return str(calendar["METHOD"]), event["SEQUENCE"]


def move(booking: Booking) -> None:
    services.move(booking, actor=booking.owner, start=booking.start + HOUR, end=booking.end + HOUR)


def cancel(booking: Booking) -> None:
    services.cancel(booking, actor=booking.owner)


def give(booking: Booking) -> None:
    heir = builders.person("heir", email="heir@example.org")
    services.transfer(booking, actor=builders.administrator(), to=heir)


def give_and_move(booking: Booking) -> None:
    give(booking)
    move(Booking.objects.get(pk=booking.pk))


# what happens after it was confirmed -> the calendars then: to whom, method and SEQUENCE
STORIES: list[tuple[list[Callable[[Booking], None]], list[tuple[str, str, int]]]] = [
    ([move], [("owner", "REQUEST", 1)]),
    ([move, move], [("owner", "REQUEST", 1), ("owner", "REQUEST", 2)]),
    ([cancel], [("owner", "CANCEL", 1)]),
    ([move, cancel], [("owner", "REQUEST", 1), ("owner", "CANCEL", 2)]),
    ([give], [("heir", "REQUEST", 1), ("owner", "CANCEL", 1)]),
    ([give, cancel], [("heir", "REQUEST", 1), ("owner", "CANCEL", 1), ("heir", "CANCEL", 2)]),
]  # fmt: skip


@pytest.mark.parametrize(("story", "expected"), STORIES)
def test_calendars_follow_what_happens(
    story: list[Callable[[Booking], None]], expected: list[tuple[str, str, int]]
) -> None:
    booking = booked()
    look()
    for happens in story:
        happens(Booking.objects.get(pk=booking.pk))
        look()
    found = [(who, *told(message)) for who, _, message in sent()]
    assert found[0] == ("owner", "REQUEST", 0)
    assert found[1:] == expected
    uids = {str(calendar_of(message).walk("VEVENT")[0]["UID"]) for *_, message in sent()}
    assert len(uids) == 1


def test_what_is_given_and_moved_at_once_ends_in_one_calendar_and_is_in_the_other() -> None:
    booking = booked()
    look()
    give_and_move(booking)
    look()
    found = sorted({(who, *told(message)) for who, _, message in sent()[1:]})
    assert found == [("heir", "REQUEST", 1), ("owner", "CANCEL", 1)]


def test_a_given_one_comes_to_no_calendar_of_its_old_owner_with_its_purpose(
    settings: Settings,
) -> None:
    settings.SLOTSERVE_WEB_URL = "https://gpu.example.org"
    booking = booked(purpose="secret plans")
    look()
    (event,) = calendar_of(sent()[0][2]).walk("VEVENT")
    assert str(event["URL"]) == f"https://gpu.example.org/bookings/{booking.pk}/"
    give(booking)
    look()
    (message,) = [each for who, _, each in sent()[1:] if who == "owner"]
    (event,) = calendar_of(message).walk("VEVENT")
    assert {"DESCRIPTION", "URL"}.isdisjoint(event)  # the page is not theirs to see
    assert str(event["ATTENDEE"]) == "mailto:owner@example.org"
    assert event["ATTENDEE"].params["RSVP"] == "FALSE"  # nobody reads an answer


def test_who_may_decide_about_their_own_booking_is_sent_no_end_of_it() -> None:
    administrator = builders.administrator()
    User.objects.filter(pk=administrator.pk).update(email="administrator@example.org")
    administrator.refresh_from_db()
    booked(owner=administrator, state=State.PENDING, confirmed_at=None)
    look()
    ((_, subject, message),) = sent()
    assert "asks for" in subject
    assert not [each for each in message.walk() if each.get_content_type() == "text/calendar"]


def test_an_approved_one_is_invited_to_and_a_rejected_one_ends() -> None:
    first, second = (booked(state=State.PENDING, confirmed_at=None) for _ in range(2))
    look()
    services.approve(first, actor=builders.administrator())
    services.reject(second, actor=builders.administrator())
    look()
    assert sorted(told(message) for _, _, message in sent()) == [("CANCEL", 1), ("REQUEST", 1)]


@pytest.mark.parametrize(("state", "expected"), [("pending", 0), ("confirmed", 1)])
def test_of_one_that_waits_after_a_move_only_what_was_sent_before_ends(
    state: str, expected: int
) -> None:
    booking = booked(state=state)
    look()
    Booking.objects.update(state="pending", start=booking.start + HOUR / 4)
    look()
    (_, subject, changed) = sent()[-1]
    assert "waits for an administrator" in subject
    parts = [each for each in changed.walk() if each.get_content_type() == "text/calendar"]
    assert [part.get_param("method") for part in parts] == ["CANCEL"] * expected


def test_a_released_one_is_shorter_in_the_calendar() -> None:
    booking = booked(start=now() - HOUR / 2)
    look()
    services.release(booking, actor=booking.owner)
    look()
    (_, _, message) = sent()[-1]
    assert told(message) == ("REQUEST", 1)
    (event,) = calendar_of(message).walk("VEVENT")
    assert event.end < booking.end


def test_an_entry_from_before_owners_were_kept_is_no_change() -> None:
    booking = booked()
    look()
    Entry.objects.update(owner_id_then=None)
    look()
    assert len(mail.outbox) == 1
    assert Entry.objects.get(booking=booking).sequence == 0


def test_a_mail_has_text_html_and_a_calendar_and_its_name_for_ever() -> None:
    booked()
    look()
    ((_, _, message),) = sent()
    kinds = [each.get_content_type() for each in message.walk() if not each.is_multipart()]
    assert kinds == ["text/plain", "text/html", "text/calendar"]
    assert re.fullmatch(r"<notice-\d+-\d{20}@[^@>]+>", str(message["Message-ID"]))
    assert message["Auto-Submitted"] == "auto-generated"  # no absence is answered to it


def test_a_mail_is_in_the_words_of_its_reader() -> None:
    owner = builders.person(email="owner@example.org")
    Preference.objects.create(person=owner, language="de")
    tell_people([owner], News("f", "failure", said("loading {preset}", preset="qwen")), now())
    route(now())
    send_due()
    ((_, subject, message),) = sent()
    assert subject == "SlotServe: qwen wird geladen"
    html = message.get_body(("html",))
    assert isinstance(html, EmailMessage)
    assert '<html lang="de">' in html.get_content()


def test_a_subject_has_the_beginning_of_a_long_sentence() -> None:
    news = News("disk:1", "disk", "word " * 100)
    tell_people([builders.person(email="owner@example.org")], news, now())
    route(now())
    send_due()
    ((_, subject, _),) = sent()
    assert subject.startswith("SlotServe: word word")
    assert len(subject) == 150


def test_a_calendar_in_a_mail_keeps_its_ends_of_lines_beside_other_libraries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Apprise has all texts of its process written as quoted-printable."""
    monkeypatch.setitem(charset.CHARSETS, "utf-8", (charset.QP, charset.QP, "utf-8"))
    booked()
    look()
    ((_, _, message),) = sent()
    assert told(message) == ("REQUEST", 0)


def test_a_calendar_brings_the_clocks_of_its_own_years() -> None:
    start = datetime(2045, 7, 1, 9, tzinfo=UTC)
    booking = booked(start=start, end=start + HOUR)
    text = single(Dated(booking, 0, start), ZoneInfo("Europe/Berlin")).decode()
    (event,) = icalendar.Calendar.from_ical(text).walk("VEVENT")
    assert event.decoded("dtstart") == start
    years = {int(year) for year in re.findall(r"(?:RDATE|DTSTART):(\d{4})", text)}
    assert min(years) == 2044
    assert max(years) == 2046


def test_a_feed_has_what_is_shared_with_its_reader_without_its_purpose() -> None:
    guest = builders.person("guest", email="guest@example.org")
    booking = booked(purpose="secret plans")
    booked(owner=builders.person("stranger"))
    builders.booking(owner=guest, start=now(), purpose="mine")
    sharing.share(booking, actor=booking.owner, member=guest)
    events = checked(feed_of(guest, now())[0]).walk("VEVENT")
    assert [str(each.get("DESCRIPTION")) for each in events] == ["None", "mine"]


def test_an_administrator_s_feed_has_her_own_alone() -> None:
    booked()
    assert not checked(feed_of(builders.administrator(), now())[0]).walk("VEVENT")


# zone -> a start in UTC, in an hour that the clocks there have twice or leave out, and a length
NIGHTS = [
    ("Europe/Berlin", "2031-03-30T00:30", 60),
    ("Europe/Berlin", "2031-10-26T00:30", 60),  # both ends are called 02:30
    ("Europe/Berlin", "2031-10-26T01:30", 30),  # the second 02:30
    ("America/New_York", "2031-03-09T06:30", 60),
    ("America/New_York", "2031-11-02T05:30", 60),
    ("America/New_York", "2031-11-02T06:15", 15),
    ("Australia/Lord_Howe", "2031-04-05T14:40", 30),
    ("Australia/Lord_Howe", "2031-04-05T15:10", 60),
    ("Australia/Lord_Howe", "2031-10-04T15:20", 60),
    ("UTC", "2031-03-30T00:30", 60),
]


def by_its_own_zone(calendar: Any, moment: Any) -> datetime:
    """When it is for a reader who knows of a zone only what the calendar says."""
    value = moment.dt
    named = moment.params.get("TZID")
    if named is None:
        return value.astimezone(UTC)  # type: ignore[no-any-return]
    (zone,) = [each for each in calendar.walk("VTIMEZONE") if str(each["TZID"]) == named]
    local = value.replace(tzinfo=zone.to_tz(lookup_tzid=False), fold=0)
    return local.astimezone(UTC)  # type: ignore[no-any-return]


@pytest.mark.parametrize(("zone", "start", "minutes"), NIGHTS)
def test_moments_are_the_same_in_every_calendar_in_nights_of_changes(
    zone: str, start: str, minutes: int
) -> None:
    begins = datetime.fromisoformat(start).replace(tzinfo=UTC)
    ends = begins + timedelta(minutes=minutes)
    booking = booked(start=begins, end=ends)
    person = booking.owner
    for text in (
        single(Dated(booking, 0, begins), ZoneInfo(zone)),
        invitation(Dated(booking, 0, begins), ZoneInfo(zone), ORGANIZER, person)[1],
    ):
        calendar = checked(text)
        (event,) = calendar.walk("VEVENT")
        assert by_its_own_zone(calendar, event["DTSTART"]) == begins
        assert by_its_own_zone(calendar, event["DTEND"]) == ends


@given(text=st.text(max_size=200), name=st.text(min_size=1, max_size=40))
@example(text="a\r\nBEGIN:VALARM\r\n", name="x\nATTENDEE:mailto:evil@example.org")
@example(text='\x00\x1b[31m\x7f\x85, ; \\ "', name='"quoted"; name, \\ ^')
def test_whatever_people_write_stays_in_its_property(text: str, name: str) -> None:
    booking = _unsaved(text, name)
    for made in (
        single(Dated(booking, 0, builders.NOON), ZoneInfo("UTC")),
        invitation(Dated(booking, 0, builders.NOON), ZoneInfo("UTC"), ORGANIZER, booking.owner)[1],
    ):
        calendar = checked(made)
        (event,) = calendar.walk("VEVENT")
        assert len(calendar.subcomponents) == 1
        assert not event.subcomponents
        assert isinstance(event.get("ATTENDEE", ""), str)  # one, not a list


def _unsaved(text: str, name: str) -> Booking:
    owner = User(pk=1, username=name, email="owner@example.org")
    lane = Lane(name=name, slug="x")
    preset = Preset(name=name, slug="x")
    return Booking(
        pk=1, owner=owner, lane=lane, preset=preset, purpose=text, state=State.CONFIRMED,
        start=builders.at(0), end=builders.at(60), created_at=builders.at(-60),
    )  # fmt: skip
