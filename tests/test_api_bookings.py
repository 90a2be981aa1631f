"""REST: bookings, and every bad input a client can send."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from bookings.models import Booking
from gateway import tokens
from gateway.models import ApiToken
from lanes import clock
from lanes.models import Lane, Preset
from tests import builders

pytestmark = pytest.mark.django_db
URL = "/api/v1/bookings/"


@pytest.fixture
def lane() -> Lane:
    return builders.lane("demo")


@pytest.fixture
def preset() -> Preset:
    return builders.preset("smollm2")


@pytest.fixture
def owner() -> User:
    return builders.person("owner")


@pytest.fixture
def client(owner: User) -> APIClient:
    return signed_in(owner)


def signed_in(user: User) -> APIClient:
    client = APIClient()
    client.force_login(user)
    return client


def with_token(user: User, *scopes: str, lanes: tuple[Lane, ...] = ()) -> APIClient:
    made = tokens.create_token(
        owner=user, name="test", scopes=list(scopes), lanes=list(lanes), expires_at=None
    )
    assert isinstance(made, tuple)
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {made[1]}")
    return client


def wish(**changed: Any) -> dict[str, Any]:
    end = (clock.database_now() + timedelta(hours=1)).isoformat()
    return {"lane": "demo", "preset": "smollm2", "end": end} | changed


def test_a_booking_without_start_begins_now(client: APIClient, lane: Lane, preset: Preset) -> None:
    answer = client.post(URL, wish(), format="json")
    assert answer.status_code == 201
    assert answer.data["state"] == "confirmed"
    assert answer.data["status"] == "in_progress"


def test_a_slot_in_the_way_of_many_names_the_first(client: APIClient, lane: Lane) -> None:
    now, hour = clock.database_now(), timedelta(hours=1)
    owner = builders.person("other")
    held = [
        builders.booking(lane=lane, owner=owner, kind="gpu", preset=None, start=now + each * hour)
        for each in range(1, 26)
    ]
    asked = wish(kind="gpu", preset=None, end=(now + 30 * hour).isoformat())
    answer = client.post(URL, asked, format="json")
    assert [each["booking"] for each in answer.data["conflicts"]] == [each.pk for each in held[:20]]
    assert "taken 25 times" in answer.data["detail"]


def test_a_taken_slot_names_what_is_in_the_way_and_the_nearest_free_one(
    client: APIClient, lane: Lane, preset: Preset
) -> None:
    first = client.post(URL, wish(), format="json").data
    other = signed_in(builders.person("member"))
    answer = other.post(URL, wish(), format="json")
    assert answer.status_code == 409
    assert answer.data["code"] == "slot_taken"
    assert [c["booking"] for c in answer.data["conflicts"]] == [first["id"]]
    assert answer.data["nearest"][0]["start"].isoformat() >= first["end"][:19]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"lane": "nowhere"}, "lane"),
        ({"preset": "nothing"}, "preset"),
        ({"end": "2030-01-01T10:00:00"}, "zone"),
        ({"start": "2030-01-01T10:00:00", "end": "2030-01-01T11:00:00Z"}, "zone"),
        ({"start": "2031-01-01T10:00Z", "end": "2031-01-01T09:00Z"}, "end"),
        ({"start": "2020-01-01T10:00Z"}, "past"),
        ({"end": "soon"}, "time"),
        ({"end": "2030-02-31T10:00:00Z"}, "time"),
        ({"end": 5}, "format"),
        ({"end": None}, "null"),
        ({"kind": "half"}, "half"),
        ({"kind": "gpu"}, "preset"),
        ({"preset": None}, "preset"),
        ({"purpose": "x" * 201}, "200"),
        ({"lane": {"a": 1}}, "lane"),
        ({"end": "9999-12-31T23:59:59Z"}, "range"),
        ({"end": "0001-01-01T00:00:00+01:00"}, "range"),
    ],
)
def test_bad_input_is_refused_with_words(
    client: APIClient, lane: Lane, preset: Preset, changed: dict[str, Any], words: str
) -> None:
    answer = client.post(URL, wish(**changed), format="json")
    assert answer.status_code == 400, answer.data
    assert answer.data["code"]
    assert words in answer.data["detail"].lower()
    assert not Booking.objects.exists()


@pytest.mark.parametrize("field", ["lane", "preset", "purpose", "end"])
def test_a_nul_in_a_text_is_a_400_on_either_database(
    client: APIClient, lane: Lane, preset: Preset, field: str
) -> None:
    answer = client.post(URL, wish(**{field: "de\0mo"}), format="json")
    assert (answer.status_code, answer.data["code"]) == (400, "invalid")
    assert client.get(f"{URL}?lane=%00").status_code in {200, 400}


@pytest.mark.parametrize("body", [b"{", b"[]", b'"text"', b"null", b"\xff\xfe", b"[1, 2]"])
def test_a_body_that_is_no_json_object_is_a_400(client: APIClient, lane: Lane, body: bytes) -> None:
    answer = client.post(URL, body, content_type="application/json")
    assert answer.status_code == 400
    assert answer.data["detail"]


def test_a_huge_body_is_refused(client: APIClient, lane: Lane) -> None:
    body = b'{"purpose": "' + b"x" * (3 * 2**20) + b'"}'
    answer = client.post(URL, body, content_type="application/json")
    assert answer.status_code == 413
    assert answer.data["code"] == "request_too_large"


def test_another_members_booking_cannot_be_released(
    client: APIClient, lane: Lane, preset: Preset
) -> None:
    made = client.post(URL, wish(), format="json").data
    answer = signed_in(builders.person("member")).post(f"{URL}{made['id']}/release/")
    assert answer.status_code == 403
    assert answer.data["code"] == "not_yours"


def test_releasing_keeps_the_original_end(client: APIClient, lane: Lane, preset: Preset) -> None:
    made = client.post(URL, wish(), format="json").data
    answer = client.post(f"{URL}{made['id']}/release/")
    assert answer.status_code == 200
    assert answer.data["original_end"] == made["end"]
    assert answer.data["status"] == "released"


def test_an_unknown_booking_is_a_404_in_words(client: APIClient) -> None:
    answer = client.post(f"{URL}999999/release/")
    assert answer.status_code == 404
    assert answer.data["code"] == "not_found"


def test_a_stranger_is_asked_for_a_credential() -> None:
    answer = APIClient().get(URL)
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"] == "Bearer"


def test_a_wrong_token_is_a_401(lane: Lane) -> None:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION="Bearer ss_wrong")
    assert client.get(URL).data["code"] == "invalid_api_key"


def test_a_revoked_token_is_a_401(owner: User, lane: Lane) -> None:
    client = with_token(owner, "bookings")
    assert client.get(URL).status_code == 200
    tokens.revoke(ApiToken.objects.get(), actor=owner)
    assert client.get(URL).status_code == 401


def test_an_expired_token_is_a_401(owner: User, lane: Lane) -> None:
    client = with_token(owner, "bookings")
    ApiToken.objects.update(expires_at=clock.database_now() - timedelta(seconds=1))
    assert client.get(URL).status_code == 401


def test_a_token_without_the_scope_is_a_403(owner: User, lane: Lane) -> None:
    answer = with_token(owner, "inference").get(URL)
    assert answer.status_code == 403
    assert "scope bookings" in answer.data["detail"]


def test_a_token_of_another_lane_cannot_book(owner: User, lane: Lane, preset: Preset) -> None:
    client = with_token(owner, "bookings", lanes=(builders.lane("other"),))
    answer = client.post(URL, wish(), format="json")
    assert answer.status_code == 403
    assert not Booking.objects.exists()


LATER = "2099-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("patch", "", {"end": LATER}),
        ("post", "release/", {}),
        ("post", "extend/", {"end": LATER}),
        ("post", "cancel/", {}),
        ("post", "confirm/", {}),
        ("post", "approve/", {}),
        ("post", "reject/", {}),
        ("post", "transfer/", {"member": "owner"}),
        ("post", "shares/", {"member": "owner"}),
        ("delete", "shares/owner/", {}),
    ],
)
def test_a_token_of_another_lane_changes_nothing(
    owner: User, lane: Lane, method: str, path: str, body: dict[str, Any]
) -> None:
    boss, start = builders.administrator(), clock.database_now() + timedelta(hours=1)
    booking = builders.booking(lane=lane, owner=boss, start=start, state="pending")
    before = Booking.objects.values().get()
    for lanes, is_refused in (((builders.lane("other"),), True), ((lane,), False)):
        client = with_token(boss, "bookings", lanes=lanes)
        answer = getattr(client, method)(f"{URL}{booking.pk}/{path}", body or None, format="json")
        detail = str(answer.data.get("detail", ""))
        assert detail.startswith("This token is not meant for that lane") is is_refused
        if is_refused:
            assert (answer.status_code, answer.data["code"]) == (403, "not_yours")
            assert Booking.objects.values().get() == before


def test_a_token_moves_nothing_to_a_lane_that_it_is_not_meant_for(owner: User, lane: Lane) -> None:
    start, other = clock.database_now() + timedelta(hours=1), builders.lane("other")
    booking = builders.booking(lane=lane, owner=owner, kind="gpu", preset=None, start=start)
    for lanes, status in (((lane,), 403), ((lane, other), 200)):
        client = with_token(owner, "bookings", lanes=lanes)
        answer = client.patch(f"{URL}{booking.pk}/", {"lane": "other"}, format="json")
        assert answer.status_code == status
        assert Booking.objects.get().lane == (other if status == 200 else lane)


@pytest.mark.parametrize("query", ["from=yesterday", "to=2030-01-01T00:00", "from=%00"])
def test_a_filter_that_is_no_time_is_a_400(client: APIClient, query: str) -> None:
    assert client.get(f"{URL}?{query}").status_code == 400


def test_bookings_are_found_by_lane_owner_and_time(
    client: APIClient, owner: User, lane: Lane
) -> None:
    mine = builders.booking(lane=lane, owner=owner, start=builders.at(0))
    builders.booking(lane=lane, owner=builders.person("member"), start=builders.at(120))
    answer = client.get(f"{URL}?lane=demo&mine=1&from=2030-01-15T12:30Z&to=2030-01-15T13:00Z")
    assert [b["id"] for b in answer.data["results"]] == [mine.pk]


def test_moving_and_extending_change_the_times(
    client: APIClient, lane: Lane, preset: Preset
) -> None:
    start = clock.database_now() + timedelta(days=1)
    times = {"start": start.isoformat(), "end": (start + timedelta(hours=1)).isoformat()}
    made = client.post(URL, wish(**times), format="json").data
    later = (start + timedelta(hours=2)).isoformat()
    moved = client.patch(f"{URL}{made['id']}/", {"end": later}, format="json")
    assert moved.status_code == 200
    assert moved.data["end"] > made["end"]
    latest = (start + timedelta(hours=3)).isoformat()
    extended = client.post(f"{URL}{made['id']}/extend/", {"end": latest}, format="json")
    assert extended.data["end"] > moved.data["end"]


def test_only_administrators_approve(lane: Lane, preset: Preset, client: APIClient) -> None:
    lane.needs_approval = True
    lane.save()
    made = client.post(URL, wish(), format="json").data
    assert made["state"] == "pending"
    assert client.post(f"{URL}{made['id']}/approve/").status_code == 403
    answer = signed_in(builders.administrator()).post(f"{URL}{made['id']}/approve/")
    assert answer.data["state"] == "confirmed"


def test_what_its_owner_did_with_a_booking_is_told_to_them_and_administrators(
    client: APIClient, lane: Lane, preset: Preset
) -> None:
    made = client.post(URL, wish(purpose="a paper"), format="json").data
    came = clock.database_now()
    Booking.objects.update(first_request_at=came, lapse="no_show", decision_comment="Go on.")

    def seen(name: str) -> list[Any]:
        shown = signed_in(User.objects.get(username=name)).get(f"{URL}{made['id']}/").data
        names = ("purpose", "decision_comment", "first_request_at", "lapse")
        return [bool(shown[each]) for each in names]

    builders.person("member"), builders.administrator()
    assert seen("owner") == seen("administrator") == [True] * 4
    assert seen("member") == [False] * 4


def made(owner: User, lane: Lane) -> str:
    now = clock.database_now()
    start = now + timedelta(hours=1)
    return f"{URL}{builders.booking(lane=lane, owner=owner, start=start).pk}/"


def test_a_booking_is_given_to_another_member(client: APIClient, owner: User, lane: Lane) -> None:
    url, heir = made(owner, lane), builders.person("heir")
    answer = client.post(f"{url}transfer/", {"member": "heir"}, format="json")
    assert (answer.status_code, answer.json()["owner"]) == (200, "heir")
    again = client.post(f"{url}transfer/", {"member": "owner"}, format="json")
    assert (again.status_code, again.json()["code"]) == (403, "not_yours")
    assert signed_in(heir).post(f"{url}cancel/").status_code == 200


def test_it_is_shared_and_that_is_ended(client: APIClient, owner: User, lane: Lane) -> None:
    url, guest = made(owner, lane), builders.person("guest")
    answer = client.post(f"{url}shares/", {"member": "guest"}, format="json")
    assert (answer.status_code, answer.json()["shared_with"]) == (200, ["guest"])
    assert client.post(f"{url}shares/", {"member": "guest"}, format="json").status_code == 409
    assert signed_in(guest).get(url).json()["shared_with"] == ["guest"]
    assert signed_in(builders.person("stranger")).get(url).json()["shared_with"] == []
    assert client.delete(f"{url}shares/guest/").json()["shared_with"] == []
    assert client.delete(f"{url}shares/guest/").status_code == 404
    assert client.delete(f"{url}shares/nobody/").status_code == 404


@pytest.mark.parametrize("name", ["transfer", "shares"])
@pytest.mark.parametrize("body", [{}, {"member": "nobody"}, {"member": None}, {"to": "owner"}, [1]])
def test_a_bad_member_is_refused(
    client: APIClient, owner: User, lane: Lane, name: str, body: Any
) -> None:
    answer = client.post(f"{made(owner, lane)}{name}/", body, format="json")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
