"""Trying at once what failed: who may, and what it does."""

import pytest
from django.test import Client

from bookings.choices import retry
from bookings.planning import plan_lanes
from lanes import clock
from lanes.models import Lane, LaneEvent, Order, PresetFailure, ReloadRequest
from lanes.refusals import Refusal
from tests import builders
from tests.builders import NOON, administrator, at, person
from tests.test_api_bookings import with_token

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "database_now", lambda: NOON)


@pytest.fixture
def lane() -> Lane:
    """A lane whose default fails."""
    preset = builders.preset("qwen")
    lane = builders.lane("left", default_preset=preset)
    PresetFailure.objects.create(
        lane=lane, revision=builders.revision(preset), count=5, failed_at=NOON, reason="Boom."
    )
    return lane


def code(answer: object) -> str:
    assert isinstance(answer, Refusal)
    return answer.code


def test_a_retry_forgets_the_wait_and_orders_anew(lane: Lane) -> None:
    plan_lanes()
    before = Order.objects.get().generation
    assert retry(lane, actor=administrator()) is None
    plan_lanes()
    assert PresetFailure.objects.get().count == 0
    assert Order.objects.get().generation == before + 1
    assert LaneEvent.objects.filter(sentence="another try was asked for").exists()


def test_whoever_has_the_lane_now_may_have_it_tried_again(lane: Lane) -> None:
    builders.booking(lane=lane, owner=person("owner"), start=at(-5))
    assert retry(lane, actor=person("owner")) is None


@pytest.mark.parametrize("start", [-90, 30])
def test_a_slot_that_is_over_or_to_come_gives_no_right(lane: Lane, start: int) -> None:
    builders.booking(lane=lane, owner=person("owner"), start=at(start))
    assert code(retry(lane, actor=person("owner"))) == "not_yours"
    assert not ReloadRequest.objects.exists()


def test_nobody_else_may(lane: Lane) -> None:
    builders.booking(lane=lane, owner=person("owner"), start=at(-5))
    assert code(retry(lane, actor=person("member"))) == "not_yours"


def test_where_nothing_fails_there_is_nothing_to_retry(lane: Lane) -> None:
    PresetFailure.objects.update(count=0)
    assert code(retry(lane, actor=administrator())) == "wrong_state"
    assert not ReloadRequest.objects.exists()


def test_a_lane_that_was_deleted_meanwhile_is_not_found(lane: Lane) -> None:
    gone = builders.lane()
    Lane.objects.filter(pk=gone.pk).delete()
    assert code(retry(gone, actor=administrator())) == "not_found"


def test_page_and_api_do_the_same(lane: Lane) -> None:
    client = Client()
    client.force_login(administrator())
    assert client.post("/api/v1/lanes/left/retry/", content_type="application/json").json() == {
        "detail": "It is tried again now."
    }
    client.post("/lanes/left/retry/")
    assert LaneEvent.objects.filter(kind="reload").count() == 2
    owner = person("owner")
    builders.booking(lane=lane, owner=owner, start=at(-5))
    assert with_token(owner, "bookings").post("/api/v1/lanes/left/retry/").status_code == 200
    other = with_token(owner, "bookings", lanes=(builders.lane(),))
    assert other.post("/api/v1/lanes/left/retry/").status_code == 403
    client.force_login(person("member"))
    answer = client.post("/api/v1/lanes/left/retry/", content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (403, "not_yours")
