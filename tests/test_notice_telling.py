"""Bookings are told of once, whoever looks how often; what is sent is still true then."""

from datetime import datetime, timedelta
from typing import Any

import icalendar
import pytest
from django.contrib.auth.models import Group
from django.core import mail
from django.utils import translation
from pytest_django import DjangoAssertNumQueries, Settings

from bookings import services
from bookings.models import Booking, Policy, State
from lanes import clock
from lanes.models import Maintenance, Notice, Order, Phase, Runtime
from lanes.telling import slot
from notices import facts, preferences, routing, telling
from notices.mail import message_of, send_due
from notices.models import Delivery, Entry, Link
from notices.preferences import in_words_of
from notices.recovered import tell_recoveries
from notices.routing import route
from notices.telling import tell_bookings
from tests import builders
from tests.at_once import at_once

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def now() -> datetime:
    return clock.database_now()


def booked(**fields: object) -> Booking:
    """A slot that begins in two hours, of somebody with an address."""
    fields.setdefault("owner", builders.person(email="owner@example.org"))
    fields.setdefault("start", now() + 2 * HOUR)
    return builders.booking(**fields)


def told(**fields: object) -> list[str]:
    return list(Notice.objects.filter(**fields).order_by("pk").values_list("kind", flat=True))


def look() -> int:
    count = tell_bookings(now())
    route(now())
    return count


def test_each_is_told_once_however_often_one_looks() -> None:
    booked()
    assert [look(), look()] == [1, 0]
    assert told() == ["confirmed"]


def test_a_moved_one_is_told_anew_and_calendars_see_the_sequence_rise() -> None:
    booking = booked()
    look()
    assert send_due() == 1
    moved = services.move(
        booking, actor=booking.owner, start=booking.start + HOUR, end=booking.end + HOUR
    )
    assert isinstance(moved, Booking)
    look()
    assert send_due() == 1
    events = [_event(message) for message in mail.outbox]
    assert [event.decoded("SEQUENCE") for event in events] == [0, 1]
    assert len({str(event["UID"]) for event in events}) == 1
    assert events[1].start == moved.start.replace(microsecond=0)


def test_a_cancelled_one_leaves_the_calendar() -> None:
    booking = booked()
    look()
    services.cancel(booking, actor=booking.owner)
    assert send_due() == 0  # that it is confirmed is no longer so
    look()
    assert send_due() == 1
    part = _calendar(mail.outbox[0])
    assert str(part["METHOD"]) == "CANCEL"
    assert str(_event(mail.outbox[0])["STATUS"]) == "CANCELLED"


def _calendar(message: Any) -> Any:
    (part,) = [each for each in message.attachments if hasattr(each, "get_content_type")]
    assert part.get_content_type() == "text/calendar"
    found = icalendar.Calendar.from_ical(part.get_payload(decode=True))
    assert part.get_param("method") == str(found["METHOD"])
    return found


def _event(message: object) -> Any:
    (event,) = _calendar(message).walk("VEVENT")
    return event


def test_the_calendar_carries_the_reader_s_zone_with_its_changes() -> None:
    booking = booked()
    preferences.save(booking.owner, {"zone": "Europe/Berlin"})
    look()
    send_due()
    calendar = _calendar(mail.outbox[0])
    assert [str(zone["TZID"]) for zone in calendar.walk("VTIMEZONE")] == ["Europe/Berlin"]
    assert _event(mail.outbox[0]).start == booking.start.replace(microsecond=0)


def test_administrators_are_asked_to_decide_and_the_owner_hears_what_they_did() -> None:
    administrator = builders.administrator()
    booking = booked(state=State.PENDING)
    look()
    assert told(recipient=administrator) == ["decision_needed"]
    services.approve(booking, actor=administrator)
    look()
    assert told(recipient=booking.owner) == ["approved"]
    assert told(recipient=administrator) == ["decision_needed"]


def test_who_moves_what_must_be_approved_again_is_told_that_it_waits() -> None:
    booking = booked()
    look()
    send_due()
    Policy.objects.create(approval="always")
    start, end = booking.start + HOUR, booking.end + HOUR
    moved = services.move(booking, actor=booking.owner, start=start, end=end)
    assert isinstance(moved, Booking)
    look()
    assert send_due() == 1
    message = mail.outbox[1]
    assert "It waits for an administrator's approval." in message.body
    # Calendars have it again once it is approved.
    assert str(_calendar(message)["METHOD"]) == "CANCEL"
    assert _event(message).decoded("SEQUENCE") == 1


def test_a_member_who_became_an_administrator_hears_of_what_comes_then() -> None:
    booked(state=State.PENDING)
    look()
    builders.administrator()
    assert look() == 0  # what was asked before is on the page


def test_a_reminder_carries_links_and_is_not_sent_once_it_is_too_late(settings: Settings) -> None:
    settings.SLOTSERVE_WEB_URL = "https://gpu.example.org"
    booking = booked(start=now() - HOUR, end=now() + timedelta(minutes=5))
    look()
    assert "ending" in told()
    assert Delivery.objects.filter(event="ending").count() == 1
    send_due()
    body = str(mail.outbox[-1].body)
    assert body.count("https://gpu.example.org/once/") == 2
    assert set(Link.objects.values_list("action", flat=True)) == {"extend", "release"}
    Delivery.objects.filter(event="ending").update(send_from=now(), attempts=1, state="waiting")
    Booking.objects.filter(pk=booking.pk).update(end=now())
    assert send_due() == 0
    assert Delivery.objects.get(event="ending").state == "moot"


def test_whose_slot_was_given_away_a_moment_ago_gets_no_links(settings: Settings) -> None:
    settings.SLOTSERVE_WEB_URL = "https://gpu.example.org"
    booking = booked(start=now() - HOUR, end=now() + timedelta(minutes=5))
    look()
    Booking.objects.update(owner=builders.person("heir"))
    assert "/once/" not in str(message_of(Notice.objects.get(kind="ending")).body)
    assert not Link.objects.exists()
    Booking.objects.update(owner=booking.owner)
    assert "/once/" in str(message_of(Notice.objects.get(kind="ending")).body)


def test_whose_slot_goes_on_is_not_told_that_it_ends() -> None:
    booking = booked(start=now() - HOUR, end=now() + timedelta(minutes=5))
    builders.booking(
        lane=booking.lane, owner=booking.owner, preset=booking.preset, start=booking.end
    )
    look()
    assert "ending" not in told()


def test_another_target_next_is_told_all_the_same() -> None:
    booking = booked(start=now() - HOUR, end=now() + timedelta(minutes=5))
    builders.booking(lane=booking.lane, owner=booking.owner, start=booking.end)
    look()
    assert "ending" in told()


def serving(booking: Booking, *, is_fallback: bool = False) -> None:
    """The lane has loaded what the booking is of."""
    moment, revision = now(), booking.preset.current if booking.preset else None
    assert revision is not None
    Order.objects.create(
        lane=booking.lane, target=revision, generation=1, ordered_at=moment, decided_at=moment,
        booking_id_for=booking.pk, is_fallback=is_fallback,
    )  # fmt: skip
    Runtime.objects.create(
        lane=booking.lane, revision=revision, generation=1, phase=Phase.READY, phase_since=moment,
        started_at=moment, address="127.0.0.1", port=1, sealed_key="",
    )  # fmt: skip


@pytest.mark.parametrize(("is_fallback", "wanted"), [(False, True), (True, False)])
def test_it_is_said_when_the_booked_model_is_loaded(is_fallback: bool, wanted: bool) -> None:
    booking = booked()
    serving(booking, is_fallback=is_fallback)
    look()
    assert ("warm" in told()) is wanted


def test_who_was_told_of_a_failure_hears_that_it_runs() -> None:
    booking = booked()
    Notice.objects.create(
        recipient=booking.owner, key="failure:1", kind="failure", sentence="It fails.", at=now(),
        booking_id_for=booking.pk,
    )  # fmt: skip
    assert tell_recoveries(now()) == 0
    serving(booking)
    assert [tell_recoveries(now()), tell_recoveries(now())] == [1, 0]


def test_what_failed_in_several_ways_runs_again_once_each_time() -> None:
    booking = booked()

    def fails(key: str) -> None:
        Notice.objects.create(
            recipient=booking.owner, key=key, kind="failure", sentence="It fails.", at=now(),
            booking_id_for=booking.pk,
        )  # fmt: skip

    fails("failure:1:1:memory")
    fails("failure:1:1:exit")
    serving(booking)
    assert [tell_recoveries(now()), tell_recoveries(now())] == [1, 0]
    fails("failure:1:1:timeout")
    assert [tell_recoveries(now()), tell_recoveries(now())] == [1, 0]


def test_freed_time_is_told_to_whoever_asked_for_as_much() -> None:
    booking = booked(end=now() + 6 * HOUR)
    look()
    for name, minutes in (("member", 60), ("picky", 600), ("deaf", 60)):
        wish: dict[str, object] = {"freed_minutes": minutes}
        if name != "deaf":
            wish["choices"] = {"freed": ["app", "mail"]}
        preferences.save(builders.person(name), wish)
    services.cancel(booking, actor=booking.owner)
    look()
    assert told(recipient__username="member") == ["freed"]
    assert told(recipient__username="picky") == told(recipient__username="deaf") == []


@pytest.mark.parametrize(
    ("rule", "is_told"),
    [
        ({}, True),
        ({"may_book": False}, False),
        ({"min_minutes": 7 * 60}, False),
        ({"max_minutes": 30}, True),
        ({"day_hours": 0.5}, True),
        ({"notice_minutes": 24 * 60}, False),
    ],
)
def test_freed_time_is_told_to_those_alone_who_may_book_it(
    rule: dict[str, object], is_told: bool
) -> None:
    booking = booked(end=now() + 6 * HOUR)
    look()
    wish = {"choices": {"freed": ["app"]}, "freed_minutes": 60}
    preferences.save(builders.person("member"), wish)
    group = Group.objects.create(name="team")
    builders.person("member").groups.add(group)
    Policy.objects.create(group=group, **rule)
    services.cancel(booking, actor=booking.owner)
    look()
    assert bool(told(recipient__username="member")) is is_told


def test_time_that_somebody_else_has_is_not_free() -> None:
    booking = booked(end=now() + 6 * HOUR)
    look()
    preferences.save(builders.person("member"), {"choices": {"freed": ["app"]}})
    services.cancel(booking, actor=booking.owner)
    builders.booking(lane=booking.lane, start=booking.start, end=booking.end, owner=booking.owner)
    look()
    assert told(recipient__username="member") == []


def test_time_under_maintenance_is_not_free() -> None:
    booking = booked(end=now() + 6 * HOUR)
    look()
    preferences.save(builders.person("member"), {"choices": {"freed": ["app"]}})
    Maintenance.objects.create(lane=booking.lane, start=booking.start + HOUR)
    services.cancel(booking, actor=booking.owner)
    look()
    assert told(recipient__username="member") == []  # an hour is left, and two are wanted


def test_ways_that_are_not_chosen_are_not_taken() -> None:
    booking = booked()
    preferences.save(booking.owner, {"choices": {"confirmed": []}})
    look()
    assert not Delivery.objects.exists()
    assert Notice.objects.get().read_at is not None


def test_words_are_in_the_reader_s_zone_with_its_name() -> None:
    start = datetime.fromisoformat("2031-07-01T10:00:00+00:00")
    booking = booked(start=start)
    preferences.save(booking.owner, {"zone": "America/New_York"})
    look()
    with in_words_of(booking.owner.preference):
        assert "06:00 – 07:00 EDT" in Notice.objects.get().told_sentence  # noqa: RUF001


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_notice_is_told_in_the_language_that_is_chosen_when_it_is_read(language: str) -> None:
    booking = booked()
    preferences.save(booking.owner, {"language": "de" if language == "en" else "en"})
    look()
    notice = Notice.objects.get()
    with translation.override(language):
        assert slot(booking.start, booking.end) in notice.told_sentence


def test_what_was_booked_before_the_installation_knew_of_it_is_no_news() -> None:
    booking = booked()
    Entry.objects.create(
        booking=booking, lane_id_then=booking.lane_id, preset_id_then=booking.preset_id,
        start=booking.start, end=booking.end, state=booking.state, changed_at=now(),
    )  # fmt: skip
    assert look() == 0


def test_a_look_at_thousands_asks_no_more(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    lane, owner, preset = builders.lane(), builders.person(), builders.preset()
    for number in range(3):
        start = now() + timedelta(hours=1 + number)
        builders.booking(lane=lane, owner=owner, preset=preset, start=start)
    look()
    moment = now()
    # the longest reminder; what is loaded; those that are near; those that have changed
    with django_assert_num_queries(4):
        tell_bookings(moment)


@pytest.mark.django_db(transaction=True)
def test_two_workers_at_once_tell_once() -> None:
    for _ in range(3):
        booked()
    at_once(look, look)
    assert told() == ["confirmed"] * 3
    assert Delivery.objects.count() == 3


def test_who_is_given_a_booking_gets_its_calendar_and_its_reminders() -> None:
    heir = builders.person("heir", email="heir@example.org")
    booking = booked(start=now() + HOUR / 12)
    Booking.objects.update(created_at=now() - HOUR, confirmed_at=now() - HOUR)
    look()
    services.transfer(booking, actor=booking.owner, to=heir)
    look()
    assert told(recipient=heir) == ["transferred", "starting"]
    send_due()
    hers = [message for message in mail.outbox if message.to == ["heir@example.org"]]
    assert str(_calendar(hers[0])["METHOD"]) == "REQUEST"


def test_what_waited_for_its_old_owner_is_no_longer_sent() -> None:
    booking = booked()
    look()
    services.transfer(booking, actor=booking.owner, to=builders.person("heir"))
    assert send_due() == 0
    assert set(Delivery.objects.values_list("event", "state")) >= {("confirmed", "moot")}


def test_a_guest_is_told_by_mail_without_a_calendar() -> None:
    guest = builders.person("guest", email="guest@example.org")
    services.share(booked(), actor=builders.person(), member=guest)
    route(now())
    send_due()
    (message,) = [each for each in mail.outbox if each.to == ["guest@example.org"]]
    assert "shares a booking with you" in message.subject
    assert not message.attachments


def test_mails_lead_to_the_bookings_page_whoever_may_see_it(settings: Settings) -> None:
    settings.SLOTSERVE_WEB_URL = "https://slots.example.org"
    heir = builders.person("heir", email="heir@example.org")
    booking = booked()
    services.transfer(booking, actor=builders.administrator(), to=heir)
    route(now())
    send_due()
    bodies = {message.to[0]: message.body for message in mail.outbox}
    page = f"https://slots.example.org/bookings/{booking.pk}/"
    assert page in bodies["heir@example.org"]
    assert page not in bodies["owner@example.org"]


def test_who_read_before_another_told_of_a_later_change_tells_nothing() -> None:
    booking = booked()
    look()
    Booking.objects.update(state=State.CANCELLED)
    (stale,) = facts.read_changed(now())
    start, end = booking.start + HOUR, booking.end + HOUR
    Booking.objects.update(state=State.CONFIRMED, start=start, end=end, original_end=end)
    assert look() == 1
    entry = Entry.objects.values().get()
    assert telling._tell(stale, now()) == 0
    assert told() == ["confirmed", "changed"]
    assert Entry.objects.values().get() == entry


def test_a_notice_that_two_have_read_is_routed_once() -> None:
    booked()
    tell_bookings(now())
    notice = Notice.objects.select_related("recipient__preference", "lane").get()
    assert [routing._route(notice, now()) for _ in range(2)] == [True, False]
    assert Delivery.objects.count() == 1


def test_who_chose_no_way_for_freed_time_is_not_told() -> None:
    member = builders.person("member", email="member@example.org")
    preferences.save(member, {"choices": {"freed": []}, "freed_minutes": 1})
    booking = booked()
    look()
    services.cancel(booking, actor=booking.owner)
    look()
    assert told(recipient=member) == []
