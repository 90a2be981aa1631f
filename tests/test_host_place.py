"""Two workers that take themselves for one host: the first acts, the other waits for its end."""

import os
import pwd
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from lanes import clock, host_place, host_reports, installation, processes, tasks
from lanes.models import HostReport, Lane, LaneEvent, Runtime
from lanes.stopping import mark_ended
from tests import builders, fleet

pytest_plugins = ["tests.fleet_fixtures"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.process]
Elsewhere = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def lane(fleet_settings: Settings, transactional_db: None) -> Lane:
    """A lane whose server is ready and known."""
    lane = builders.lane()
    tasks.look_host("test-host")
    fleet.make_ready(lane, fleet.preset())
    tasks.look_host("test-host")
    return lane


@pytest.fixture(params=["another folder", "a copy of the folder"])
def elsewhere(request: pytest.FixtureRequest, settings: Settings) -> Elsewhere:
    """What happens within it happens at the second worker."""

    @contextmanager
    def there() -> Iterator[None]:
        folder: Path = settings.SLOTSERVE_DATA
        if request.param == "another folder":
            settings.SLOTSERVE_DATA = folder / "other"
        else:
            copy = folder.with_name(f"{folder.name}-copy")
            settings.SLOTSERVE_DATA = shutil.copytree(folder, copy)
            installation.settle(copy)
        yield
        settings.SLOTSERVE_DATA = folder

    return there


def silence() -> None:
    """The worker that was the host has not looked for a minute."""
    report = HostReport.objects.get()
    report.at -= timedelta(seconds=60)
    report.save()


def test_the_second_touches_nothing_and_says_so(lane: Lane, elsewhere: Elsewhere) -> None:
    before = Runtime.objects.get(lane=lane)
    with elsewhere():
        for _ in range(2):
            tasks.look_host("test-host")
            tasks.look(lane.pk, "ss:tick:look:test")
            assert not host_place.hold()
            host_place.say_waiting()
    assert LaneEvent.objects.filter(sentence__startswith="a second worker").count() == 1
    tasks.look_host("test-host")
    after = Runtime.objects.get(lane=lane)
    assert (after.pid, after.phase, after.ended_at) == (before.pid, "ready", None)


def test_the_second_takes_over_when_the_first_is_gone(lane: Lane, elsewhere: Elsewhere) -> None:
    silence()
    with elsewhere():
        tasks.look_host("test-host")
        assert HostReport.objects.get().machine == host_reports.place()
    tasks.look_host("test-host")
    assert HostReport.objects.get().machine != host_reports.place()


def test_what_is_stopped_elsewhere_is_nothing_of_the_first(
    lane: Lane, elsewhere: Elsewhere
) -> None:
    with elsewhere():
        told = mark_ended()
    assert told.startswith("the host is ")
    assert Runtime.objects.get(lane=lane).ended_at is None


def test_nor_when_the_first_is_silent(lane: Lane, settings: Settings) -> None:
    silence()
    settings.SLOTSERVE_DATA, first = settings.SLOTSERVE_DATA / "other", settings.SLOTSERVE_DATA
    mark_ended()
    settings.SLOTSERVE_DATA = first
    assert Runtime.objects.get(lane=lane).ended_at is None


def test_a_machine_that_was_restarted_or_renamed_is_the_host_still(
    lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "renamed")
    monkeypatch.setattr(processes, "boot_id", lambda: "another")
    assert host_place.hold()
    host_place.say_waiting()
    assert host_place.other_machine(lane.host) == ""
    assert not LaneEvent.objects.filter(sentence__startswith="a second worker").exists()


def test_of_two_without_a_mark_before_them_one_is_the_host(
    lane: Lane, elsewhere: Elsewhere
) -> None:
    HostReport.objects.update(machine="gpu1")
    assert host_place.hold()
    with elsewhere():
        assert not host_place.hold()


@pytest.mark.usefixtures("valkey")
def test_the_second_is_told_before_its_worker_starts(lane: Lane, elsewhere: Elsewhere) -> None:
    with elsewhere(), pytest.raises(CommandError, match="is the host test-host already"):
        call_command("check_host")


def test_a_report_of_an_earlier_release_keeps_nobody_out(lane: Lane) -> None:
    HostReport.objects.update(machine="gpu1")
    HostReport.objects.update(at=HostReport.objects.get().at - timedelta(seconds=6))
    tasks.look(lane.pk, "ss:tick:look:test")
    assert Runtime.objects.get(lane=lane).ended_at is None


@pytest.mark.usefixtures("lane")
def test_a_worker_whose_user_has_no_name_reports_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unknown(number: int) -> None:
        raise KeyError(number)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    report = host_reports.measure(clock.database_now(), 0.0)
    assert report["servers_run_as"] == str(os.geteuid())
