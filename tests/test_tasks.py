"""The beat and the plan out of turn: every step is taken, though another fails."""

from collections.abc import Iterator
from typing import cast

import pytest
from celery import current_app

from gateway import tasks
from gateway.models import UsageRecord
from lanes import ticks
from lanes.models import Order
from tests import builders
from tests.conftest import ValkeyServer
from tests.test_usage import CALL
from wire.edges import TABLE_HEAD, USAGE_STREAM
from wire.usage import encode_usage

pytestmark = pytest.mark.django_db
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
def test_a_beat_carries_an_expiry_with_each_look(sent: Sent, settings: object) -> None:
    builders.host("a")
    tasks.beat()
    ((_, how),) = looks(sent)
    assert how["args"] == ("a",)
    assert how["expires"] == settings.SLOTSERVE_TICK_SECONDS  # type: ignore[attr-defined]


@pytest.mark.usefixtures("valkey")
def test_looks_do_not_pile_up_for_a_host_whose_worker_is_down(sent: Sent) -> None:
    builders.host("down")
    builders.host("up")
    ticks.valkey().rpush("host.down", *["message"] * tasks.MOST_WAITING_LOOKS)
    tasks.look_at_hosts()
    assert [how["queue"] for _, how in looks(sent)] == ["host.up"]


@pytest.mark.parametrize("broken", ["plan_lanes", "publish", "look_at_hosts", "ingest"])
@pytest.mark.usefixtures("sent", "valkey")
def test_a_step_that_fails_keeps_no_other_from_being_taken(
    broken: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    taken: list[str] = []

    def replace(name: str) -> None:
        def step() -> None:
            taken.append(name)
            if name == broken:
                raise RuntimeError("broken")

        step.__name__ = name
        monkeypatch.setattr(tasks, name, step)

    for name in ("plan_lanes", "publish", "look_at_hosts", "ingest"):
        replace(name)
    tasks.beat()
    assert taken == ["plan_lanes", "publish", "look_at_hosts", "ingest"]
    assert f"step failed step={broken}" in caplog.text


@pytest.mark.usefixtures("valkey")
def test_a_plan_clears_its_request_before_it_reads(
    monkeypatch: pytest.MonkeyPatch, sent: Sent
) -> None:
    ticks.request_plan()
    ticks.request_plan()
    ((_, how),) = sent  # the second found the first still waiting
    (key,) = cast(tuple[str], how["args"])
    held: list[object] = []
    monkeypatch.setattr(tasks, "plan_lanes", lambda: held.append(ticks.valkey().get(key)))
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
