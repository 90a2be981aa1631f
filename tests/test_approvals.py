"""Bookings that wait: why, what helps to decide, deciding about several, and what members hear."""

from datetime import datetime, timedelta
from functools import partial

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from bookings import approvals, services
from bookings.models import Booking, Policy, State
from lanes import clock
from lanes.models import Lane, Notice
from notices.telling import tell_bookings
from tests import builders
from tests.at_once import at_once
from tests.booking_cast import booked, done
from tests.builders import at
from tests.conftest import Moment

pytestmark = pytest.mark.django_db
URL = "/administration/approvals/"
HOUR = timedelta(hours=1)


@pytest.fixture
def lane() -> Lane:
    return builders.lane("demo", needs_approval=True)


@pytest.fixture
def page(lane: Lane) -> Client:
    return signed_in(builders.administrator())


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def waiting(lane: Lane, number: int = 1, owner: User | None = None) -> Booking:
    start = clock.database_now().replace(microsecond=0) + number * 2 * HOUR
    return booked(lane, owner, start=start, end=start + HOUR)


def states(*bookings: Booking) -> list[str]:
    for booking in bookings:
        booking.refresh_from_db()
    return [booking.state for booking in bookings]


def shown(moment: datetime) -> list[approvals.Waiting]:
    return approvals.queue(approvals.pending(moment), moment)


class TestQueue:
    @pytest.mark.parametrize(
        ("rules", "reason"),
        [
            ({"approval": "always"}, "Every booking needs it: rules of lane-x for team."),
            ({"approval": "gpu"}, "Whole GPUs need it: rules of lane-x for team."),
            (
                {"approval": "beyond", "approval_hours": 0.5},
                "It is longer than 30 min: rules of lane-x for team.",
            ),
        ],
    )
    def test_it_says_which_rule_asks(
        self, moment: Moment, rules: dict[str, object], reason: str
    ) -> None:
        group, lane = Group.objects.create(name="team"), builders.lane("lane-x")
        builders.person().groups.add(group)
        Policy.objects.create(approval="never")
        row = Policy.objects.create(lane=lane, group=group, **rules)
        booked(lane)
        found = shown(at(0))[0]
        assert (found.reason, found.policy) == (reason, row.pk)

    def test_a_lane_asks_by_its_own_setting(self, lane: Lane, moment: Moment) -> None:
        booking = booked(lane)
        found = shown(at(0))[0]
        assert (found.booking, found.reason) == (
            booking,
            "Every booking needs it: a setting of demo.",
        )
        assert (found.policy, found.expires_at) == (None, booking.end)
        Lane.objects.update(needs_approval=False)
        assert shown(at(0))[0].reason == "No rule asks for it any more."

    def test_it_tells_what_else_is_booked_and_when_it_expires(
        self, lane: Lane, moment: Moment
    ) -> None:
        Policy.objects.create(pending_hours=0.5, day_hours=8)
        other = builders.lane()
        booked(other, start=at(130), end=at(220))
        booked(lane)
        found = shown(at(0))[0]
        assert (found.others, found.other_time) == (1, "1 h 30 min")
        assert found.left == "5 h 30 min today"
        assert (found.since, found.expires_at) == (at(0), at(30))

    def test_what_is_over_or_decided_waits_no_more(self, lane: Lane, moment: Moment) -> None:
        booked(lane)
        done(
            services.reject(
                booked(lane, start=at(200), end=at(210)), actor=builders.administrator()
            )
        )
        assert len(shown(at(0))) == 1
        assert shown(moment.set(120)) == []

    def test_the_queries_do_not_grow(
        self, lane: Lane, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        Policy.objects.create(day_hours=24, preset_choice="listed")
        for number in range(6):
            waiting(lane, number + 1, builders.person(f"member-{number % 3}"))
        now = clock.database_now()
        # bookings, groups of owners, rules, their presets, what counts
        with django_assert_num_queries(5):
            assert len(shown(now)) == 6


class TestPage:
    def test_one_is_decided_with_a_comment(self, page: Client, lane: Lane) -> None:
        first, second = waiting(lane), waiting(lane, 2)
        shown = page.get(URL).content.decode()
        assert shown.count('name="booking"') == 2
        answer = page.post(
            URL,
            {"decision": f"approve:{first.pk}", "booking": [second.pk], "comment": " Good luck "},
        )
        assert answer.status_code == 302
        assert states(first, second) == [State.CONFIRMED, State.PENDING]
        assert first.decision_comment == "Good luck"

    def test_several_are_decided_at_once_and_each_refusal_is_told(
        self, page: Client, lane: Lane
    ) -> None:
        first, second, third = (waiting(lane, number) for number in (1, 2, 3))
        done(services.cancel(third, actor=third.owner))
        wish = {"decision": "reject", "booking": [first.pk, second.pk, third.pk], "comment": "Full"}
        shown = page.post(URL, wish, follow=True).content.decode()
        assert "2 are rejected." in shown
        assert "owner on demo: This booking was cancelled already: book anew" in shown
        assert states(first, second) == [State.REJECTED] * 2

    @pytest.mark.parametrize(
        "wish",
        [{}, {"decision": "approve"}, {"decision": "delete:1"}, {"decision": "approve:x"},
         {"decision": "approve", "booking": "9" * 30}],
    )  # fmt: skip
    def test_nonsense_decides_nothing(self, page: Client, lane: Lane, wish: dict[str, str]) -> None:
        booking = waiting(lane)
        shown = page.post(URL, wish, follow=True).content.decode()
        assert "Tick the bookings that you decide about." in shown
        assert states(booking) == [State.PENDING]

    def test_a_comment_that_is_too_long_decides_nothing(self, page: Client, lane: Lane) -> None:
        booking = waiting(lane)
        wish = {"decision": f"approve:{booking.pk}", "comment": "x" * 301}
        answer = page.post(URL, wish)
        assert (answer.status_code, "300 characters" in answer.content.decode()) == (409, True)
        assert f'value="{"x" * 301}"' in answer.content.decode()
        assert states(booking) == [State.PENDING]

    def test_what_was_typed_and_ticked_stays_when_nothing_is_decided(
        self, page: Client, lane: Lane
    ) -> None:
        gone, left = waiting(lane), waiting(lane, 2)
        done(services.cancel(gone, actor=gone.owner))
        wish = {"decision": f"reject:{gone.pk}", "booking": [left.pk], "comment": "Sorry."}
        for more in ({}, {"decision": "reject", "booking": []}):
            text = page.post(URL, wish | more).content.decode()
            assert 'value="Sorry."' in text
        text = page.post(URL, wish).content.decode()
        assert f'value="{left.pk}" id="tick-{left.pk}" checked' in text
        assert states(left) == [State.PENDING]

    def test_members_do_not_see_it_and_strangers_are_led_to_log_in(self, lane: Lane) -> None:
        booking, member = waiting(lane), signed_in(builders.person("member"))
        assert member.get(URL).status_code == 403
        assert member.post(URL, {"decision": f"approve:{booking.pk}"}).status_code == 403
        assert Client().get(URL).status_code == 302
        assert states(booking) == [State.PENDING]

    def test_a_refresh_keeps_what_is_ticked(self, page: Client, lane: Lane) -> None:
        booking = waiting(lane)
        part = page.get(URL, {"booking": booking.pk}, headers={"HX-Request": "true"})
        assert "<html" not in part.content.decode()
        assert "checked" in part.content.decode()
        assert "checked" not in page.get(URL).content.decode()

    def test_it_is_empty_and_counted(self, page: Client, lane: Lane) -> None:
        assert "Nothing waits for you" in page.get(URL).content.decode()
        waiting(lane)
        home = page.get("/administration/").content.decode()
        assert 'badge bg-yellow text-yellow-fg ms-2">1<' in home

    def test_the_queries_of_the_page(
        self, page: Client, lane: Lane, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        waiting(lane)
        page.get(URL)
        # session, user; the clock; how many wait, bookings, groups of owners, rules, what counts;
        # the page's head: unread notices, announcements
        with django_assert_num_queries(10):
            page.get(URL)

    def test_many_are_on_several_pages(self, page: Client, lane: Lane) -> None:
        for number in range(27):
            last = waiting(lane, number + 1)
        assert page.get(URL).content.decode().count('name="booking"') == 25
        second = f"{URL}?page=2"
        shown = page.get(second).content.decode()
        assert shown.count('name="booking"') == 2
        assert "27 bookings wait" in shown
        answer = page.post(second, {"decision": f"approve:{last.pk}"})
        assert answer.headers["Location"] == second
        assert page.get(f"{URL}?page=none").status_code == 200


def test_members_are_told_what_was_said(lane: Lane) -> None:
    first, second = waiting(lane), waiting(lane, 2)
    tell_bookings(clock.database_now())
    administrator = builders.administrator()
    done(services.approve(first, actor=administrator, comment="Please release early."))
    done(services.reject(second, actor=administrator))
    tell_bookings(clock.database_now())
    told = {notice.kind: notice.advice for notice in Notice.objects.filter(recipient=first.owner)}
    assert told["approved"] == "administrator says: Please release early."
    assert told["rejected"] == "Ask an administrator why, or book another time."
    shown = signed_in(first.owner).get("/bookings/").content.decode()
    assert "Please release early." in shown
    other = signed_in(builders.person("member")).get(f"/calendar/bookings/{first.pk}/")
    assert "Please release early." not in other.content.decode()


def test_what_was_said_goes_when_it_waits_again(lane: Lane) -> None:
    booking = waiting(lane)
    done(services.approve(booking, actor=builders.administrator(), comment="Yes."))
    later = booking.end + HOUR
    done(services.move(booking, actor=booking.owner, start=booking.start, end=later))
    assert states(booking) == [State.PENDING]
    assert booking.decision_comment == ""


def test_programs_comment_too(lane: Lane) -> None:
    booking, client, owner = waiting(lane), APIClient(), APIClient()
    client.force_login(builders.administrator())
    owner.force_login(booking.owner)
    url = f"/api/v1/bookings/{booking.pk}/"
    assert client.post(f"{url}reject/", {"coment": "No"}, format="json").status_code == 400
    assert owner.post(f"{url}reject/", {"comment": "No"}, format="json").status_code == 403
    answer = client.post(f"{url}reject/", {"comment": "No"}, format="json")
    assert (answer.status_code, answer.data["decision_comment"]) == (200, "No")
    assert owner.get(url).data["decision_comment"] == "No"
    stranger = APIClient()
    stranger.force_login(builders.person("member"))
    assert stranger.get(url).data["decision_comment"] == ""


@pytest.mark.django_db(transaction=True)
def test_of_two_who_decide_at_once_one_is_told_so(lane: Lane) -> None:
    booking, administrator = waiting(lane), builders.administrator()
    answers = at_once(
        partial(services.approve, booking, actor=administrator, comment="approve"),
        partial(services.reject, booking, actor=administrator, comment="reject"),
    )
    assert sorted(getattr(each, "code", "") for each in answers) in (
        ["", "wrong_state"],
        ["", "busy"],
    )
    expected = {"approve": State.CONFIRMED, "reject": State.REJECTED}
    booking.refresh_from_db()
    assert booking.state == expected[booking.decision_comment]
