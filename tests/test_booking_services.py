"""Booking a slot: what is accepted, what is refused, and what it says."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import transaction

from bookings import services
from bookings.models import Booking, State, Status
from lanes import ticks
from lanes.models import Lane, LaneEvent, Preset
from tests import builders
from tests.booking_cast import ask, booked, code, taken
from tests.builders import at
from tests.conftest import Moment

pytestmark = pytest.mark.django_db
MILLISECOND = timedelta(milliseconds=1)


@pytest.fixture
def lane(moment: Moment) -> Lane:
    return builders.lane("demo")


@pytest.fixture
def preset() -> Preset:
    return builders.preset("smollm2")


def test_a_free_slot_is_booked_and_confirmed_at_once(lane: Lane, preset: Preset) -> None:
    made = booked(lane, kind="model", preset=preset, purpose=" thesis ")
    made.refresh_from_db()
    assert (made.state, made.confirmed_at) == (State.CONFIRMED, at(0))
    assert (made.start, made.end, made.original_end) == (at(60), at(120), at(120))
    assert made.purpose == "thesis"


def test_without_a_start_it_begins_now(lane: Lane) -> None:
    made = booked(lane, start=None)
    assert made.start == at(0)
    assert made.status(at(0)) is Status.IN_PROGRESS


def test_times_of_any_zone_are_kept_in_utc(lane: Lane) -> None:
    zone = timezone(timedelta(hours=2))
    made = booked(lane, start=at(60).astimezone(zone), end=at(120).astimezone(zone))
    assert (made.start, made.start.tzinfo) == (at(60), UTC)


def test_times_are_never_rounded(lane: Lane) -> None:
    start = at(60) + timedelta(microseconds=1)
    assert Booking.objects.get(pk=booked(lane, start=start).pk).start == start


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"start": datetime(2030, 1, 15, 13)}, "naive_time"),  # noqa: DTZ001
        ({"end": datetime(2030, 1, 15, 14)}, "naive_time"),  # noqa: DTZ001
        ({"end": at(60)}, "ends_before_start"),
        ({"end": at(59)}, "ends_before_start"),
        ({"start": at(-60), "end": at(-120)}, "in_the_past"),
        ({"start": at(-60), "end": at(-30)}, "in_the_past"),
        ({"start": at(-60), "end": at(0)}, "in_the_past"),
        ({"start": at(0) - MILLISECOND}, "in_the_past"),
        ({"start": None, "end": at(0)}, "in_the_past"),
        ({"end": at(0) + timedelta(days=366, seconds=1)}, "too_far"),
        ({"end": datetime.max.replace(tzinfo=timezone(timedelta(hours=-1)))}, "too_far"),
        ({"start": datetime.min.replace(tzinfo=timezone(timedelta(hours=1)))}, "in_the_past"),
        ({"kind": "half"}, "wrong_kind"),
        ({"kind": "model"}, "wrong_kind"),
        ({"purpose": "x" * 201}, "bad_purpose"),
        ({"purpose": "\0"}, "bad_purpose"),
    ],
)
def test_what_cannot_be_booked_is_refused(
    lane: Lane, changed: dict[str, Any], expected: str
) -> None:
    assert code(ask(lane, **changed)) == expected
    assert not Booking.objects.exists()
    assert not LaneEvent.objects.exists()


def test_a_booking_may_start_this_very_moment_and_end_at_the_horizon(lane: Lane) -> None:
    booked(lane, start=at(0), end=at(0) + timedelta(days=366))


def test_the_whole_gpu_takes_no_preset(lane: Lane, preset: Preset) -> None:
    assert code(ask(lane, kind="gpu", preset=preset)) == "wrong_kind"


def test_a_preset_of_another_host_is_unknown_on_this_lane(lane: Lane) -> None:
    file = builders.model_file(host=builders.host("elsewhere"))
    preset = builders.preset(model_file=file)
    assert code(ask(lane, kind="model", preset=preset)) == "unknown_preset"


def test_a_preset_without_a_revision_is_unknown(lane: Lane) -> None:
    empty = Preset.objects.create(slug="empty", name="empty")
    assert code(ask(lane, kind="model", preset=empty)) == "unknown_preset"


def test_a_disabled_lane_takes_no_bookings(lane: Lane) -> None:
    Lane.objects.update(enabled=False)
    assert code(ask(lane)) == "lane_disabled"


def test_a_lane_deleted_meanwhile_is_a_refusal(lane: Lane) -> None:
    Lane.objects.filter(pk=lane.pk).delete()
    assert code(ask(lane)) == "wrong_state"


def test_a_lane_that_needs_approval_makes_a_members_booking_wait(lane: Lane) -> None:
    Lane.objects.update(needs_approval=True)
    made = booked(lane)
    assert (made.state, made.confirmed_at) == (State.PENDING, None)
    administrators = booked(lane, builders.administrator(), start=at(120), end=at(180))
    assert administrators.state == State.CONFIRMED


@pytest.mark.parametrize(("start", "end"), [(30, 61), (119, 150), (60, 120), (90, 91), (0, 999)])
def test_a_slot_that_somebody_holds_is_refused(lane: Lane, start: int, end: int) -> None:
    first = booked(lane)
    refusal = taken(ask(lane, builders.person("member"), start=at(start), end=at(end)))
    assert refusal.code == "slot_taken"
    assert [c.booking_id for c in refusal.conflicts] == [first.pk]


@pytest.mark.parametrize(("start", "end"), [(0, 60), (120, 180)])
def test_a_slot_next_to_anothers_is_free(lane: Lane, start: int, end: int) -> None:
    booked(lane)
    booked(lane, builders.person("member"), start=at(start), end=at(end))


def test_another_lane_at_the_same_time_is_free(lane: Lane) -> None:
    booked(lane)
    booked(builders.lane())


def test_a_pending_booking_keeps_others_away_and_a_given_up_one_does_not(lane: Lane) -> None:
    waiting = builders.booking(
        lane=lane, start=at(60), state=State.PENDING, kind="gpu", preset=None
    )
    assert code(ask(lane)) == "slot_taken"
    for state in (State.CANCELLED, State.REJECTED):
        Booking.objects.filter(pk=waiting.pk).update(state=state)
        services.cancel(booked(lane), actor=builders.person())


def test_an_event_says_who_booked_what(lane: Lane, preset: Preset) -> None:
    made = booked(lane, kind="model", preset=preset, purpose="secret plans")
    event = LaneEvent.objects.get()
    assert (event.kind, event.actor, event.at) == ("booking.created", made.owner, at(0))
    assert event.sentence == "owner created the booking: smollm2, 13:00 UTC to 14:00 UTC"


def test_lanes_are_planned_when_the_booking_commits(
    lane: Lane, django_capture_on_commit_callbacks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(ticks, "request_plan", lambda: asked.append("plan"))
    with django_capture_on_commit_callbacks(execute=True):
        booked(lane)
        assert asked == []
    assert asked == ["plan"]


@pytest.mark.django_db(transaction=True)
def test_a_broker_that_is_down_fails_no_booking(
    moment: Moment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ticks, "_client", None)  # REDIS_URL of tests: a socket nobody serves
    made = booked(builders.lane())
    assert Booking.objects.filter(pk=made.pk, state=State.CONFIRMED).exists()


def test_a_booking_takes_a_fixed_number_of_queries(
    lane: Lane, preset: Preset, django_assert_max_num_queries: Any
) -> None:
    builders.person()
    # savepoints 4, member, lane, preset, rules, maintenance, the member once more, conflicts,
    # booking, event, what waits; on PostgreSQL the lock's limit
    with django_assert_max_num_queries(15):
        booked(lane, builders.person(), kind="model", preset=preset)


def test_a_refusal_within_a_callers_transaction_leaves_it_usable(lane: Lane) -> None:
    booked(lane)
    with transaction.atomic():
        assert code(ask(lane)) == "slot_taken"
        booked(lane, start=at(120), end=at(130))


def test_members_see_all_bookings_and_strangers_none(lane: Lane) -> None:
    booked(lane)
    assert Booking.objects.visible_to(builders.person("member")).count() == 1
    assert not Booking.objects.visible_to(AnonymousUser()).exists()


def test_only_the_owner_and_administrators_read_what_it_is_for(lane: Lane) -> None:
    made = booked(lane, purpose="thesis")
    assert made.purpose_for(made.owner) == made.purpose_for(builders.administrator()) == "thesis"
    assert made.purpose_for(builders.person("member")) == ""
    assert made.purpose_for(AnonymousUser()) == ""


def test_current_and_past_bookings_part_at_the_end(lane: Lane) -> None:
    first, second = booked(lane), booked(lane, start=at(120), end=at(180))
    services.cancel(second, actor=second.owner)
    third = booked(lane, start=at(120), end=at(150))
    assert list(Booking.objects.current(at(119))) == [first, third]
    assert list(Booking.objects.current(at(120))) == [third]
    assert set(Booking.objects.past(at(120))) == {first, second}


@pytest.mark.parametrize(
    ("fields", "minutes", "status"),
    [
        ({}, -1, Status.UPCOMING),
        ({}, 0, Status.IN_PROGRESS),
        ({}, 59, Status.IN_PROGRESS),
        ({}, 60, Status.ENDED),
        ({"confirmed_at": at(10)}, 9, Status.UPCOMING),
        ({"confirmed_at": at(10)}, 10, Status.IN_PROGRESS),
        ({"released_at": at(60)}, 60, Status.RELEASED),
        ({"state": State.PENDING}, -1, Status.PENDING),
        ({"state": State.PENDING}, 59, Status.PENDING),
        ({"state": State.PENDING}, 60, Status.EXPIRED),
        ({"state": State.CANCELLED}, 30, Status.CANCELLED),
        ({"state": State.REJECTED}, 30, Status.REJECTED),
    ],
)
def test_the_status_follows_from_state_and_time(
    fields: dict[str, Any], minutes: int, status: Status
) -> None:
    assert builders.booking(**fields).status(at(minutes)) is status
