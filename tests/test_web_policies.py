"""Pages about rules of booking, and what the booking form says of them."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone

from bookings.models import Booking, Policy
from bookings.policies import standing_of
from bookings.policy_words import left_words
from lanes import clock
from lanes.models import Lane
from slotserve.web.policy_forms import SECTIONS, PolicyForm
from slotserve.web.policy_summary import summary
from tests import builders
from tests.builders import at
from tests.conftest import Moment

pytestmark = pytest.mark.django_db
URL = "/administration/rules/"


@pytest.fixture
def lane() -> Lane:
    return builders.lane("demo")


@pytest.fixture
def administrator() -> Client:
    return signed_in(builders.administrator())


@pytest.fixture
def member() -> Client:
    return signed_in(builders.person("member"))


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def local(minutes: int) -> str:
    moment = timezone.localtime(clock.database_now() + timedelta(minutes=minutes))
    return moment.strftime("%Y-%m-%dT%H:%M")


def test_rules_are_made_changed_and_deleted(administrator: Client, lane: Lane) -> None:
    group = Group.objects.create(name="students")
    small = builders.preset("small")
    said = {
        "lane": "demo",
        "group": group.name,
        "may_book": "yes",
        "may_book_gpu": "no",
        "preset_choice": "listed",
        "presets": ["small"],
        "max_minutes": "240",
        "week_hours": "7.5",
        "approval": "beyond",
        "approval_hours": "2",
    }
    page = administrator.post(f"{URL}new/", said, follow=True).content.decode()
    assert "The rules are saved." in page
    assert "demo · students" in page
    assert "at most 4 h long" in page
    row = Policy.objects.get()
    assert (row.may_book, row.may_book_gpu, row.grid_minutes) == (True, False, None)
    assert list(row.presets.all()) == [small]
    address = f"{URL}{row.pk}/"
    shown = administrator.get(address).content.decode()
    assert 'value="7.5"' in shown
    assert 'value="small" class="form-check-input" id="id_presets_0" checked' in shown
    administrator.post(address, {"may_book": "no", "max_minutes": "0"})
    row.refresh_from_db()
    assert (row.lane, row.group, row.may_book, row.max_minutes) == (None, None, False, 0)
    assert (row.week_hours, row.approval, row.presets.count()) == (None, "", 0)
    page = administrator.post(f"{address}delete/", follow=True).content.decode()
    assert "Everything may be booked" in page
    assert not Policy.objects.exists()


@pytest.mark.parametrize(
    "wrong",
    [
        {"grid_minutes": "7"},
        {"max_minutes": "-1"},
        {"week_hours": "nan"},
        {"day_hours": "26"},
        {"approval": "beyond"},
        {"lane": "nowhere"},
        {"presets": ["nothing"]},
        {"group": "99999999999999999999"},
        {"preset_choice": "some"},
        {"lane": "", "day_hours": "", "presets": []},
    ],
)
def test_nonsense_comes_back_with_words(administrator: Client, wrong: dict[str, Any]) -> None:
    answer = administrator.post(f"{URL}new/", wrong)
    assert answer.status_code == 400
    assert 'role="alert"' in answer.content.decode()
    assert not Policy.objects.exists()


def test_they_are_for_administrators(member: Client) -> None:
    row = Policy.objects.create()
    for address in (URL, f"{URL}new/", f"{URL}{row.pk}/"):
        assert member.get(address).status_code == 403
        assert Client().get(address).status_code == 302
    assert member.post(f"{URL}{row.pk}/delete/").status_code == 403
    assert Policy.objects.exists()
    assert signed_in(builders.administrator()).get(f"{URL}{10**17}/").status_code == 404


def test_the_sections_show_every_field_once() -> None:
    shown = [name for _, names in SECTIONS for name in names]
    assert sorted(shown) == sorted(PolicyForm(policy=None).fields)


def test_a_list_of_many_rows_asks_little(
    administrator: Client, django_assert_num_queries: Any
) -> None:
    for number in range(20):
        group = Group.objects.create(name=f"group-{number}")
        row = Policy.objects.create(lane=builders.lane(), group=group, preset_choice="listed")
        row.presets.add(builders.preset())
    # The session and its user, rows with lane and group, their presets, unread notices,
    # announcements.
    with django_assert_num_queries(6):
        assert administrator.get(URL).status_code == 200


def test_a_row_is_summed_up(lane: Lane) -> None:
    said = {"grid_minutes": 30, "max_minutes": 0, "ahead_days": 14, "day_hours": 1.5}
    row = Policy(**said, bookings_ahead=1, approval="gpu", late_cancel_minutes=60)
    assert summary(row) == [
        "on multiples of 30 min",
        "as long as one likes",
        "at most 14 days ahead",
        "1 h 30 min a day",
        "1 booking ahead",
        "approval of whole GPUs",
        "counts when cancelled within 1 h of its start",
    ]
    assert summary(Policy()) == []


def test_a_refused_form_lists_every_rule_and_offers_slots(member: Client, lane: Lane) -> None:
    Policy.objects.create(max_minutes=60, ahead_days=0, day_hours=1)
    form = {"lane": "demo", "what": "gpu", "begins": "now", "end": local(200)}
    answer = member.post("/book/", form)
    page = answer.content.decode()
    assert answer.status_code == 409
    assert "<li>The longest slot is 1 h" in page
    assert "Take " in page
    assert "begins=now" in page
    assert not Booking.objects.exists()


def test_what_is_broken_is_said_before_it_is_sent(member: Client, lane: Lane) -> None:
    Policy.objects.create(max_minutes=60, week_hours=10, bookings_ahead=2)
    form = {"lane": "demo", "what": "gpu", "begins": "now", "end": local(200)}
    assert "<li>The longest slot is 1 h" in member.get("/book/expect/", form).content.decode()
    page = member.get("/book/expect/", form | {"end": local(30)}).content.decode()
    assert "Left for you: 10 h this week, 2 bookings ahead." in page


def test_approval_is_said_as_the_rules_want_it(member: Client, lane: Lane) -> None:
    Policy.objects.create(approval="beyond", approval_hours=1)
    form = {"lane": "demo", "what": "gpu", "begins": "now", "end": local(30)}
    words = "An administrator must approve it: it is longer than 1 h."
    assert words not in member.get("/book/expect/", form).content.decode()
    assert words in member.get("/book/expect/", form | {"end": local(90)}).content.decode()


def test_what_is_left_is_that_of_the_day_and_week_of_the_start(lane: Lane, moment: Moment) -> None:
    owner = builders.person("owner")
    Policy.objects.create(day_hours=4, week_hours=10, bookings_ahead=3)
    builders.booking(owner=owner, start=at(60), end=at(150))
    standing = standing_of(owner, lane, moment.now)
    today = "Left for you: 2 h 30 min today, 8 h 30 min this week, 2 bookings ahead."
    assert left_words(standing, at(0)) == today
    assert left_words(standing, at(24 * 60)).startswith("Left for you: 4 h tomorrow, 8 h 30 min")
    later = "Left for you: 4 h on 22 Jan, 10 h in the week of 21 Jan, 2 bookings ahead."
    assert left_words(standing, at(7 * 24 * 60)) == later
    Policy.objects.all().delete()
    assert left_words(standing_of(owner, lane, moment.now), at(0)) == ""
