"""Hosts that vanish and come back: marked, told once, published; and what they report."""

import logging
from datetime import timedelta

import pynvml
import pytest
from django.contrib.auth.models import User

from bookings.models import Booking
from gateway import publish, tasks
from gateway.edge.table import LaneRoute, decode_lane
from lanes import clock, host_reports, host_services, host_watch, supervisor
from lanes.models import Driver, Host, HostReport, Lane, LaneEvent
from lanes.refusals import Refusal
from lanes.version import code_version
from tests import builders
from tests.conftest import Moment
from tests.nvml.driver import FakeDriver

pytest_plugins = ["tests.fleet_fixtures", "tests.nvml.fixtures"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def lane() -> Lane:
    return builders.lane("demo")


@pytest.fixture
def host(lane: Lane) -> Host:
    return lane.host


def pass_seconds(moment: Moment, seconds: float) -> None:
    moment.now += timedelta(seconds=seconds)


def watch(host: Host) -> Host:
    """One beat, of which the host may hear."""
    host_watch.watch_hosts()
    host_watch.note_asked(Host.objects.all(), clock.database_now())
    host.refresh_from_db()
    return host


def looked(host: Host, moment: Moment) -> None:
    Host.objects.filter(pk=host.pk).update(seen_at=moment.now)


def part(lane: Lane, moment: Moment) -> LaneRoute:
    return decode_lane(publish.encode_facts(moment.now).parts[f"lane:{lane.slug}"])


def vanish(host: Host, moment: Moment) -> None:
    """It looked once, and then no more for half a minute of beats."""
    looked(host, moment)
    for _ in range(10):
        watch(host)
        pass_seconds(moment, 3)
    watch(host)


def test_a_host_that_vanishes_is_marked_and_published(
    host: Host, lane: Lane, moment: Moment
) -> None:
    last = moment.now
    vanish(host, moment)
    assert host.unreachable_since == last
    assert part(lane, moment).unreachable


def test_a_host_that_is_back_is_marked_so_at_once(host: Host, lane: Lane, moment: Moment) -> None:
    vanish(host, moment)
    looked(host, moment)
    assert watch(host).unreachable_since is None
    assert not part(lane, moment).unreachable


def steady(host: Host, moment: Moment, seconds: float) -> None:
    """It looks with each beat for so long."""
    until = moment.now + timedelta(seconds=seconds)
    while moment.now < until:
        looked(host, moment)
        watch(host)
        pass_seconds(moment, 10)
    looked(host, moment)
    watch(host)


def test_a_host_that_vanishes_and_its_return_are_said_once_of_its_lanes(
    host: Host, moment: Moment, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "lanes.host_watch")
    vanish(host, moment)
    watch(host)
    steady(host, moment, 130)
    watch(host)
    kinds = list(LaneEvent.objects.order_by("pk").values_list("kind", flat=True))
    assert kinds == ["unreachable", "reachable"]
    told = [record.getMessage() for record in caplog.records if record.name == "lanes.host_watch"]
    assert len(told) == 2
    assert (host.alarms, host.alarm_times) == ([], {})


def test_a_host_that_comes_and_goes_is_one_alarm(host: Host, moment: Moment) -> None:
    vanish(host, moment)
    for _ in range(5):
        steady(host, moment, 60)
        assert host.alarms == ["unreachable"]
        vanish(host, moment)
    assert LaneEvent.objects.count() == 1


def report(host: Host, moment: Moment, **columns: object) -> None:
    """It says how it is."""
    said = {**host_reports.measure(moment.now, 0.0), "is_user_shared": False, **columns}
    HostReport.objects.update_or_create(host=host, defaults=said)
    looked(host, moment)
    watch(host)


@pytest.mark.usefixtures("no_driver")
def test_what_was_well_when_a_host_vanished_is_not_taken_for_well(
    host: Host, moment: Moment
) -> None:
    report(host, moment, clock_skew=3.0)
    report(host, moment, clock_skew=0.0)
    assert host.alarm_times["clock_skew"]["well_since"]
    vanish(host, moment)
    pass_seconds(moment, 3600)
    watch(host)
    assert host.alarms == ["clock_skew", "unreachable"]
    steady(host, moment, 590)
    assert host.alarms == ["clock_skew"]
    steady(host, moment, 20)
    assert host.alarms == []


def test_an_alarm_of_the_release_before_goes_on(host: Host, moment: Moment) -> None:
    vanish(host, moment)
    Host.objects.update(alarm_times={})
    watch(host)
    assert set(host.alarm_times) == {"unreachable"}


def test_a_beat_that_was_away_makes_no_host_unreachable(host: Host, moment: Moment) -> None:
    looked(host, moment)
    watch(host)
    pass_seconds(moment, 3600)
    assert watch(host).unreachable_since is None
    pass_seconds(moment, 3)
    looked(host, moment)
    assert watch(host).unreachable_since is None
    assert not LaneEvent.objects.exists()


def test_a_host_that_never_came_is_pointed_out(host: Host, moment: Moment) -> None:
    for _ in range(5):
        watch(host)
        pass_seconds(moment, 3)
    assert host.unreachable_since is not None
    assert host.alarms == ["never_seen"]


def test_a_host_that_is_there_costs_a_beat_no_write(
    host: Host, moment: Moment, django_assert_num_queries: object
) -> None:
    looked(host, moment)
    with django_assert_num_queries(1):  # type: ignore[operator]  # the hosts
        host_watch.watch_hosts()
    hosts = list(Host.objects.all())
    with django_assert_num_queries(0):  # type: ignore[operator]
        host_watch.note_asked(hosts, moment.now)


def test_hosts_that_could_not_be_asked_are_not_noted_as_asked(host: Host) -> None:
    tasks.look_at_hosts()  # there is no Valkey
    host.refresh_from_db()
    assert host.asked_at is None


@pytest.mark.usefixtures("fleet_settings", "no_driver")
def test_a_host_reports_with_its_looks_a_quarter_of_its_silence_apart(
    host: Host, moment: Moment
) -> None:
    supervisor.look_host("test-host")
    first = HostReport.objects.get(host=host)
    assert first.at == moment.now
    assert first.version == code_version()
    assert 0 < first.disk_free_bytes <= first.disk_total_bytes
    assert first.driver == Driver.NONE
    pass_seconds(moment, 4)
    supervisor.look_host("test-host")
    assert HostReport.objects.get(host=host).at == first.at
    pass_seconds(moment, 2)
    supervisor.look_host("test-host")
    assert HostReport.objects.get(host=host).at == moment.now


def test_the_clock_s_skew_is_against_the_database_s(monkeypatch: pytest.MonkeyPatch) -> None:
    now = clock.database_now()
    monkeypatch.setattr(clock, "database_now", lambda: now - timedelta(seconds=5))
    _, skew = host_reports.read_clocks()
    assert 5 <= skew < 15


@pytest.mark.usefixtures("no_driver")
def test_a_machine_without_a_driver_is_told_so() -> None:
    assert host_reports.driver_state()[0] == Driver.NONE


def test_a_driver_that_fails_is_told_from_none(driver: FakeDriver) -> None:
    assert host_reports.driver_state() == (Driver.WELL, "driver 560.35.03, 1 card")
    driver.write(init=pynvml.NVML_ERROR_UNKNOWN)
    state, words = host_reports.driver_state()
    assert state == Driver.FAILING
    assert words


@pytest.fixture
def administrator() -> User:
    return builders.administrator()


@pytest.mark.parametrize("address", ["10.0.0.5", "127.0.0.1", "fd00::5", "::1"])
def test_an_address_of_one_machine_is_taken(host: Host, administrator: User, address: str) -> None:
    assert host_services.save_host(host, actor=administrator, address=address) == host
    host.refresh_from_db()
    assert host.address == address


@pytest.mark.parametrize(
    "address", ["0.0.0.0", "::", "224.0.0.1", "255.255.255.255", "gpu1.local", "fe80::1%eth0", "x"]
)
def test_an_address_that_is_not_one_machine_s_is_refused(
    host: Host, administrator: User, address: str
) -> None:
    refusal = host_services.save_host(host, actor=administrator, address=address)
    assert isinstance(refusal, Refusal)
    assert refusal.code == "invalid"
    host.refresh_from_db()
    assert host.address == "127.0.0.1"


def test_members_change_no_host(host: Host) -> None:
    refusal = host_services.save_host(host, actor=builders.person("member"), name="mine")
    assert isinstance(refusal, Refusal)
    assert refusal.code == "not_administrator"


def test_an_unreachable_host_changes_no_booking(host: Host, lane: Lane, moment: Moment) -> None:
    booking = builders.booking(lane=lane)
    vanish(host, moment)
    assert Booking.objects.get() == booking
    assert part(lane, moment).grants[0].booking_id == booking.pk
