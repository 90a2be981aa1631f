"""The planner's service on the real database: orders, pins, reloads, ticks, and two at once."""

import random
import threading
from collections.abc import Callable
from datetime import datetime

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoCaptureOnCommitCallbacks

from bookings import choices, planning
from bookings.facts import LaneFacts
from bookings.models import Booking
from bookings.orders import Result, carry_out
from bookings.planner import decide
from bookings.planning import PlanOutcome, plan_lanes
from bookings.situation import Decision, Situation
from lanes import clock, ticks
from lanes.models import (
    Lane,
    LaneEvent,
    ManualChoice,
    Order,
    Phase,
    Preset,
    PresetFailure,
    ReloadRequest,
    Runtime,
)
from tests import builders
from tests.builders import NOON, administrator, at, person

pytestmark = pytest.mark.django_db


class Clock:
    """The database's clock, as a test sets it."""

    def __init__(self) -> None:
        self.now = NOON

    def plan(self, minute: float) -> PlanOutcome:
        self.now = at(minute)
        return plan_lanes()


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Clock:
    stopped = Clock()
    monkeypatch.setattr(clock, "database_now", lambda: stopped.now)
    return stopped


def serving(lane: Lane, phase: Phase = Phase.READY) -> Runtime:
    """The host's report: a server of the lane's order."""
    order = Order.objects.get(lane=lane)
    assert order.target is not None
    return Runtime.objects.create(
        lane=lane,
        revision=order.target,
        generation=order.generation,
        phase=phase,
        phase_since=order.ordered_at,
        started_at=order.ordered_at,
        ready_at=order.ordered_at if phase == Phase.READY else None,
        address="127.0.0.1",
        port=1,
    )


def failing(lane: Lane, preset: Preset, **fields: object) -> PresetFailure:
    """The host's report: a preset's current revision has failed."""
    revision = preset.revisions.order_by("number").last()
    assert revision is not None
    return PresetFailure.objects.create(lane=lane, revision=revision, **{"count": 1, **fields})


def pinned(booking: Booking) -> int | None:
    booking.refresh_from_db()
    return booking.pinned_revision_id


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


class TestPins:
    """A booking keeps the revision that was first ordered for it."""

    def test_a_preload_pins_and_a_later_edit_does_not_reach_it(self, time: Clock) -> None:
        preset = builders.preset()
        booking = builders.booking(preset=preset, start=at(2))
        first = preset.current
        time.plan(0)
        builders.revision(preset)

        time.plan(1)
        time.plan(3)

        order = Order.objects.get(lane=booking.lane)
        assert (order.target, order.generation) == (first, 1)
        assert first is not None
        assert pinned(booking) == first.pk

    def test_an_edit_before_the_preload_reaches_it(self, time: Clock) -> None:
        preset = builders.preset()
        booking = builders.booking(preset=preset, start=at(60))
        time.plan(0)
        assert pinned(booking) is None
        newest = builders.revision(preset)

        time.plan(59)

        assert pinned(booking) == newest.pk

    @pytest.mark.parametrize(
        "change",
        [{"state": "cancelled"}, {"start": at(200), "end": at(260), "original_end": at(260)}],
        ids=str,
    )
    def test_a_commitment_that_is_given_up_drops_the_pin(
        self, time: Clock, change: dict[str, object]
    ) -> None:
        booking = builders.booking(start=at(2))
        time.plan(0)
        Booking.objects.update(**change)

        time.plan(1)

        assert pinned(booking) is None
        assert Order.objects.get(lane=booking.lane).booking_id_for is None

    def test_one_moved_to_another_lane_is_pinned_anew_there(self, time: Clock) -> None:
        preset = builders.preset()
        booking = builders.booking(preset=preset, start=at(2))
        time.plan(0)
        newest, elsewhere = builders.revision(preset), builders.lane()
        Booking.objects.update(lane=elsewhere)

        time.plan(1)
        time.plan(1.5)

        assert pinned(booking) == newest.pk
        assert Order.objects.get(lane=elsewhere).target == newest

    def test_one_that_has_begun_keeps_its_pin_when_it_is_over(self, time: Clock) -> None:
        booking = builders.booking(end=at(10))
        time.plan(0)
        kept = pinned(booking)

        time.plan(10)

        assert pinned(booking) == kept is not None

    def test_a_whole_gpu_booking_has_none(self, time: Clock) -> None:
        booking = builders.booking(kind="gpu")

        time.plan(0)

        assert pinned(booking) is None

    def test_a_booking_in_fallback_is_pinned_too(self, time: Clock) -> None:
        lane = builders.lane(default_preset=builders.preset())
        preset = builders.preset()
        booking = builders.booking(lane=lane, preset=preset)
        failing(lane, preset, failed_at=NOON, booking_id_for=booking.pk)

        time.plan(0)

        order = Order.objects.get(lane=lane)
        assert order.is_fallback
        assert pinned(booking) == preset.current_id


class TestReload:
    """Reload restarts at once, forgets failures, and takes the newest revision."""

    def asked(self, lane: Lane, minute: float) -> None:
        ReloadRequest.objects.update_or_create(lane=lane, defaults={"asked_at": at(minute)})

    def test_it_raises_the_generation_once(self, time: Clock) -> None:
        lane = builders.lane(default_preset=builders.preset())
        time.plan(0)
        self.asked(lane, 1)

        time.plan(1)
        time.plan(2)

        order = Order.objects.get(lane=lane)
        assert (order.generation, order.is_reload, order.fresh_from) == (2, True, 2)
        assert order.reload_asked_at == at(1)
        assert LaneEvent.objects.filter(lane=lane, kind="restart").count() == 1

    def test_a_booking_in_progress_gets_its_presets_newest_revision(self, time: Clock) -> None:
        preset = builders.preset()
        booking = builders.booking(preset=preset)
        time.plan(0)
        newest = builders.revision(preset)
        self.asked(booking.lane, 1)

        time.plan(1)

        order = Order.objects.get(lane=booking.lane)
        assert (order.target, order.generation, order.is_reload) == (newest, 2, True)
        assert pinned(booking) == newest.pk

    def test_a_booking_being_preloaded_gets_it_too(self, time: Clock) -> None:
        preset = builders.preset()
        booking = builders.booking(preset=preset, start=at(2))
        time.plan(0)
        newest = builders.revision(preset)
        self.asked(booking.lane, 1)

        time.plan(1)
        time.plan(2)

        order = Order.objects.get(lane=booking.lane)
        assert (order.target, order.generation, order.rule) == (newest, 2, 1)
        assert pinned(booking) == newest.pk

    def test_failures_are_forgotten_and_the_booked_preset_is_tried(self, time: Clock) -> None:
        preset = builders.preset()
        lane = builders.lane(default_preset=builders.preset())
        booking = builders.booking(lane=lane, preset=preset)
        failed = failing(lane, preset, failed_at=NOON, booking_id_for=booking.pk)
        time.plan(0)
        self.asked(lane, 0.1)

        time.plan(0.1)

        failed.refresh_from_db()
        order = Order.objects.get(lane=lane)
        assert (failed.count, order.target, order.is_fallback) == (0, preset.current, False)
        assert order.is_reload

    def test_with_nothing_to_run_it_raises_nothing(self, time: Clock) -> None:
        lane = builders.lane()
        time.plan(0)
        self.asked(lane, 1)

        time.plan(1)

        order = Order.objects.get(lane=lane)
        assert (order.generation, order.reload_asked_at) == (0, at(1))

    def test_the_next_target_drains_again(self, time: Clock) -> None:
        preset = builders.preset()
        lane = builders.lane(default_preset=preset)
        time.plan(0)
        self.asked(lane, 1)
        time.plan(1)
        builders.revision(preset)

        time.plan(2)

        order = Order.objects.get(lane=lane)
        assert (order.generation, order.is_reload, order.fresh_from) == (3, False, 2)


class TestOwnerChange:
    """Lanes that restart when another person's slot begins."""

    def adjacent(self, **lane_fields: bool) -> Lane:
        """Two adjacent slots of one preset, of two people; the first one's server is ready."""
        lane, preset = builders.lane("adjacent", **lane_fields), builders.preset()
        builders.booking(lane=lane, preset=preset, end=at(30))
        member = person("member")
        builders.booking(lane=lane, preset=preset, start=at(30), end=at(60), owner=member)
        return lane

    def test_the_server_restarts_with_a_drain(self, time: Clock) -> None:
        lane = self.adjacent(restart_on_owner_change=True)
        time.plan(0)
        serving(lane)

        time.plan(30)

        order = Order.objects.get(lane=lane)
        assert (order.generation, order.is_reload, order.fresh_from) == (2, False, 2)
        assert order.owner_id_for == person("member").pk

    def test_a_lane_without_the_setting_keeps_its_server(self, time: Clock) -> None:
        lane = self.adjacent()
        time.plan(0)
        serving(lane)

        time.plan(30)

        assert Order.objects.get(lane=lane).generation == 1

    def test_one_that_still_loads_has_nothing_to_tell(self, time: Clock) -> None:
        lane = self.adjacent(restart_on_owner_change=True)
        time.plan(0)
        serving(lane, Phase.STARTING)

        time.plan(30)

        assert Order.objects.get(lane=lane).generation == 1


class TestEndings:
    """Choices and failures that are over."""

    def test_a_choice_ends_at_its_time(self, time: Clock) -> None:
        lane = builders.lane()
        choices.choose(lane, preset=builders.preset(), until=at(5), actor=administrator())
        time.plan(0)
        assert Order.objects.get(lane=lane).rule == 4

        time.plan(5)

        assert ManualChoice.objects.get().ended_at == at(5)
        assert Order.objects.get(lane=lane).target is None
        told = LaneEvent.objects.filter(lane=lane, kind="choice").first()
        assert told is not None
        assert told.sentence.endswith("has ended: its time is up")

    def test_a_choice_ends_when_a_booking_begins_and_does_not_come_back(self, time: Clock) -> None:
        lane = builders.lane()
        choices.choose(lane, preset=builders.preset(), until=at(90), actor=administrator())
        builders.booking(lane=lane, start=at(10), end=at(20))

        time.plan(10)
        time.plan(20)

        assert ManualChoice.objects.get().ended_at == at(10)
        assert Order.objects.get(lane=lane).rule == 5

    def test_failures_end_with_the_booking_they_were_for(self, time: Clock) -> None:
        preset = builders.preset()
        booking = builders.booking(preset=preset, end=at(30))
        failed = failing(booking.lane, preset, failed_at=NOON, booking_id_for=booking.pk)
        lasting = failing(booking.lane, builders.preset(), failed_at=NOON)
        time.plan(0)

        time.plan(30)

        failed.refresh_from_db()
        lasting.refresh_from_db()
        assert (failed.count, lasting.count) == (0, 1)


@pytest.mark.parametrize("seed", range(12))
def test_planning_again_at_the_same_moment_changes_nothing(time: Clock, seed: int) -> None:
    chance = random.Random(seed)
    lasting = ("generation", "target", "rule", "booking_id_for", "sentence")
    presets = [builders.preset() for _ in range(3)]
    for _ in range(3):
        _random_lane(chance, presets)

    for minute in sorted(chance.uniform(0, 90) for _ in range(8)):
        time.plan(minute)
        ordered = list(Order.objects.order_by("pk").values(*lasting))
        plan_lanes()  # knowing its own orders it may see further ahead: a later reconsider_at
        again = plan_lanes()
        assert (again.changed, again.lost, again.failed) == ((), (), ())
        assert list(Order.objects.order_by("pk").values(*lasting)) == ordered
        _something_happens(chance, presets, minute)


def _random_lane(chance: random.Random, presets: list[Preset]) -> None:
    """A lane with a few bookings, some pending or of the whole GPU, and perhaps a default."""
    lane = builders.lane(
        default_preset=chance.choice([None, *presets]),
        restart_on_owner_change=chance.random() < 0.5,
    )
    for minute in (0, 20, 40, 60):
        kind = chance.choice(["model", "model", "gpu"])
        builders.booking(
            lane=lane,
            kind=kind,
            preset=chance.choice(presets) if kind == "model" else None,
            start=at(minute + chance.choice([0, 3, 8])),
            end=at(minute + chance.choice([15, 20])),
            state=chance.choice(["confirmed", "confirmed", "pending", "cancelled"]),
            owner=person(chance.choice(["owner", "member"])),
        )


def _something_happens(chance: random.Random, presets: list[Preset], minute: float) -> None:
    """What people and hosts do between two ticks."""
    lane = chance.choice(list(Lane.objects.all()))
    what = chance.randrange(4)
    if what == 0:
        builders.revision(chance.choice(presets))
    elif what == 1:
        ReloadRequest.objects.update_or_create(lane=lane, defaults={"asked_at": at(minute)})
    elif what == 2:
        chosen = chance.choice([None, *presets])
        choices.choose(lane, preset=chosen, until=at(minute + 10), actor=administrator())
    elif (order := lane.order).target:
        PresetFailure.objects.update_or_create(
            lane=lane,
            revision=order.target,
            defaults={
                "count": 1,
                "failed_at": at(minute),
                "booking_id_for": order.booking_id_for,
            },
        )


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


def test_an_unchanged_tick_takes_eight_queries_however_many_lanes() -> None:
    preset = builders.preset()
    for _ in range(5):
        lane = builders.lane(default_preset=preset)
        builders.booking(lane=lane)
    plan_lanes()
    for lane in Lane.objects.all():
        serving(lane)
    plan_lanes()

    # clock; lanes, bookings, choices, runtimes, failures, revisions, load history
    with CaptureQueriesContext(connection) as queries:
        outcome = plan_lanes()

    assert len(queries) == 8
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
    meeting = threading.Barrier(2, timeout=20)

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
        thread.join(timeout=30)
    return outcomes
