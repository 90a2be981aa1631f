"""The calendar's page, its list and what its script reads."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from bookings import services
from bookings.models import Booking
from lanes.models import Lane, LoadRecord, Maintenance, Phase, Preset
from slotserve.live.reading import bookings_digest
from tests import browser_pages as pages
from tests import builders
from tests.builders import at
from tests.conftest import Moment
from tests.test_web_bookings import signed_in

pytestmark = pytest.mark.django_db
DAY = {"view": "day", "date": "2030-01-15"}


@pytest.fixture
def lane(moment: Moment) -> Lane:
    """It is noon; the default loads in 30 s, the other preset in 90 s."""
    small, large = builders.preset("small"), builders.preset("large")
    lane = builders.lane("demo", default_preset=small)
    for preset, seconds in ((small, 30.0), (large, 90.0)):
        assert preset.current is not None
        LoadRecord.objects.create(
            lane=lane,
            revision=preset.current,
            generation=1,
            started_at=at(-3000),
            seconds=seconds,
            succeeded=True,
        )
    return lane


@pytest.fixture
def member(lane: Lane) -> Client:
    client = signed_in(builders.person("member"))
    client.cookies["zone"] = "UTC"
    return client


def book(lane: Lane, start: float, end: float, **fields: Any) -> Booking:
    fields.setdefault("preset", Preset.objects.get(slug="large"))
    fields.setdefault("created_at", at(-9000))
    return builders.booking(lane=lane, start=at(start), end=at(end), **fields)


def read(client: Client, **query: Any) -> dict[str, Any]:
    answer = client.get("/calendar/events/", DAY | query)
    assert answer.status_code == 200
    said: dict[str, Any] = answer.json()
    return said


def test_bookings_come_as_the_viewers_clock_shows_them(member: Client, lane: Lane) -> None:
    booking = book(lane, 60, 120, owner=builders.person("member"))
    book(lane, 180, 240, kind="gpu", preset=None, state="pending")
    member.cookies["zone"] = "Europe/Berlin"
    mine, other = read(member)["events"]
    assert (mine["start"], mine["end"]) == ("2030-01-15T14:00:00", "2030-01-15T15:00:00")
    assert (mine["title"], mine["kinds"], mine["begun"]) == ("You · large", ["mine"], False)
    assert mine["seen"]["start"] == booking.start.isoformat()
    assert (other["title"], other["kinds"]) == ("owner · whole GPU", ["other", "pending", "gpu"])
    assert "seen" not in other
    assert other["label"].endswith("waits for approval")


def test_administrators_may_move_all_that_is_not_over(lane: Lane) -> None:
    book(lane, 60, 120)
    book(lane, -120, -60)
    past, coming = read(signed_in(builders.administrator()))["events"]
    assert ("seen" in past, "seen" in coming) == (False, True)


def test_what_is_cancelled_or_was_never_approved_does_not_show(member: Client, lane: Lane) -> None:
    book(lane, 60, 120, state="cancelled")
    book(lane, -120, -60, state="pending")
    assert read(member)["events"] == []


def test_bands_say_when_the_model_of_a_slot_is_warm(member: Client, lane: Lane) -> None:
    pages.order(lane, lane.default_preset)
    pages.runtime(lane, Preset.objects.get(slug="small"), Phase.READY)
    book(lane, 60, 120)
    said = read(member)
    bands = [(b["kind"], b["start"][11:], b["end"][11:]) for b in said["bands"]]
    assert bands[:3] == [
        ("drain", "12:57:00", "12:57:30"),
        ("load", "12:57:30", "12:59:00"),
        ("warm", "12:59:00", "13:00:00"),
    ]
    assert said["bands"][1]["words"] == "large loads, 12:57:30 to 12:59:00"
    assert said["events"][0]["label"].endswith("warm at 12:59")


def test_what_servers_did_is_drawn_as_it_was(member: Client, lane: Lane) -> None:
    small, large = Preset.objects.get(slug="small"), Preset.objects.get(slug="large")
    book(lane, -60, -30)
    pages.order(lane, small)
    run = pages.runtime(lane, large, Phase.STOPPED)
    times = {"started_at": at(-64), "ready_at": at(-62), "ended_at": at(-29)}
    drained = at(-29) + timedelta(seconds=10)
    type(run).objects.filter(pk=run.pk).update(drain_until=drained, **times)
    bands = [(b["kind"], b["start"][11:], b["end"][11:]) for b in read(member)["bands"]]
    assert bands[:3] == [
        ("load", "10:56:00", "10:58:00"),
        ("drain", "11:30:40", "11:31:00"),
        ("warm", "10:58:00", "11:00:00"),
    ]


def test_bands_end_where_maintenance_begins(member: Client, lane: Lane) -> None:
    Maintenance.objects.create(lane=lane, start=at(58), end=at(90), reason="new fans")
    book(lane, 60, 120)
    bands = [(b["kind"], b["start"][11:], b["end"][11:]) for b in read(member)["bands"]]
    assert bands[0] == ("maintenance", "12:58:00", "13:30:00")
    assert ("load", "13:30:00", "13:31:30") in bands
    for kind, start, end in bands[1:]:
        assert end <= "12:58:00" or start >= "13:30:00", kind


def test_a_hold_is_not_told_as_waiting_for_approval(member: Client, lane: Lane) -> None:
    mine = builders.person("member")
    hold = book(lane, 60, 120, owner=mine, state="held", held_until=at(10))
    (event,) = read(member)["events"]
    assert event["kinds"] == ["mine", "held"]
    assert "held for whoever waited, until it is confirmed" in event["label"]
    assert "seen" not in event
    text = member.get("/calendar/", DAY).content.decode()
    assert "held, not confirmed yet" in text
    assert f"/calendar/bookings/{hold.pk}/move/" not in text


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({}, ["demo", "other"]),
        ({"lane": "demo"}, ["demo"]),
        ({"lane": ["demo", "other"]}, ["demo", "other"]),
        ({"q": "OTH"}, ["other"]),
        ({"q": "rack"}, ["other"]),
        ({"q": "nowhere"}, []),
    ],
)
def test_lanes_are_found_by_slug_name_or_host(
    member: Client, query: dict[str, Any], names: list[str]
) -> None:
    host = builders.host("far")
    host.name = "Rack 2"
    host.save()
    builders.lane("other", host=host)
    lanes = read(member, **query)["lanes"]
    assert sorted(one["id"] for one in lanes) == names


def test_many_of_others_are_one_and_have_no_bands_within(member: Client, lane: Lane) -> None:
    lane.default_preset = None
    lane.save()
    for number in range(20):
        book(lane, 10 + 20 * number, 26 + 20 * number)
    book(lane, 600, 660)
    said = read(member)
    block, single = said["events"]
    assert (block["title"], block["kinds"]) == ("20 bookings", ["block"])
    assert block["label"].endswith("5.3 hours booked")
    assert single["label"].endswith("warm at 21:58")
    assert [(b["kind"], b["start"][11:]) for b in said["bands"]] == [
        ("load", "12:07:00"),
        ("load", "21:57:00"),
        ("warm", "21:58:30"),
        ("drain", "23:00:00"),
    ]


MONTH = {"view": "month", "date": "2030-01-15"}


def test_a_month_says_what_each_day_of_a_lane_has(member: Client, lane: Lane) -> None:
    book(lane, 60, 120, owner=builders.person("member"))
    book(lane, 13 * 60, 14 * 60, kind="gpu", preset=None, state="pending")
    builders.lane("other")
    text = member.get("/calendar/", MONTH).content.decode()
    mine = "demo, 15 January: 1 booking, 1.0 hours booked, 1 of them yours"
    assert f'date=2030-01-15#demo" title="{mine}"><b aria-hidden="true">1.0 ★</b>' in text
    assert "1 booking, 1.0 hours booked, 1 waits for approval, 1 of the whole GPU" in text
    assert 'title="other, 15 January: free"' in text
    assert '<path class="mine" d="M698 0h2v12h-2z"/>' in text


def test_a_month_that_is_kept_shows_nobody_anothers_bookings_as_their_own(
    member: Client, lane: Lane
) -> None:
    book(lane, 60, 120, owner=builders.person("member"))
    other = Client()
    other.force_login(builders.person("other"))
    for client, is_mine in ((member, True), (other, False), (member, True)):
        text = client.get("/calendar/", MONTH).content.decode()
        assert ("1 booking, 1.0 hours booked, 1 of them yours" in text) == is_mine
        assert ('<path class="mine"' in text) == is_mine
        assert ('<path class="other"' in text) == (not is_mine)
    assert Client().get("/calendar/", MONTH).status_code == 302


def test_a_month_that_is_kept_shows_what_was_booked_since(member: Client, lane: Lane) -> None:
    assert "1 booking" not in member.get("/calendar/", MONTH).content.decode()
    book(lane, 60, 120)
    assert "1 booking" in member.get("/calendar/", MONTH).content.decode()


def test_a_months_days_with_maintenance_and_holds_are_marked(member: Client, lane: Lane) -> None:
    Maintenance.objects.create(lane=lane, start=at(-60), end=at(13 * 60), reason="new fans")
    book(lane, 60, 120, state="held", held_until=at(10))
    text = member.get("/calendar/", MONTH).content.decode()
    told = "1 booking, 1.0 hours booked, 1 held for whoever waited, maintenance"
    assert f'title="demo, 15 January: {told}"><b aria-hidden="true">1.0 ◔⚒</b>' in text
    assert 'title="demo, 16 January: maintenance"><b aria-hidden="true">⚒</b>' in text
    assert 'title="demo, 17 January: free"' in text
    assert '<path class="other held"' in text


def test_a_month_is_a_part_that_is_asked_for_when_bookings_change(
    member: Client, lane: Lane
) -> None:
    part = member.get("/calendar/", MONTH, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in part
    assert f'data-live="bookings" data-live-digest="{bookings_digest()}"' in part


def test_of_a_month_only_what_the_reader_can_move_is_told_one_by_one(
    member: Client, lane: Lane
) -> None:
    mine = book(lane, 60, 120, owner=builders.person("member"))
    book(lane, -120, -60, owner=builders.person("member"))
    others = book(lane, 180, 240)
    (event,) = read(member, **MONTH)["events"]
    assert (event["id"], event["seen"]["start"]) == (str(mine.pk), mine.start.isoformat())
    told = read(signed_in(builders.administrator()), **MONTH)["events"]
    assert [event["id"] for event in told] == [str(mine.pk), str(others.pk)]


def test_a_month_may_be_a_list(member: Client, lane: Lane) -> None:
    book(lane, 60, 120)
    text = member.get("/calendar/", {**MONTH, "as": "list"}).content.decode()
    assert "Tuesday, 15 January 2030" in text
    assert "calendar-month" not in text


@pytest.mark.parametrize("bookings", [1, 12])
def test_a_month_asks_the_same_of_any_number(
    member: Client,
    lane: Lane,
    bookings: int,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    for number in range(bookings):
        book(builders.lane(), 60 * number, 60 * number + 50)
    member.get("/calendar/", MONTH)
    # Session, user, unread notices, announcements; lanes; one's own bookings, as those of all were
    # read for the page before; the newest event and booking, and who waits; maintenance.
    with django_assert_num_queries(10):
        member.get("/calendar/", MONTH)


def test_who_has_the_feed_already_is_not_sent_it_again(member: Client, lane: Lane) -> None:
    first = member.get("/calendar/events/", DAY)
    tag = {"If-None-Match": first["ETag"]}
    assert member.get("/calendar/events/", DAY, headers=tag).status_code == 304
    book(lane, 60, 120)
    assert member.get("/calendar/events/", DAY, headers=tag).status_code == 200


def test_a_confirmation_after_the_start_is_when_a_slot_began(member: Client, lane: Lane) -> None:
    mine = {"owner": builders.person("member")}
    book(lane, -10, 30, confirmed_at=at(-5), **mine)
    book(builders.lane("later"), -10, 30, confirmed_at=at(5), **mine)
    assert {e["lane"]: e["begun"] for e in read(member)["events"]} == {"demo": True, "later": False}


def test_a_new_name_is_shown_at_once(member: Client, lane: Lane) -> None:
    other = builders.person("other")
    book(lane, 60, 120, owner=other)
    assert read(member)["events"][0]["title"].startswith("other")
    type(other).objects.filter(pk=other.pk).update(username="another")
    assert read(member)["events"][0]["title"].startswith("another")


@pytest.mark.parametrize("bookings", [1, 12])
def test_the_feed_asks_the_same_of_any_number(
    member: Client,
    lane: Lane,
    bookings: int,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    for number in range(bookings):
        book(builders.lane(default_preset=lane.default_preset), 60 * number, 60 * number + 50)
    # Session, user; newest event and booking, who waits; lanes; bookings, their owners and presets;
    # runtimes, choices, load history, files' sizes; maintenance. (The clock's query is none here.)
    with django_assert_num_queries(14):
        first = read(member)
    with django_assert_num_queries(13):  # the bookings are those of a moment ago
        assert read(member) == first
    added = book(builders.lane(), 60, 110)
    assert len(read(member)["events"]) == bookings + 1
    assert isinstance(services.cancel(added, actor=added.owner), Booking)
    assert read(member)["events"] == first["events"]


@pytest.mark.parametrize("bookings", [1, 12])
def test_the_page_asks_the_same_of_any_number(
    member: Client,
    lane: Lane,
    bookings: int,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    for number in range(bookings):
        book(builders.lane(default_preset=lane.default_preset), 60 * number, 60 * number + 50)
    member.get("/calendar/", DAY)  # the first page of a session keeps the member's zone
    # Session, user, unread notices, announcements; lanes; bookings of the page, bookings before
    # them, owners and presets of both; maintenance; runtimes, choices, load history, files' sizes;
    # maintenance in words.
    with django_assert_num_queries(17):
        member.get("/calendar/", DAY)


def test_the_list_has_a_table_for_each_day(member: Client, lane: Lane) -> None:
    book(lane, 60, 120)
    mine = book(lane, 24 * 60, 25 * 60, owner=builders.person("member"))
    text = member.get("/calendar/", {**DAY, "view": "week"}).content.decode()
    assert text.count("<table") == 2
    assert "Tuesday, 15 January 2030" in text
    assert "warm at 12:59" in text
    assert f"/calendar/bookings/{mine.pk}/move/" in text


def test_the_list_goes_on_on_another_page(member: Client, lane: Lane) -> None:
    for number in range(60):
        book(lane, 10 * number, 10 * number + 5)
    first = member.get("/calendar/", {**DAY, "view": "week"})
    assert first.content.decode().count("<tr") == 51
    second = member.get("/calendar/?" + first.context["more"])
    assert second.content.decode().count("<tr") == 11
    assert not second.context["more"]


@pytest.mark.parametrize(
    "query",
    ["view=year&date=x&page=x", "page=999999999", "page=0", "lane=nowhere", "date=9999-12-31"],
)
def test_whatever_an_address_says_is_a_page(member: Client, query: str) -> None:
    assert member.get(f"/calendar/?{query}").status_code == 200
    assert member.get(f"/calendar/events/?{query}").status_code == 200


def test_a_day_on_which_clocks_are_changed_has_a_note(member: Client) -> None:
    member.cookies["zone"] = "Europe/Berlin"
    (note,) = read(member, date="2030-03-31")["notes"]
    assert note == ("On 31 March clocks go forward from 02:00 to 03:00: no time between exists.")
    (note,) = member.get("/calendar/", {"view": "month", "date": "2030-10-01"}).context["notes"]
    assert "clocks go back from 03:00 to 02:00: the 60 minutes before come twice" in note


def test_a_booking_that_clocks_seem_to_end_early_is_shown(member: Client, lane: Lane) -> None:
    start = datetime(2030, 10, 27, 0, 30, tzinfo=UTC)  # 02:30 to 02:15 in Berlin
    builders.booking(lane=lane, start=start, end=start + timedelta(minutes=45))
    member.cookies["zone"] = "Europe/Berlin"
    (event,) = read(member, date="2030-10-27")["events"]
    assert (event["start"][11:16], event["end"][11:16]) == ("02:30", "02:45")
    assert "02:30 CEST \u2013 02:15 CET" in event["label"]


def test_the_calendar_is_for_members(lane: Lane) -> None:
    booking = book(lane, 60, 120)
    for address in ("", "events/", f"bookings/{booking.pk}/", f"bookings/{booking.pk}/move/"):
        assert Client().get(f"/calendar/{address}").status_code == 302


def test_a_booking_is_told_with_what_its_owner_may_do(member: Client, lane: Lane) -> None:
    mine = book(lane, 60, 120, owner=builders.person("member"), purpose="a paper")
    others = book(lane, 180, 240, purpose="secret")
    text = member.get(f"/calendar/bookings/{mine.pk}/").content.decode()
    assert "a paper" in text
    assert f"/calendar/bookings/{mine.pk}/move/" in text
    part = member.get(f"/calendar/bookings/{others.pk}/", headers={"HX-Request": "true"})
    for words in (b"secret", b"<html", b"/move/"):
        assert words not in part.content
