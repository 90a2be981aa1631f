"""What a server is started with, on which port, and as whom."""

import os
import pwd
import shutil
from datetime import timedelta

import pytest
from django.db import IntegrityError, connection
from pytest_django import Settings

from lanes import clock, ports, reporting, starting, supervisor
from lanes.failures.causes import Cause
from lanes.models import Lane, LaneEvent, Order, PresetFailure, Runtime
from lanes.seeing import see
from lanes.steps import Start
from tests import builders, fleet

pytest_plugins = ["tests.fleet_fixtures"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def lane(fleet_settings: Settings, db: None) -> Lane:
    fleet_settings.SLOTSERVE_PORT_FIRST, fleet_settings.SLOTSERVE_PORT_LAST = 21300, 21302
    return builders.lane()


def runtime(lane: Lane, port: int, *, ended_minutes_ago: float | None = None) -> Runtime:
    """A runtime that is alive, or ended so long ago."""
    now = clock.database_now()
    revision = fleet.preset().current
    assert revision is not None
    ended = None if ended_minutes_ago is None else now - timedelta(minutes=ended_minutes_ago)
    return Runtime.objects.create(
        lane=lane,
        revision=revision,
        generation=1,
        phase_since=now,
        started_at=now,
        ended_at=ended,
        address="127.0.0.1",
        port=port,
        sealed_key="",
    )


def free_port(lane: Lane) -> int | None:
    return ports.free_port(lane.host, clock.database_now())


def test_a_living_servers_port_is_taken(lane: Lane) -> None:
    runtime(lane, 21300)
    assert free_port(lane) == 21301


@pytest.mark.parametrize(("minutes", "port"), [(9.9, 21301), (10.1, 21300)])
def test_a_used_port_rests_ten_minutes(lane: Lane, minutes: float, port: int) -> None:
    runtime(lane, 21300, ended_minutes_ago=minutes)
    assert free_port(lane) == port


def test_when_all_rest_the_longest_rested_is_taken(lane: Lane) -> None:
    for port, minutes in ((21300, 1), (21301, 3), (21302, 2)):
        runtime(lane, port, ended_minutes_ago=minutes)
    assert free_port(lane) == 21301


def test_another_hosts_ports_are_its_own(lane: Lane) -> None:
    runtime(builders.lane(host=builders.host("other")), 21300)
    assert free_port(lane) == 21300


def test_a_port_that_somebody_listens_on_is_passed_over(
    lane: Lane, settings: Settings, foreign_server: int
) -> None:
    settings.SLOTSERVE_PORT_FIRST = settings.SLOTSERVE_PORT_LAST = foreign_server
    assert free_port(lane) is None


def environment(lane: Lane) -> dict[str, str]:
    """What a server of this lane would find in its environment."""
    told = starting.shim_order(lane, runtime(lane, 21300), "the-key")["environment"]
    assert isinstance(told, dict)
    return told


def test_the_environment_is_an_allow_list(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLOTSERVE_SECRET_KEY", "secret")
    monkeypatch.setenv("DATABASE_URL", "postgres://secret")
    names = set(environment(lane)) - set(starting.PASSED_ON)
    tests_own = {"TEST_ADDRESS", "TEST_PORT", "TEST_API_KEY", "TEST_STARTS", "PYTHONPATH"}
    marks = {"SLOTSERVE_INSTALLATION", "SLOTSERVE_LANE", "CUDA_VISIBLE_DEVICES"}
    assert names == tests_own | marks


def test_gpus_are_named_by_uuid_and_a_cpu_lane_sees_none(lane: Lane) -> None:
    assert environment(lane)["CUDA_VISIBLE_DEVICES"] == ""
    Runtime.objects.update(ended_at=clock.database_now())
    cards = [builders.gpu(), builders.gpu()]
    lane.gpus.set(cards)
    assert set(environment(lane)["CUDA_VISIBLE_DEVICES"].split(",")) == {c.uuid for c in cards}


@pytest.mark.process
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may change the user")
def test_servers_run_as_the_configured_user(lane: Lane, settings: Settings) -> None:
    settings.SLOTSERVE_RUN_AS = "nobody"
    entry = pwd.getpwnam("nobody")
    told = starting.shim_order(lane, runtime(lane, 21300), "the-key")
    run_as, names = told["run_as"], told["environment"]
    assert isinstance(run_as, dict)
    assert isinstance(names, dict)
    assert (run_as["user"], run_as["group"]) == (entry.pw_uid, entry.pw_gid)
    assert names["HOME"] == entry.pw_dir


@pytest.mark.django_db(transaction=True)
def test_no_program_is_looked_for_while_planner_and_reports_wait(
    lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = fleet.order(lane, builders.preset(engine="command", arguments=["serve", "${PORT}"]))
    which, held = shutil.which, []

    def look_for(name: str) -> str | None:
        held.append(connection.in_atomic_block)
        return which(name)

    monkeypatch.setattr(shutil, "which", look_for)
    started = starting.start(lane, Start(made.generation, made.target_id or 0))
    assert isinstance(started, Cause)
    assert held
    assert not any(held)


@pytest.fixture
def no_user(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """SLOTSERVE_RUN_AS names somebody whom this machine does not have."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    settings.SLOTSERVE_RUN_AS = "nobody-of-that-name"


@pytest.mark.process
@pytest.mark.usefixtures("no_user")
def test_a_user_that_is_missing_is_a_failure_that_backs_off_and_is_told(lane: Lane) -> None:
    fleet.order(lane, fleet.preset())
    for _ in range(3):
        supervisor.look(lane.pk)
    assert not Runtime.objects.exists()
    failure = PresetFailure.objects.get(lane=lane)
    assert (failure.count, failure.failure_kind) == (1, "program")
    assert "SLOTSERVE_RUN_AS" in failure.failure_advice
    assert failure.reason in LaneEvent.objects.get(lane=lane, kind="blocked").sentence


@pytest.mark.usefixtures("no_user")
def test_a_user_that_goes_missing_is_said_with_words(lane: Lane) -> None:
    with pytest.raises(OSError, match="nobody-of-that-name is not a user of this machine"):
        environment(lane)


def test_an_order_that_has_changed_starts_nothing(lane: Lane) -> None:
    made = fleet.order(lane, fleet.preset())
    step = Start(made.generation - 1, made.target_id or 0)
    assert starting.start(lane, step) is None
    assert not Runtime.objects.exists()


def test_a_lane_that_has_a_server_starts_no_other(lane: Lane) -> None:
    made = fleet.order(lane, fleet.preset())
    runtime(lane, 21300)
    assert starting.start(lane, Start(made.generation, made.target_id or 0)) is None
    assert Runtime.objects.count() == 1


def test_the_database_forbids_a_second_server(lane: Lane) -> None:
    runtime(lane, 21300)
    with pytest.raises(IntegrityError):
        runtime(lane, 21301)


def test_a_report_never_resurrects_a_runtime_that_has_ended(lane: Lane) -> None:
    fleet.order(lane, fleet.preset())
    alive = runtime(lane, 21300)
    sight = see(lane)
    assert sight is not None
    Runtime.objects.update(ended_at=sight.now, phase="stopped")
    assert not reporting.report(sight, alive, phase="ready")
    assert Runtime.objects.get().phase == "stopped"


@pytest.mark.parametrize("since", [{"phase": "stopping"}, {"generation": 2}, {"signals_sent": 1}])
def test_a_report_is_written_only_over_what_was_seen(lane: Lane, since: dict[str, object]) -> None:
    fleet.order(lane, fleet.preset())
    alive = runtime(lane, 21300)
    sight = see(lane)
    assert sight is not None
    Runtime.objects.update(**since)
    assert not reporting.report(sight, alive, phase="ready")
    assert Runtime.objects.get().phase == since.get("phase", "starting")


def test_a_stop_is_not_begun_when_the_order_has_changed_meanwhile(lane: Lane) -> None:
    fleet.order(lane, fleet.preset())
    alive = runtime(lane, 21300)
    sight = see(lane)
    assert sight is not None
    Order.objects.update(generation=99)
    assert not reporting.report_stopping(sight, alive, None)
    assert Runtime.objects.get().phase == "starting"
