"""What administrators ask of a lane, and the refusals beside it."""

from datetime import datetime

import pytest

from bookings.choices import ChoiceMade, choose, clear_choice, reload
from lanes import clock
from lanes.models import Lane, LaneEvent, Maintenance, ManualChoice, ReloadRequest
from lanes.refusals import Refusal
from tests import builders
from tests.builders import NOON, administrator, at, person

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "database_now", lambda: NOON)


def made(lane: Lane, until_minute: float = 60) -> ChoiceMade:
    until = at(until_minute)
    answer = choose(lane, preset=builders.preset(), until=until, actor=administrator())
    assert isinstance(answer, ChoiceMade)
    return answer


def code(answer: object) -> str:
    assert isinstance(answer, Refusal)
    return answer.code


def test_a_choice_says_when_it_ends() -> None:
    answer = choose(
        builders.lane(), preset=builders.preset("small"), until=at(60), actor=administrator()
    )

    assert isinstance(answer, ChoiceMade)
    assert (answer.begins_at, answer.ends_at) == (NOON, at(60))
    assert answer.words == "small until 13:00 UTC"


def test_the_next_confirmed_booking_ends_it_earlier() -> None:
    lane = builders.lane()
    builders.booking(lane=lane, start=at(5), end=at(10), state="pending")
    builders.booking(lane=lane, start=at(30))

    answer = made(lane)

    assert answer.ends_at == at(30)
    assert answer.words.endswith("until 12:30 UTC when the next booking starts")


def test_during_a_booking_it_takes_effect_after_it() -> None:
    lane = builders.lane()
    builders.booking(lane=lane, start=at(-30), end=at(20))

    answer = made(lane)

    assert (answer.begins_at, answer.ends_at) == (at(20), at(60))
    assert "after the booking that ends at 12:20 UTC" in answer.words


@pytest.mark.parametrize("until", [20, 15])
def test_one_that_ends_before_the_booking_in_progress_says_so(until: int) -> None:
    lane = builders.lane()
    builders.booking(lane=lane, start=at(-30), end=at(20))

    answer = made(lane, until)

    assert answer.ends_at <= answer.begins_at
    assert "will not take effect" in answer.words


def test_unloading_is_a_choice_too() -> None:
    answer = choose(builders.lane(), preset=None, until=at(60), actor=administrator())

    assert isinstance(answer, ChoiceMade)
    assert answer.words == "nothing (unloaded) until 13:00 UTC"


def test_a_new_choice_ends_the_one_before() -> None:
    lane = builders.lane()
    first, second = made(lane), made(lane)

    assert list(ManualChoice.objects.filter(lane=lane, ended_at=None)) == [second.choice]
    assert ManualChoice.objects.get(pk=first.choice.pk).ended_at == NOON


def test_who_chose_what_is_told() -> None:
    lane = builders.lane()
    answer = made(lane)

    event = LaneEvent.objects.get(lane=lane)

    assert (event.actor, event.kind) == (administrator(), "choice")
    assert event.sentence == f"chosen: {answer.words}"


@pytest.mark.parametrize(
    ("until", "expected"),
    [
        (NOON.replace(tzinfo=None), "naive_time"),
        (NOON, "in_the_past"),
        (at(-1), "in_the_past"),
    ],
)
def test_an_end_that_is_naive_or_past_is_refused(until: datetime, expected: str) -> None:
    answer = choose(builders.lane(), preset=None, until=until, actor=administrator())

    assert code(answer) == expected
    assert not ManualChoice.objects.exists()


def test_a_disabled_lane_is_refused() -> None:
    lane = builders.lane(enabled=False)

    assert code(choose(lane, preset=None, until=at(60), actor=administrator())) == "lane_disabled"


def test_a_preset_of_another_host_is_refused() -> None:
    elsewhere = builders.model_file(host=builders.host("elsewhere"))
    preset = builders.preset(model_file=elsewhere)

    answer = choose(builders.lane(), preset=preset, until=at(60), actor=administrator())

    assert code(answer) == "unknown_preset"


def test_clearing_ends_the_choice_once() -> None:
    lane = builders.lane()
    made(lane)

    assert clear_choice(lane, actor=administrator()) is None
    assert not ManualChoice.objects.filter(lane=lane, ended_at=None).exists()
    assert code(clear_choice(lane, actor=administrator())) == "wrong_state"


def test_a_reload_asked_twice_is_one_request_with_the_newest_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lane = builders.lane()
    assert reload(lane, actor=administrator()) is None
    monkeypatch.setattr(clock, "database_now", lambda: at(1))
    assert reload(lane, actor=administrator()) is None

    request = ReloadRequest.objects.get(lane=lane)

    assert (request.asked_at, request.asked_by) == (at(1), administrator())
    assert LaneEvent.objects.filter(lane=lane, kind="reload").count() == 2


def test_members_may_do_none_of_it() -> None:
    lane, member = builders.lane(), person("member")

    assert code(choose(lane, preset=None, until=at(60), actor=member)) == "not_administrator"
    assert code(clear_choice(lane, actor=member)) == "not_administrator"
    assert code(reload(lane, actor=member)) == "not_administrator"
    assert not LaneEvent.objects.exists()


def test_a_lane_that_was_deleted_meanwhile_is_refused() -> None:
    lane = builders.lane()
    Lane.objects.all().delete()

    assert code(choose(lane, preset=None, until=at(60), actor=administrator())) == "not_found"
    assert code(clear_choice(lane, actor=administrator())) == "not_found"
    assert code(reload(lane, actor=administrator())) == "not_found"


def closed(lane: Lane, start: float, end: float | None) -> None:
    Maintenance.objects.create(lane=lane, start=at(start), end=at(end) if end is not None else None)


@pytest.mark.parametrize(
    ("start", "end", "begins", "words"),
    [
        (-30, 20, 20, "after the maintenance that ends at 12:20 UTC, until 13:00 UTC"),
        (-30, 60, 60, "will not take effect: the lane is under maintenance"),
        (-30, None, 60, "will not take effect: the lane is under maintenance"),
        (20, 30, 0, "until 13:00 UTC; nothing runs from 12:20 UTC on, while the lane is under"),
        (60, 90, 0, " until 13:00 UTC"),
    ],
)
def test_it_says_how_it_waits_during_maintenance(
    start: float, end: float | None, begins: float, words: str
) -> None:
    lane = builders.lane()
    closed(lane, start, end)
    answer = made(lane)
    assert (answer.begins_at, answer.ends_at) == (at(begins), at(60))
    assert words in answer.words


def test_after_a_booking_it_waits_for_maintenance_as_well() -> None:
    lane = builders.lane()
    builders.booking(lane=lane, start=at(-30), end=at(20))
    closed(lane, 10, 30)
    answer = made(lane)
    assert answer.begins_at == at(30)
    assert "after the maintenance that ends at 12:30 UTC" in answer.words
