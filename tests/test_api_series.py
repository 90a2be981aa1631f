"""REST: series of bookings."""

from datetime import timedelta
from typing import Any

import pytest
from rest_framework.test import APIClient

from bookings.models import Booking
from lanes import clock
from lanes.models import Lane
from tests import builders
from tests.test_api_bookings import signed_in, with_token

pytestmark = pytest.mark.django_db
URL = "/api/v1/bookings/series/"


@pytest.fixture
def client() -> APIClient:
    builders.lane("demo")
    return signed_in(builders.person("owner"))


def wish(**changed: Any) -> dict[str, Any]:
    start = clock.database_now().replace(hour=12, minute=0, second=0) + timedelta(days=1)
    times = {"start": start.isoformat(), "end": (start + timedelta(hours=1)).isoformat()}
    body = {"lane": "demo", "kind": "gpu", "every": "daily", "count": 3, "zone": "UTC"}
    return body | times | changed


def take_the_second() -> Booking:
    """Somebody's booking in its way."""
    start = clock.database_now().replace(hour=12, minute=0, second=0) + timedelta(days=2)
    lane = Lane.objects.get(slug="demo")
    owner = builders.person("ada")
    end = start + timedelta(hours=1)
    return builders.booking(
        lane=lane, owner=owner, kind="gpu", preset=None, start=start, end=end, original_end=end
    )


def test_a_preview_books_nothing(client: APIClient) -> None:
    answer = client.post(URL, wish(preview=True), format="json")
    assert answer.status_code == 200
    assert [each["refusal"] for each in answer.json()["occurrences"]] == [None] * 3
    assert not Booking.objects.exists()


def test_it_is_booked_listed_and_cancelled(client: APIClient) -> None:
    made = client.post(URL, wish(), format="json")
    assert made.status_code == 201
    body = made.json()
    assert (len(body["bookings"]), body["left_out"]) == (3, [])
    url = f"{URL}{body['id']}/"
    assert client.get(url).json()["every"] == "daily"
    assert client.get(URL).json()["results"][0]["id"] == body["id"]
    second = body["bookings"][1]["id"]
    left = client.post(f"{url}cancel/", {"booking": second}, format="json").json()
    states = [each["state"] for each in left["bookings"]]
    assert states == ["confirmed", "cancelled", "cancelled"]
    assert client.post(f"{url}cancel/", {}, format="json").status_code == 200
    assert client.post(f"{url}cancel/", {}, format="json").status_code == 409
    assert client.post(f"{url}cancel/", {"booking": 1 << 40}, format="json").status_code == 400


def test_a_clash_tells_every_occurrence_and_can_be_left_out(client: APIClient) -> None:
    booking = take_the_second()
    refused = client.post(URL, wish(), format="json")
    assert refused.status_code == 409
    body = refused.json()
    assert body["code"] == "series_clash"
    codes = [each["refusal"] and each["refusal"]["code"] for each in body["occurrences"]]
    assert codes == [None, "slot_taken", None]
    assert body["occurrences"][1]["refusal"]["conflicts"][0]["booking"] == booking.pk
    made = client.post(URL, wish(leave_out=True), format="json")
    assert made.status_code == 201
    assert (len(made.json()["bookings"]), len(made.json()["left_out"])) == (2, 1)


@pytest.mark.parametrize(
    "changed",
    [
        {"every": "hourly"},
        {"count": None},
        {"count": 10**9},
        {"count": -1},
        {"days": [7]},
        {"zone": "Nowhere/Land"},
        {"zone": "../../etc/passwd"},
        {"until": "2030-13-01"},
        {"start": "2030-01-15T13:00"},
        {"kind": "model"},
        {"colour": "red"},
        {"purpose": "\0"},
        {"end": "1999-01-01T00:00Z"},
        {"end": "8999-01-01T00:00Z"},
    ],
)
def test_bad_wishes(client: APIClient, changed: dict[str, Any]) -> None:
    for body in (wish(**changed), wish(preview=True, **changed)):
        assert client.post(URL, body, format="json").status_code == 400


def test_others_do_not_see_it_and_tokens_stay_on_their_lanes(client: APIClient) -> None:
    made = client.post(URL, wish(), format="json").json()
    url = f"{URL}{made['id']}/"
    stranger = signed_in(builders.person("stranger"))
    assert stranger.get(url).status_code == 404
    assert stranger.post(f"{url}cancel/", {}, format="json").status_code == 404
    assert APIClient().get(url).status_code == 401
    other = with_token(builders.person("owner"), "bookings", lanes=(builders.lane("other"),))
    assert other.post(URL, wish(), format="json").status_code == 403
    assert other.post(f"{url}cancel/", {}, format="json").status_code == 403
    assert signed_in(builders.administrator()).get(url).status_code == 200


class TestChanging:
    """One, it and the following, or all."""

    @pytest.fixture
    def made(self, client: APIClient) -> Any:
        return client.post(URL, wish(), format="json").json()

    def moved(self, made: Any, number: int, hours: float, **changed: Any) -> dict[str, Any]:
        booking = Booking.objects.get(pk=made["bookings"][number]["id"])
        by = timedelta(hours=hours)
        times = {"start": (booking.start + by).isoformat(), "end": (booking.end + by).isoformat()}
        return {"booking": booking.pk, **times, **changed}

    def test_tokens_stay_on_their_lanes(self, made: Any) -> None:
        owner, other = builders.person("owner"), builders.lane("other")
        own = Lane.objects.exclude(pk=other.pk).get()
        url, wish = f"{URL}{made['id']}/", self.moved(made, 0, 1)
        elsewhere = with_token(owner, "bookings", lanes=(other,))
        assert elsewhere.post(f"{url}move/", wish, format="json").status_code == 403
        one = {"booking": wish["booking"]}
        assert elsewhere.post(f"{url}release/", one, format="json").status_code == 403
        here = with_token(owner, "bookings", lanes=(own,))
        away = {**wish, "lane": other.slug}
        assert here.post(f"{url}move/", away, format="json").status_code == 403
        assert set(Booking.objects.values_list("lane", "state")) == {(own.pk, "confirmed")}
        assert here.post(f"{url}move/", wish, format="json").status_code == 200

    def test_move(self, client: APIClient, made: Any) -> None:
        body = self.moved(made, 1, 2, span="following")
        answer = client.post(f"{URL}{made['id']}/move/", body, format="json")
        assert answer.status_code == 200
        hours = [each["start"][11:13] for each in answer.json()["bookings"]]
        assert hours == ["12", "14", "14"]

    def test_release(self, client: APIClient, made: Any) -> None:
        body = {"booking": made["bookings"][0]["id"], "span": "this"}
        answer = client.post(f"{URL}{made['id']}/release/", body, format="json")
        states = [each["state"] for each in answer.json()["bookings"]]
        assert states == ["cancelled", "confirmed", "confirmed"]
        assert client.post(f"{URL}{made['id']}/release/", body, format="json").status_code == 409

    def test_refusals(self, client: APIClient, made: Any) -> None:
        move = f"{URL}{made['id']}/move/"
        assert client.post(move, {}, format="json").status_code == 400
        unknown = self.moved(made, 0, 1) | {"booking": 10**9}
        assert client.post(move, unknown, format="json").status_code == 400
        assert (
            client.post(move, self.moved(made, 0, 1, span="some"), format="json").status_code == 400
        )
        stranger = signed_in(builders.person("stranger"))
        assert stranger.post(move, self.moved(made, 0, 1), format="json").status_code == 404
        second = Booking.objects.get(pk=made["bookings"][1]["id"])
        hour = timedelta(hours=1)
        builders.booking(lane=second.lane, kind="gpu", start=second.end, end=second.end + hour)
        taken = client.post(move, self.moved(made, 0, 1), format="json")
        assert (taken.status_code, taken.json()["code"]) == (409, "slot_taken")
        assert taken.json()["detail"].startswith("The one of ")
