"""The page of preferences, the calendar by secret address, and links that need no log-in."""

import logging
import re
from datetime import timedelta

import icalendar
import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from bookings.models import Booking
from lanes import clock
from lanes.models import Lane
from lanes.refusals import Refusal
from notices import links, preferences
from notices.events import Channel, Event
from notices.models import Link, Preference
from slotserve.logs import NoSecretPaths, NoSecrets
from tests import builders

pytestmark = pytest.mark.django_db
VALUES = {"zone": "Europe/Berlin", "language": "", "reminder_minutes": "15"}
VALUES |= {"freed_minutes": "60", "freed_days": "3"}


@pytest.fixture
def owner() -> User:
    return builders.person(email="owner@example.org")


@pytest.fixture
def own(client: Client, owner: User) -> Client:
    client.force_login(owner)
    return client


def test_what_the_page_says_is_kept(own: Client, owner: User) -> None:
    boxes = ["warm-app", "confirmed-mail", "freed-push", "nonsense-app", "warm-pigeon"]
    assert own.post("/preferences/", {**VALUES, "tell": boxes}).status_code == 302
    kept = Preference.objects.get(person=owner)
    assert (kept.zone, kept.reminder_minutes, kept.freed_days) == ("Europe/Berlin", 15, 3)
    assert preferences.channels_for(kept, Event.WARM) == {Channel.APP}
    assert preferences.channels_for(kept, Event.STARTING) == set()
    assert preferences.channels_for(kept, Event.DECISION_NEEDED) == set(Channel) - {
        *(Channel.CHAT, Channel.WEBHOOK)
    }
    page = own.get("/preferences/").content.decode()
    assert re.search(r'value="freed-push"\s+checked', page)
    assert "decision_needed" not in page  # is for administrators


@pytest.mark.parametrize(
    "wrong",
    [
        *({"zone": "Mars/Olympus"}, {"language": "xx"}, {"reminder_minutes": "0"}),
        *({"reminder_minutes": "x"}, {"freed_days": "900"}, {"freed_minutes": "9" * 40}),
    ],
)
def test_what_cannot_be_meant_is_refused_in_words(
    own: Client, owner: User, wrong: dict[str, str]
) -> None:
    answer = own.post("/preferences/", {**VALUES, **wrong})
    assert answer.status_code == 400
    assert 'role="alert"' in answer.content.decode()
    assert not Preference.objects.filter(person=owner).exists()


@pytest.mark.parametrize(
    ("choices", "code"),
    [
        ({"warm": ["app"]}, None),
        ({"sunrise": ["app"]}, "unknown_choice"),
        ({"warm": ["pigeon"]}, "unknown_choice"),
        ({"warm": ["webhook"]}, "unknown_choice"),
        ({"warm": "app"}, "unknown_choice"),
        (["warm"], "unknown_choice"),
    ],
)
def test_choices_are_of_what_there_is(owner: User, choices: object, code: str | None) -> None:
    saved = preferences.save(owner, {"choices": choices})
    assert (saved.code if isinstance(saved, Refusal) else None) == code


def test_the_page_asks_the_database_little(
    own: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    own.get("/preferences/")
    # session, member, preferences, browsers, unread notices, announcements
    with django_assert_num_queries(6):
        own.get("/preferences/")


def test_strangers_are_led_to_log_in(client: Client) -> None:
    assert client.get("/preferences/").status_code == 302
    assert client.post("/preferences/calendar/").status_code == 302


def address(own: Client) -> str:
    page = own.post("/preferences/calendar/").content.decode()
    (found,) = re.findall(r"http://testserver(/feeds/[^/]+/bookings.ics)", page)
    return str(found)


def test_the_calendar_needs_its_address_alone(own: Client, owner: User, client: Client) -> None:
    now = clock.database_now()
    booking = builders.booking(owner=owner, start=now + timedelta(hours=1))
    for state in ("pending", "cancelled"):
        builders.booking(owner=owner, start=now + timedelta(hours=3), state=state)
    builders.booking(owner=builders.person("stranger"), start=now)
    answer = Client().get(address(own))
    events = icalendar.Calendar.from_ical(answer.content).walk("VEVENT")
    assert sorted(str(each["STATUS"]) for each in events) == [
        *("CANCELLED", "CONFIRMED", "TENTATIVE")
    ]
    assert booking.start.replace(microsecond=0) in {each.decoded("DTSTART") for each in events}
    assert answer["Content-Type"].startswith("text/calendar")
    assert answer["Referrer-Policy"] == "no-referrer"


def test_who_has_the_calendar_already_gets_none_until_it_changes(own: Client, owner: User) -> None:
    booking = builders.booking(owner=owner, start=clock.database_now())
    where = address(own)
    tag = own.get(where)["ETag"]
    assert own.get(where, headers={"If-None-Match": tag}).status_code == 304
    Booking.objects.filter(pk=booking.pk).update(state="cancelled")
    again = own.get(where, headers={"If-None-Match": tag})
    assert (again.status_code, again["ETag"] != tag) == (200, True)


def test_a_new_address_ends_the_one_before(own: Client) -> None:
    first = address(own)
    second = address(own)
    assert [own.get(each).status_code for each in (first, second)] == [404, 200]
    own.post("/preferences/calendar/", {"end": "yes"})
    assert own.get(second).status_code == 404


def test_of_a_calendar_s_secret_only_its_digest_is_kept(own: Client, owner: User) -> None:
    secret = address(own).split("/")[2]
    kept = Preference.objects.get(person=owner).feed_digest
    assert kept == preferences.digest(secret) != secret


def test_a_member_s_calendar_ends_with_the_account(own: Client, owner: User) -> None:
    where = address(own)
    User.objects.filter(pk=owner.pk).update(is_active=False)
    assert Client().get(where).status_code == 404


def test_one_booking_is_a_file_for_its_owner_alone(own: Client, owner: User) -> None:
    mine = builders.booking(owner=owner)
    other = builders.booking(owner=builders.person("member"))
    answer = own.get(f"/bookings/{mine.pk}/booking.ics")
    assert len(icalendar.Calendar.from_ical(answer.content).walk("VEVENT")) == 1
    assert own.get(f"/bookings/{other.pk}/booking.ics").status_code == 404


def running(owner: User) -> Booking:
    now = clock.database_now()
    return builders.booking(
        owner=owner, start=now - timedelta(hours=1), end=now + timedelta(minutes=5)
    )


@pytest.mark.parametrize("action", [Link.Action.EXTEND, Link.Action.RELEASE])
def test_a_link_does_its_thing_once_and_only_when_asked(
    client: Client, owner: User, action: Link.Action
) -> None:
    booking = running(owner)
    where = f"/once/{links.make_link(booking, action)}/"
    looked = client.get(where)
    assert (looked.status_code, looked["Referrer-Policy"]) == (200, "strict-origin")
    end = Booking.objects.get(pk=booking.pk).end
    assert end == booking.end  # looking does nothing
    assert client.post(where).status_code == 200
    after = Booking.objects.get(pk=booking.pk)
    assert (after.end > end) == (action == Link.Action.EXTEND)
    assert after.end != end
    used = client.post(where)
    assert used.status_code == 409
    assert "used already" in used.content.decode()
    assert Booking.objects.get(pk=booking.pk).end == after.end


def test_a_slot_that_has_not_begun_is_cancelled_and_that_is_said(
    client: Client, owner: User
) -> None:
    soon = clock.database_now() + timedelta(minutes=9)
    booking = builders.booking(owner=owner, start=soon)
    answer = client.post(f"/once/{links.make_link(booking, Link.Action.RELEASE)}/")
    assert Booking.objects.get(pk=booking.pk).state == "cancelled"
    assert "It is cancelled" in answer.content.decode()
    assert "It ended" not in answer.content.decode()


@pytest.mark.parametrize(("asks", "words"), [(False, "It is booked"), (True, "waits for an adm")])
def test_a_hold_that_must_be_approved_is_not_told_to_be_booked(
    client: Client, owner: User, asks: bool, words: str
) -> None:
    now = clock.database_now()
    until = now + timedelta(minutes=9)
    booking = builders.booking(owner=owner, start=until, state="held", held_until=until)
    Lane.objects.update(needs_approval=asks)
    answer = client.post(f"/once/{links.make_link(booking, Link.Action.CONFIRM)}/")
    assert words in answer.content.decode()


def test_what_is_refused_is_said_and_uses_nothing_up(client: Client, owner: User) -> None:
    booking = running(owner)
    where = f"/once/{links.make_link(booking, Link.Action.EXTEND)}/"
    other = builders.booking(lane=booking.lane, owner=builders.person("member"), start=booking.end)
    refused = client.post(where)
    assert refused.status_code == 409
    assert "taken" in refused.content.decode()
    Booking.objects.filter(pk=other.pk).update(state="cancelled")
    assert client.post(where).status_code == 200


def test_a_link_ends_with_its_slot_and_its_person(client: Client, owner: User) -> None:
    booking = running(owner)
    where = f"/once/{links.make_link(booking, Link.Action.RELEASE)}/"
    User.objects.filter(pk=owner.pk).update(is_active=False)
    assert client.post(where).status_code == 409
    User.objects.filter(pk=owner.pk).update(is_active=True)
    Link.objects.update(expires_at=clock.database_now())
    assert client.post(where).status_code == 410
    assert client.post("/once/never-made/").status_code == 404
    assert Booking.objects.get(pk=booking.pk).end == booking.end


SECRET_PATHS = (
    *("/once/S3CRET/", "/feeds/S3CRET/bookings.ics", "/once/S3CRET", "/invitation/S3CRET/"),
    *("/accounts/password/reset/key/1-S3CRET/", "/accounts/confirm-email/S3CRET/"),
)


@pytest.mark.parametrize("path", SECRET_PATHS)
def test_no_log_line_carries_a_secret(path: str, client: Client) -> None:
    record = logging.makeLogRecord({"msg": "Not Found: %s", "args": (path,)})
    assert NoSecrets().filter(record)
    assert "S3CRET" not in record.getMessage()
    access = logging.makeLogRecord({"msg": '%s "%s %s"', "args": ("1.2.3.4", "GET", path)})
    assert NoSecretPaths().filter(access)
    assert "S3CRET" not in access.getMessage()
    assert len(access.args or ()) == 3


def test_other_lines_stay_as_they_are() -> None:
    record = logging.makeLogRecord({"msg": "Not Found: %s", "args": ("/lanes/x/",)})
    NoSecrets().filter(record)
    assert (record.msg, record.getMessage()) == ("Not Found: %s", "Not Found: /lanes/x/")


def test_what_the_browser_says_is_kept_where_nothing_was_chosen(own: Client, owner: User) -> None:
    own.cookies["zone"] = "America%2FNew_York"
    own.cookies["django_language"] = "de"
    own.get("/tokens/")
    kept = Preference.objects.get(person=owner)
    assert (kept.zone, kept.language) == ("America/New_York", "de")
    own.cookies["zone"] = "Europe/Berlin"
    own.get("/tokens/")
    kept.refresh_from_db()
    assert kept.zone == "America/New_York"


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../../etc/passwd", "x" * 5000])
def test_what_is_no_zone_is_not_kept(own: Client, owner: User, zone: str) -> None:
    own.cookies["zone"] = zone
    assert own.get("/tokens/").status_code == 200
    assert not Preference.objects.filter(person=owner).exists()


def test_the_language_that_was_chosen_is_the_pages_own(own: Client) -> None:
    answer = own.post("/preferences/", {**VALUES, "language": "de"})
    assert answer.cookies["django_language"].value == "de"


def test_boxes_stay_as_they_were_sent_when_another_field_is_wrong(own: Client) -> None:
    answer = own.post("/preferences/", {**VALUES, "zone": "Mars/Olympus", "tell": ["freed-push"]})
    assert answer.status_code == 400
    assert re.findall(r'name="tell" value="([^"]+)"\s+checked', answer.content.decode()) == [
        "freed-push"
    ]
