"""A host's look passes over lanes at rest: few queries for all of them, and nothing is missed."""

import os
import signal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from lanes import clock, records, seeing, supervisor, watch
from lanes.models import Lane, PresetFailure, Runtime
from tests import builders, fleet

pytest_plugins = ["tests.fleet_fixtures"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.process]


@pytest.fixture
def lane(fleet_settings: Settings, transactional_db: None) -> Lane:
    return builders.lane()


def queries_of_a_look() -> int:
    with CaptureQueriesContext(connection) as queries:
        supervisor.look_host("test-host")
    return len(queries)


def test_each_further_lane_at_rest_costs_no_query(lane: Lane) -> None:
    fleet.make_ready(lane, fleet.preset())
    supervisor.look_host("test-host")
    with_one = queries_of_a_look()
    for _ in range(3):
        fleet.make_ready(builders.lane(), fleet.preset())
    supervisor.look_host("test-host")
    assert queries_of_a_look() == with_one


def test_another_order_is_carried_out_by_the_look_of_the_host(lane: Lane) -> None:
    fleet.make_ready(lane, fleet.preset())
    supervisor.look_host("test-host")
    fleet.order(lane, fleet.preset())
    supervisor.look_host("test-host")
    assert Runtime.objects.get(lane=lane, ended_at=None).phase == "stopping"


def test_a_server_that_ended_is_found_by_the_look_of_the_host(lane: Lane) -> None:
    runtime = fleet.make_ready(lane, fleet.preset())
    assert runtime.pid is not None
    os.kill(runtime.pid, signal.SIGKILL)

    def is_told() -> bool:
        supervisor.look_host("test-host")
        return not Runtime.objects.filter(pk=runtime.pk, ended_at=None).exists()

    fleet.until(is_told)


def test_a_server_that_another_worker_began_is_watched(lane: Lane) -> None:
    fleet.make_ready(lane, fleet.preset())
    record = records.read_record(lane.pk)
    assert record is not None
    watch._state.by_pid.pop(record.shim_pid, None)  # as in a worker that has just begun
    supervisor.look_host("test-host")
    assert watch.is_watched(record.shim_pid)


def test_failures_of_other_revisions_are_not_read(lane: Lane) -> None:
    fleet.make_ready(lane, fleet.preset())
    now = clock.database_now()
    for _ in range(3):
        revision = fleet.preset().current
        assert revision is not None
        PresetFailure.objects.create(lane=lane, revision=revision, count=2, failed_at=now)
    runtime = Runtime.objects.get()
    PresetFailure.objects.create(lane=lane, revision=runtime.revision, last_exit_at=now)
    (glanced_at,) = seeing.lanes_to_glance_at(lane.host)
    sights = [seeing.see(lane), seeing.glance(glanced_at, now)]
    assert len(glanced_at.alive_failures) == 1  # type: ignore[attr-defined]
    for sight in sights:
        assert sight is not None
        assert [each.last_exit_at for each in sight.seen.failures] == [now]
