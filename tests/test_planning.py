"""The planner's service on the real database: orders, ticks, and two at once."""

import threading
from collections.abc import Callable
from datetime import datetime

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoCaptureOnCommitCallbacks

from bookings import choices, planning
from bookings.facts import LaneFacts
from bookings.orders import Result, carry_out
from bookings.planner import decide
from bookings.planning import PlanOutcome, plan_lanes
from bookings.situation import Decision, Situation
from lanes import clock, ticks
from lanes.models import Lane, LaneEvent, Order
from tests import builders
from tests.builders import NOON, administrator, at
from tests.planning_cast import Clock, serving

pytest_plugins = ["tests.planning_fixtures"]
pytestmark = pytest.mark.django_db


class TestOrders:
    """What is written, and when nothing is."""

    def test_the_first_order_of_a_default_is_generation_one(self, time: Clock) -> None:
        preset = builders.preset("small")
        lane = builders.lane(default_preset=preset)

        outcome = time.plan(0)

        order = Order.objects.get(lane=lane)
        assert outcome.changed == (lane.pk,)
        assert (order.target, order.generation, order.rule) == (preset.current, 1, 5)
        assert (order.ordered_at, order.decided_at.replace(microsecond=0)) == (NOON, NOON)

    def test_the_first_order_of_nothing_is_generation_zero(self, time: Clock) -> None:
        lane = builders.lane()

        time.plan(0)

        order = Order.objects.get(lane=lane)
        assert (order.target, order.generation) == (None, 0)
        assert "no default" in order.sentence

    def test_a_second_tick_writes_nothing(self, time: Clock) -> None:
        builders.lane(default_preset=builders.preset())
        builders.lane()
        time.plan(0)
        before = list(Order.objects.order_by("pk").values())

        outcome = time.plan(1)

        assert (outcome.changed, len(outcome.decisions)) == ((), 2)
        assert list(Order.objects.order_by("pk").values()) == before

    def test_a_new_target_raises_the_generation_and_is_told(self, time: Clock) -> None:
        lane = builders.lane(default_preset=builders.preset("small"))
        time.plan(0)
        builders.booking(lane=lane, preset=builders.preset("large"), start=at(2))

        time.plan(1)

        order = Order.objects.get(lane=lane)
        assert (order.generation, order.rule, order.ordered_at) == (2, 2, at(1))
        event = LaneEvent.objects.filter(lane=lane, kind="order").first()
        assert event is not None
        assert event.sentence == order.sentence
        assert "large" in event.sentence

    def test_another_rule_with_the_same_target_keeps_the_generation(self, time: Clock) -> None:
        lane, preset = builders.lane(), builders.preset()
        booking = builders.booking(lane=lane, preset=preset, start=at(2))
        time.plan(0)

        time.plan(2)

        order = Order.objects.get(lane=lane)
        assert (order.generation, order.rule, order.ordered_at) == (1, 1, NOON)
        assert (order.booking_id_for, order.owner_id_for) == (booking.pk, booking.owner_id)
        assert (order.booking_start_for, order.booking_preset_for) == (at(2), preset.slug)
        assert LaneEvent.objects.count() == 1

    def test_a_disabled_lane_is_ordered_to_run_nothing(self, time: Clock) -> None:
        lane = builders.lane(default_preset=builders.preset())
        builders.booking(lane=lane)
        time.plan(0)
        Lane.objects.update(enabled=False)

        time.plan(1)

        order = Order.objects.get(lane=lane)
        assert (order.target, order.rule, order.generation) == (None, 0, 2)

    def test_only_the_lanes_asked_for_are_planned(self, time: Clock) -> None:
        first, _ = builders.lane(), builders.lane()

        outcome = plan_lanes([first.pk])

        assert list(outcome.decisions) == [first.pk]
        assert Order.objects.count() == 1

    def test_an_edited_default_is_a_new_target(self, time: Clock) -> None:
        preset = builders.preset()
        lane = builders.lane(default_preset=preset)
        time.plan(0)
        newest = builders.revision(preset)

        time.plan(1)

        order = Order.objects.get(lane=lane)
        assert (order.target, order.generation) == (newest, 2)

    def test_a_lane_that_fails_does_not_stop_the_others(
        self, time: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        broken, sound = builders.lane("a"), builders.lane("b")

        def sometimes(situation: Situation, now: datetime) -> Decision:
            if situation.lane == "a":
                raise ZeroDivisionError
            return decide(situation, now)

        monkeypatch.setattr(planning, "decide", sometimes)
        outcome = time.plan(0)

        assert (outcome.failed, outcome.changed) == ((broken.pk,), (sound.pk,))
        assert "lane not planned lane=a" in caplog.text


class TestTicks:
    """Who is asked to look, and when."""

    @pytest.fixture
    def asked(self, monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
        calls: list[tuple[object, ...]] = []
        monkeypatch.setattr(ticks, "request_look", lambda *args: calls.append(args))
        monkeypatch.setattr(ticks, "request_plan", lambda: calls.append(()))
        monkeypatch.setattr(ticks, "request_plan_at", lambda *args: calls.append(args))
        return calls

    def test_the_hosts_of_changed_lanes_look_after_the_commit(
        self,
        time: Clock,
        asked: list[tuple[object, ...]],
        django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
    ) -> None:
        lane = builders.lane(host=builders.host("gpu-7"))
        with django_capture_on_commit_callbacks(execute=True):
            time.plan(0)
            assert asked == []
        with django_capture_on_commit_callbacks(execute=True):
            time.plan(1)

        assert asked == [(lane.pk, "gpu-7")]

    def test_a_change_before_the_next_beat_sets_one_tick_for_it(
        self, time: Clock, asked: list[tuple[object, ...]]
    ) -> None:
        builders.booking(end=at(30))
        builders.booking(start=at(29.99), end=at(31))

        time.plan(29.98)

        ((moment, seconds),) = asked
        assert moment == at(29.99)
        assert isinstance(seconds, float)
        assert 0 <= seconds <= 0.6  # from the planner's now, less what planning took

    def test_a_change_after_the_next_beat_sets_none(
        self, time: Clock, asked: list[tuple[object, ...]]
    ) -> None:
        builders.booking(end=at(30))

        assert time.plan(29).reconsider_at == at(30)
        assert asked == []


def test_an_unchanged_tick_takes_nine_queries_however_many_lanes() -> None:
    preset = builders.preset()
    for _ in range(5):
        lane = builders.lane(default_preset=preset)
        builders.booking(lane=lane)
    plan_lanes()
    for lane in Lane.objects.all():
        serving(lane)
    plan_lanes()

    # clock; lanes, bookings, choices, runtimes, failures, revisions, load history,
    # maintenance
    with CaptureQueriesContext(connection) as queries:
        outcome = plan_lanes()

    assert len(queries) == 9
    assert len(outcome.decisions) == 5


@pytest.mark.django_db(transaction=True)
def test_with_the_broker_down_orders_are_written_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = clock.database_now()
    lane = builders.lane(default_preset=builders.preset())

    choices.choose(lane, preset=None, until=now.replace(year=2100), actor=administrator())
    outcome = plan_lanes()

    assert outcome.changed == (lane.pk,)
    assert Order.objects.get(lane=lane).rule == 4
    assert "tick not sent" in caplog.text


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_first", [True, False], ids=["no order yet", "an order"])
def test_of_two_planners_at_once_one_raises_the_generation(
    monkeypatch: pytest.MonkeyPatch, is_first: bool
) -> None:
    preset = builders.preset()
    lane = builders.lane(default_preset=preset)
    if not is_first:
        plan_lanes()
        builders.revision(preset)
    before = Order.objects.filter(lane=lane).values_list("generation", flat=True).first() or 0
    _meet_before_writing(monkeypatch)

    outcomes = _at_once(plan_lanes, plan_lanes)

    assert sorted(len(outcome.changed) for outcome in outcomes) == [0, 1]
    assert sorted(len(outcome.lost) for outcome in outcomes) == [0, 1]
    assert Order.objects.get(lane=lane).generation == before + 1
    assert LaneEvent.objects.filter(lane=lane).count() == before + 1


def _meet_before_writing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both planners have read the same facts before either writes."""
    meeting = threading.Barrier(2, timeout=60)

    def late(facts: LaneFacts, decision: Decision) -> Result:
        meeting.wait()
        return carry_out(facts, decision)

    monkeypatch.setattr(planning, "carry_out", late)


def _at_once(*calls: Callable[[], PlanOutcome]) -> list[PlanOutcome]:
    """Run each in a thread with a database connection of its own."""
    outcomes: list[PlanOutcome] = []

    def run(call: Callable[[], PlanOutcome]) -> None:
        try:
            outcomes.append(call())
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    return outcomes
