"""The beat and the plan out of turn: every step is taken, though another fails."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import cast

import pytest
from celery import current_app

from bookings.planning import PlanOutcome
from gateway import tasks, usage
from gateway.models import UsageRecord
from lanes import ticks
from lanes.models import Order
from tests import builders
from tests.conftest import ValkeyServer
from tests.usage_cast import CALL
from wire.edges import TABLE_HEAD, USAGE_STREAM
from wire.usage import encode_usage

pytestmark = pytest.mark.django_db
NOTHING_PLANNED = PlanOutcome(builders.NOON, {}, changed=(), lost=(), failed=())
Sent = list[tuple[str, dict[str, object]]]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    """The messages that would have gone to Celery."""
    messages: Sent = []
    monkeypatch.setattr(current_app, "send_task", lambda name, **how: messages.append((name, how)))
    return messages


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    ticks.valkey().close()


def looks(sent: Sent) -> Sent:
    return [(name, how) for name, how in sent if name == tasks.LOOK_HOST_TASK]


@pytest.mark.usefixtures("valkey")
def test_one_beat_plans_publishes_wakes_each_host_and_takes_usage_in(sent: Sent) -> None:
    preset = builders.preset()
    builders.lane(default_preset=preset)
    builders.host("other")
    ticks.valkey().xadd(USAGE_STREAM, encode_usage(CALL))  # type: ignore[arg-type]
    tasks.beat()
    assert Order.objects.get().target == preset.current
    assert ticks.valkey().exists(TABLE_HEAD)
    assert {how["queue"] for _, how in looks(sent)} == {"host.test-host", "host.other"}
    assert UsageRecord.objects.count() == 1


@pytest.mark.usefixtures("valkey")
def test_no_clock_that_is_ahead_throws_a_host_s_look_away(sent: Sent) -> None:
    builders.host("a")
    tasks.beat()
    ((_, how),) = looks(sent)
    assert how["args"] == ("a",)
    assert "expires" not in how


@pytest.mark.usefixtures("valkey")
def test_looks_do_not_pile_up_for_a_host_whose_worker_is_down(sent: Sent) -> None:
    builders.host("down")
    builders.host("up")
    ticks.valkey().rpush("host.down", *["message"] * tasks.MOST_WAITING_LOOKS)
    tasks.look_at_hosts()
    assert [how["queue"] for _, how in looks(sent)] == ["host.up"]


STEPS = ("watch_hosts", "plan_lanes", "publish", "look_at_hosts", "ingest")


@pytest.mark.parametrize("broken", STEPS)
@pytest.mark.usefixtures("sent", "valkey")
def test_a_step_that_fails_keeps_no_other_from_being_taken(
    broken: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    taken: list[str] = []

    def take(name: str) -> PlanOutcome:
        taken.append(name)
        if name == broken:
            raise RuntimeError(f"{name} is broken")
        return NOTHING_PLANNED

    for name in STEPS:
        monkeypatch.setattr(tasks, name, partial(take, name))
    tasks.beat()
    assert taken == list(STEPS)
    assert f"{broken} is broken" in caplog.text


@pytest.mark.usefixtures("sent", "valkey")
def test_a_lane_that_another_planner_took_is_planned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = [replace(NOTHING_PLANNED, lost=(7,)), NOTHING_PLANNED]
    asked: list[object] = []

    def plan_lanes(pks: object = None) -> PlanOutcome:
        asked.append(pks)
        return outcomes.pop(0)

    monkeypatch.setattr(tasks, "plan_lanes", plan_lanes)
    tasks.plan_all()
    assert asked == [None, (7,)]


@pytest.mark.usefixtures("valkey")
def test_a_lane_that_is_lost_again_and_again_is_left_to_another_tick(
    monkeypatch: pytest.MonkeyPatch, sent: Sent
) -> None:
    lost = replace(NOTHING_PLANNED, lost=(7,))
    monkeypatch.setattr(tasks, "plan_lanes", lambda *_: lost)
    tasks.plan_all()
    assert [name for name, _ in sent] == [ticks.PLAN_TASK]


@pytest.mark.usefixtures("valkey")
def test_a_plan_clears_its_request_before_it_reads(
    monkeypatch: pytest.MonkeyPatch, sent: Sent
) -> None:
    ticks.request_plan()
    ticks.request_plan()
    ((_, how),) = sent  # the second found the first still waiting
    (key,) = cast(tuple[str], how["args"])
    held: list[object] = []

    def seen() -> PlanOutcome:
        held.append(ticks.valkey().get(key))
        return NOTHING_PLANNED

    monkeypatch.setattr(tasks, "plan_lanes", seen)
    tasks.plan(key)
    assert held == [None]
    assert ticks.valkey().exists(TABLE_HEAD)


def test_a_beat_without_a_broker_plans_all_the_same(
    valkey: str, valkey_server: ValkeyServer
) -> None:
    preset = builders.preset()
    builders.lane(default_preset=preset)
    valkey_server.stop()
    tasks.beat()
    assert Order.objects.get().target == preset.current


@pytest.mark.usefixtures("sent", "valkey")
def test_two_beats_in_a_row_change_nothing_more() -> None:
    builders.lane(default_preset=builders.preset())
    tasks.beat()
    first = Order.objects.values().get()
    tasks.beat()
    assert Order.objects.values().get() == first


def ingests(sent: Sent) -> Sent:
    return [(name, how) for name, how in sent if name == ticks.INGEST_TASK]


@pytest.mark.usefixtures("valkey")
def test_a_request_from_before_valkey_s_clock_was_set_back_holds_up_nothing(sent: Sent) -> None:
    ticks.request_plan()
    ticks.request_plan()
    assert len(sent) == 1
    ticks.valkey().pexpire("ss:tick:plan", (ticks.PENDING_SECONDS + 30) * 1000)
    ticks.request_plan()
    assert len(sent) == 2
    assert ticks.valkey().ttl("ss:tick:plan") <= ticks.PENDING_SECONDS


@pytest.mark.usefixtures("valkey")
def test_a_backlog_of_usage_is_followed_up_at_once_by_one_message(
    sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "BUDGET_SECONDS", 0.0)
    for number in range(2 * usage.BATCH + 1):
        record = replace(CALL, request_id=f"r-{number}")
        ticks.valkey().xadd(USAGE_STREAM, encode_usage(record))  # type: ignore[arg-type]
    tasks.take_usage_in()
    tasks.take_usage_in()
    ((_, how),) = ingests(sent)
    tasks.follow_up(*cast(tuple[str], how["args"]))
    assert len(ingests(sent)) == 1  # nothing is left to follow
    assert UsageRecord.objects.count() == 2 * usage.BATCH + 1


@pytest.mark.usefixtures("valkey")
def test_a_follow_up_asks_for_the_next(sent: Sent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "ingest", lambda: usage.Ingested(100, is_more=True))
    for _ in range(3):
        tasks.follow_up("ss:tick:ingest")
    assert len(ingests(sent)) == 3
