"""REST: rules of booking for administrators, and what holds for who asks."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from rest_framework.test import APIClient

from bookings.models import Policy
from lanes import clock
from lanes.models import Lane
from tests import builders

pytestmark = pytest.mark.django_db
URL = "/api/v1/policies/"


@pytest.fixture
def lane() -> Lane:
    return builders.lane("demo")


@pytest.fixture
def administrator() -> APIClient:
    return signed_in(builders.administrator())


@pytest.fixture
def member() -> APIClient:
    return signed_in(builders.person("member"))


def signed_in(user: User) -> APIClient:
    client = APIClient()
    client.force_login(user)
    return client


def test_rules_are_made_read_changed_and_deleted(administrator: APIClient, lane: Lane) -> None:
    Group.objects.create(name="students")
    builders.preset("small")
    wish = {
        "lane": "demo",
        "group": "students",
        "max_minutes": 120,
        "week_hours": 7.5,
        "preset_choice": "listed",
        "presets": ["small"],
        "approval": "beyond",
        "approval_hours": 4,
    }
    made = administrator.post(URL, wish, format="json")
    assert made.status_code == 201, made.data
    assert made.data == made.data | wish
    assert made.data["min_minutes"] is None
    address = f"{URL}{made.data['id']}/"
    changed = administrator.patch(address, {"max_minutes": None, "approval": None}, format="json")
    assert (changed.status_code, changed.data["max_minutes"]) == (200, None)
    assert (changed.data["approval"], changed.data["approval_hours"]) == (None, None)
    assert changed.data["week_hours"] == 7.5
    assert administrator.get(URL).data["results"] == [changed.data]
    assert administrator.get(address).data == changed.data
    assert administrator.delete(address).status_code == 204
    assert not Policy.objects.exists()


def test_a_choice_other_than_listed_forgets_the_list(administrator: APIClient) -> None:
    builders.preset("small")
    made = administrator.post(
        URL, {"preset_choice": "listed", "presets": ["small"]}, format="json"
    ).data
    body = {"preset_choice": "any"}
    changed = administrator.patch(f"{URL}{made['id']}/", body, format="json").data
    assert (changed["preset_choice"], changed["presets"]) == ("any", [])


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"lane": "nowhere"}, "lane"),
        ({"group": "nobody"}, "group"),
        ({"presets": ["nothing"]}, "presets"),
        ({"grid_minutes": 7}, "divisor"),
        ({"grid_minutes": 2880}, "1440"),
        ({"max_minutes": -1}, "max_minutes"),
        ({"max_minutes": 1.5}, "max_minutes"),
        ({"max_minutes": 2**40}, "max_minutes"),
        ({"min_minutes": 60, "max_minutes": 30}, "min_minutes"),
        ({"week_hours": 1e300}, "week_hours"),
        ({"day_hours": "many"}, "day_hours"),
        ({"approval": "sometimes"}, "never"),
        ({"approval": "beyond"}, "approval_hours"),
        ({"preset_choice": "some"}, "listed"),
        ({"max_minuets": 5}, "did you mean max_minutes"),
        ({"id": 5}, "cannot be changed"),
        ({"may_book": "perhaps"}, "may_book"),
        ([], ""),
    ],
)
def test_nonsense_is_refused_with_words(administrator: APIClient, wish: Any, words: str) -> None:
    answer = administrator.post(URL, wish, format="json")
    assert answer.status_code == 400, answer.data
    assert words in answer.data["detail"]
    assert not Policy.objects.exists()


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity", b"1e999"])
def test_a_number_that_is_none_is_refused(administrator: APIClient, number: bytes) -> None:
    body = b'{"week_hours": ' + number + b"}"
    answer = administrator.post(URL, body, content_type="application/json")
    assert answer.status_code == 400


def test_a_second_row_for_the_same_is_refused(administrator: APIClient, lane: Lane) -> None:
    for wish in ({"day_hours": 4}, {"day_hours": 4, "lane": "demo"}):
        assert administrator.post(URL, wish, format="json").status_code == 201
        again = administrator.post(URL, wish, format="json")
        assert (again.status_code, again.data["code"]) == (409, "exists")
    wish = {"lane": builders.lane().slug, "may_book": False}
    other = administrator.post(URL, wish, format="json").data
    moved = administrator.patch(f"{URL}{other['id']}/", {"lane": "demo"}, format="json")
    assert moved.status_code == 409


@pytest.mark.parametrize("more", [{}, {"max_minutes": None}, {"presets": ["small"]}])
def test_a_row_that_says_nothing_is_refused(
    administrator: APIClient, lane: Lane, more: dict[str, Any]
) -> None:
    builders.preset("small")
    answer = administrator.post(URL, {"lane": "demo", **more}, format="json")
    assert (answer.status_code, answer.data["code"]) == (400, "says_nothing")
    made = administrator.post(URL, {"lane": "demo", "may_book": False}, format="json").data
    answer = administrator.patch(f"{URL}{made['id']}/", {"may_book": None}, format="json")
    assert (answer.status_code, answer.data["code"]) == (400, "says_nothing")
    answer = administrator.patch(
        f"{URL}{made['id']}/", {"may_book": None, "max_minutes": 0}, format="json"
    )
    assert answer.status_code == 200, "0 is no limit, and says so"


def test_they_are_for_administrators(member: APIClient) -> None:
    row = Policy.objects.create()
    assert member.get(URL).status_code == 403
    assert member.post(URL, {}, format="json").status_code == 403
    assert member.patch(f"{URL}{row.pk}/", {"may_book": False}, format="json").status_code == 403
    assert member.delete(f"{URL}{row.pk}/").status_code == 403
    assert APIClient().get(URL).status_code in {401, 403}
    assert Policy.objects.get().may_book is None


def test_a_member_is_told_what_holds_and_what_is_left(member: APIClient, lane: Lane) -> None:
    small = builders.preset("small")
    policy = Policy.objects.create(week_hours=10, bookings_ahead=3, preset_choice="listed")
    policy.presets.add(small)
    Policy.objects.create(lane=lane, day_hours=2, approval="gpu")
    now = clock.database_now()
    start = now + timedelta(days=20)
    builders.booking(lane=lane, owner=builders.person("member"), start=start)
    told = member.get("/api/v1/lanes/demo/policy/").data
    assert told["rules"]["week_hours"] == 10
    assert told["rules"]["presets"] == ["small"]
    assert told["rules"]["approval"] == "gpu"
    assert told["quotas_of_lane"] == ["day_hours"]
    assert told["left"] == {"day_hours": 2, "week_hours": 10, "bookings_ahead": 2}
    assert told["time_zone"] == "UTC"


def test_without_rules_everything_is_allowed_and_nothing_counted(
    member: APIClient, lane: Lane
) -> None:
    told = member.get("/api/v1/lanes/demo/policy/").data
    assert told["rules"]["presets"] is None
    assert told["rules"]["may_book"] is True
    assert set(told["left"].values()) == {None}
    assert member.get("/api/v1/lanes/nowhere/policy/").status_code == 404
    assert APIClient().get("/api/v1/lanes/demo/policy/").status_code in {401, 403}


def test_a_booking_that_breaks_rules_is_a_422_with_each_of_them(
    member: APIClient, lane: Lane
) -> None:
    Policy.objects.create(max_minutes=30, week_hours=1, grid_minutes=0)
    now = clock.database_now()
    wish = {"lane": "demo", "kind": "gpu", "end": (now + timedelta(hours=2)).isoformat()}
    answer = member.post("/api/v1/bookings/", wish, format="json")
    assert (answer.status_code, answer.data["code"]) == (422, "rules_broken")
    broken = {rule["code"]: rule for rule in answer.data["broken"]}
    assert set(broken) >= {"too_long"}
    assert broken["too_long"]["limit"] == 30
    assert broken["too_long"]["detail"] in answer.data["detail"]
    first = answer.data["nearest"][0]
    assert first["now"] is True
    again = member.post(
        "/api/v1/bookings/", {"lane": "demo", "kind": "gpu", "end": first["end"]}, format="json"
    )
    assert again.status_code == 201, again.data


def test_a_booking_says_why_all_of_it_counts(member: APIClient, lane: Lane) -> None:
    Policy.objects.create(late_cancel_minutes=60)
    start = clock.database_now() + timedelta(minutes=30)
    times = {"start": start.isoformat(), "end": (start + timedelta(hours=1)).isoformat()}
    made = member.post("/api/v1/bookings/", {"lane": "demo", "kind": "gpu", **times}, format="json")
    assert (made.data["lapse"], made.data["first_request_at"]) == ("", None)
    cancelled = member.post(f"/api/v1/bookings/{made.data['id']}/cancel/").data
    assert (cancelled["state"], cancelled["lapse"]) == ("cancelled", "late_cancel")
