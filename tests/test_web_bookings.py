"""Booking through the pages: the form, its refusals, and the buttons of what is booked."""

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from bookings.models import Booking, State
from lanes import clock
from lanes.models import Lane
from slotserve.web.bookings import PAST_SHOWN, WAITING_SHOWN
from tests import builders

pytestmark = pytest.mark.django_db


@pytest.fixture
def lane() -> Lane:
    return builders.lane("demo", default_preset=builders.preset("qwen2.5-7b"))


@pytest.fixture
def member(lane: Lane) -> Client:
    return signed_in(builders.person("member"))


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def local(minutes: int) -> str:
    moment = timezone.localtime(clock.database_now() + timedelta(minutes=minutes))
    return moment.strftime("%Y-%m-%dT%H:%M")


def test_a_member_books_now_and_gives_it_back(member: Client) -> None:
    form = {"lane": "demo", "what": "preset:qwen2.5-7b", "begins": "now", "end": local(60)}
    answer = member.post("/book/", form, follow=True)
    assert "is yours until" in answer.content.decode()
    booking = Booking.objects.get()
    answer = member.post(f"/bookings/{booking.pk}/release/", follow=True)
    assert "Given back" in answer.content.decode()
    booking.refresh_from_db()
    assert booking.released_at is not None


def test_a_slot_that_is_yet_to_come_is_not_said_to_be_ones_own_already(member: Client) -> None:
    form = {"lane": "demo", "what": "gpu", "begins": "later", "start": local(60), "end": local(120)}
    page = member.post("/book/", form, follow=True).content.decode()
    assert "demo is yours from " in page
    assert "is yours until" not in page


def test_a_taken_slot_offers_the_nearest_free_ones(member: Client) -> None:
    form = {"lane": "demo", "what": "gpu", "begins": "now", "end": local(60)}
    member.post("/book/", form)
    answer = signed_in(builders.person("owner")).post("/book/", form)
    assert answer.status_code == 409
    assert "Take " in answer.content.decode()


@pytest.mark.parametrize(
    "changed",
    [
        {"end": ""},
        {"end": "soon"},
        {"begins": "later", "start": ""},
        {"what": "preset:nothing"},
        {"lane": "nowhere"},
        {"end": "2020-01-01T10:00"},
    ],
)
def test_a_bad_form_comes_back_with_words(member: Client, changed: dict[str, str]) -> None:
    form = {"lane": "demo", "what": "gpu", "begins": "now", "end": local(60)} | changed
    answer = member.post("/book/", form)
    assert answer.status_code in {400, 409}
    assert 'role="alert"' in answer.content.decode()
    assert not Booking.objects.exists()


def test_times_are_read_in_the_viewers_zone(member: Client) -> None:
    member.cookies["zone"] = "Pacific/Auckland"
    form = {"lane": "demo", "what": "gpu", "begins": "later"}
    times = {"start": "2027-07-01T10:00", "end": "2027-07-01T11:00"}
    member.post("/book/", form | times)
    booking = Booking.objects.get()
    assert booking.start.astimezone(ZoneInfo("Pacific/Auckland")).hour == 10


def test_another_members_booking_stays(member: Client, lane: Lane) -> None:
    now = clock.database_now()
    booking = builders.booking(lane=lane, start=now - timedelta(minutes=5))
    for name in ("release", "cancel", "approve", "reject"):
        member.post(f"/bookings/{booking.pk}/{name}/")
    booking.refresh_from_db()
    assert booking.state == State.CONFIRMED
    assert booking.released_at is None


@pytest.mark.parametrize(
    ("asked", "page"),
    [
        ("/lanes/demo/", "/lanes/demo/"),
        ("//elsewhere/", "/bookings/"),
        ("https://elsewhere/", "/bookings/"),
        ("javascript:alert(1)", "/bookings/"),
        ("", "/bookings/"),
    ],
)
def test_a_button_leads_back_to_its_page_and_to_no_other_site(
    member: Client, lane: Lane, asked: str, page: str
) -> None:
    booking = builders.booking(lane=lane, owner=builders.person("member"))
    answer = member.post(f"/bookings/{booking.pk}/cancel/", {"next": asked})
    assert answer["Location"] == page


def test_an_end_is_changed_both_ways(member: Client, lane: Lane) -> None:
    now = clock.database_now()
    end = now + timedelta(minutes=60)
    booking = builders.booking(lane=lane, owner=builders.person("member"), start=now, end=end)
    for minutes in (120, 30):
        answer = member.post(f"/bookings/{booking.pk}/extend/", {"end": local(minutes)})
        assert answer.status_code == 302
        booking.refresh_from_db()
        assert booking.end - now < timedelta(minutes=minutes)
        assert booking.end - now > timedelta(minutes=minutes - 1)


def test_a_refused_end_comes_back_as_typed(member: Client, lane: Lane) -> None:
    now = clock.database_now()
    middle, end = now + timedelta(minutes=60), now + timedelta(minutes=90)
    mine = builders.booking(lane=lane, owner=builders.person("member"), start=now, end=middle)
    builders.booking(lane=lane, start=middle, end=end)
    answer = member.post(f"/bookings/{mine.pk}/extend/", {"end": local(80)})
    assert answer.status_code == 400
    text = answer.content.decode()
    assert "is taken from" in text
    assert f'value="{local(80)}"' in text


def test_another_members_end_is_not_offered(member: Client, lane: Lane) -> None:
    booking = builders.booking(lane=lane)
    assert member.get(f"/bookings/{booking.pk}/extend/").status_code == 403
    assert "Change end" not in member.get("/lanes/demo/").content.decode()


def test_administrators_get_the_buttons_of_others_bookings(lane: Lane) -> None:
    now = clock.database_now()
    builders.booking(lane=lane, start=now, end=now + timedelta(minutes=60), purpose="secret")
    html = signed_in(builders.administrator()).get("/lanes/demo/").content.decode()
    assert "Give the rest of owner's slot back?" in html


def test_a_preset_of_another_host_is_refused_with_words(member: Client) -> None:
    far = builders.model_file(host=builders.host("far"))
    builders.preset("distant", model_file=far)
    form = {"lane": "demo", "what": "preset:distant", "begins": "now", "end": local(60)}
    answer = member.post("/book/", form)
    assert answer.status_code == 409
    assert "cannot run distant" in answer.content.decode()


def test_a_length_makes_the_end(member: Client) -> None:
    start = local(60)
    form = {"lane": "demo", "what": "gpu", "begins": "later", "start": start, "length": "240"}
    member.post("/book/", form | {"end": local(1)})
    booking = Booking.objects.get()
    assert booking.end - booking.start == timedelta(hours=4)


def test_neither_length_nor_end_is_told(member: Client) -> None:
    answer = member.post("/book/", {"lane": "demo", "what": "gpu", "begins": "now"})
    assert answer.status_code == 400
    assert "Say how long, or until when." in answer.content.decode()


def test_a_dialog_is_told_where_to_go_on(member: Client) -> None:
    form = {"lane": "demo", "what": "gpu", "begins": "now", "length": "30"}
    answer = member.post("/book/", form, headers={"X-In-Dialog": "1"})
    assert (answer.status_code, answer["X-Location"]) == (204, "/lanes/demo/")


def test_beside_the_form_stands_what_is_booked_around_the_wish(member: Client, lane: Lane) -> None:
    """Not what is booked in the next hours, of which there may be more than is shown."""
    now = clock.database_now()
    for name, hours in (("ada", 1), ("bertha", 96), ("cleo", 100)):
        start = now + timedelta(hours=hours)
        end = start + timedelta(hours=1)
        person = builders.person(name)
        builders.booking(lane=lane, owner=person, start=start, end=end, original_end=end)
    form = {"lane": "demo", "what": "gpu", "start": local(98 * 60), "length": "30"}
    near = member.get("/book/expect/", form | {"begins": "later"}).content.decode()
    assert [name in near for name in ("ada", "bertha", "cleo")] == [False, True, True]
    soon = member.get("/book/expect/", form | {"begins": "now"}).content.decode()
    assert "ada" in soon


class TestSeries:
    """The same slot again and again, with every occurrence told before."""

    @pytest.fixture
    def form(self) -> dict[str, str]:
        start = local(120)
        return {
            "lane": "demo",
            "what": "gpu",
            "begins": "later",
            "start": start,
            "length": "60",
            "repeat": "daily",
            "count": "3",
        }

    @pytest.fixture
    def taken(self, lane: Lane) -> Booking:
        start = clock.database_now() + timedelta(days=1, minutes=120)
        end = start + timedelta(hours=1)
        return builders.booking(
            lane=lane,
            owner=builders.person("ada"),
            kind="gpu",
            preset=None,
            start=start,
            end=end,
            original_end=end,
        )

    def test_it_is_shown_before_and_booked(self, member: Client, form: dict[str, str]) -> None:
        shown = member.post("/book/", form | {"show": "1"})
        assert shown.content.decode().count("Free.") == 3
        assert not Booking.objects.exists()
        answer = member.post("/book/", form, follow=True)
        assert "3 slots are booked." in answer.content.decode()
        assert Booking.objects.count() == 3

    def test_a_clash_names_its_holder_and_can_be_left_out(
        self, member: Client, form: dict[str, str], taken: Booking
    ) -> None:
        foretold = member.get("/book/expect/", form).content.decode()
        assert "Taken by ada from" in foretold
        refused = member.post("/book/", form)
        assert refused.status_code == 409
        assert "Taken by ada from" in refused.content.decode()
        assert Booking.objects.count() == 1
        answer = member.post("/book/", form | {"leave_out": "on"}, follow=True)
        assert "2 slots are booked. 1 was left out." in answer.content.decode()

    @pytest.mark.parametrize(
        ("changed", "words"),
        [
            ({"count": ""}, "Say until when it repeats"),
            ({"count": "101"}, "100"),
            ({"repeat": "hourly"}, "choose another"),
            ({"until": "never"}, "date"),
            ({"count": "", "until": "2020-01-01"}, "No day fits"),
        ],
    )
    def test_bad_series(
        self, member: Client, form: dict[str, str], changed: dict[str, str], words: str
    ) -> None:
        answer = member.post("/book/", form | changed)
        assert answer.status_code in {400, 409}
        assert words in answer.content.decode()
        assert member.post("/book/", form | changed | {"show": "1"}).status_code in {200, 400}
        assert member.get("/book/expect/", form | changed).status_code == 200

    def test_its_preview_takes_a_fixed_number_of_queries(
        self, member: Client, form: dict[str, str], django_assert_max_num_queries: object
    ) -> None:
        member.get("/book/")
        # session, user, now; lanes and presets with hosts, cards (6); rules twice with groups,
        # the series' bookings, the slots beside it, what the planner knows (8) and loads (5), the
        # lane's next bookings
        with django_assert_max_num_queries(32):  # type: ignore[operator]
            member.get("/book/expect/", form | {"count": "50"})


def booked_for(lane: Lane, start: datetime, **fields: Any) -> None:
    """The whole GPU for an hour."""
    who = {"owner": User.objects.first()} if "owner" not in fields else {}
    builders.booking(lane=lane, kind="gpu", preset=None, start=start, **who, **fields)


def test_older_bookings_are_on_further_pages(member: Client, lane: Lane) -> None:
    owner, now = User.objects.get(username="member"), clock.database_now()
    for day in range(1, PAST_SHOWN + 2):
        booked_for(lane, now - timedelta(days=day), owner=owner)
    oldest = Booking.objects.earliest("start")
    assert f"/bookings/{oldest.pk}/" not in member.get("/bookings/").content.decode()
    assert f"/bookings/{oldest.pk}/" in member.get("/bookings/?page=2").content.decode()


def test_members_are_not_shown_what_waits_for_administrators(lane: Lane) -> None:
    start = clock.database_now() + timedelta(hours=1)
    builders.booking(lane=lane, start=start, state=State.PENDING)
    pages = [
        signed_in(person).get("/bookings/").content.decode()
        for person in (builders.person("stranger"), builders.administrator())
    ]
    assert ["/approve/" in page for page in pages] == [False, True]


def test_of_many_that_wait_for_approval_the_first_are_shown(lane: Lane) -> None:
    builders.person("member")
    now = clock.database_now()
    for day in range(1, WAITING_SHOWN + 2):
        booked_for(lane, now + timedelta(days=day), state=State.PENDING)
    page = signed_in(builders.administrator()).get("/bookings/").content.decode()
    assert page.count("/approve/") == WAITING_SHOWN
    assert 'href="/administration/approvals/">More' in page
