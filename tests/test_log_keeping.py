"""Which logs a host keeps, and that starting servers keeps them in order."""

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from lanes import supervisor
from lanes.log_keeping import superseded, tidy, tidy_all
from lanes.logs import read_tail
from lanes.models import Host, Lane, Runtime
from tests import builders, fleet, log_world

pytest_plugins = ["tests.fleet_fixtures"]


@pytest.fixture
def lane(settings: Settings, tmp_path: Path, db: None) -> Lane:
    settings.SLOTSERVE_DATA = tmp_path
    settings.SLOTSERVE_LOG_RUNS = 2
    return builders.lane("demo")


def logged(lane: Lane) -> list[str]:
    """Runs of which a log is there, with its words."""
    runs = lane.runtimes.order_by("pk")
    return [text for run in runs if (text := read_tail(run.log_path))]


def test_the_logs_of_the_newest_runs_are_kept(lane: Lane) -> None:
    other = log_world.ended(builders.lane())
    for run in (other, *(log_world.ended(lane) for _ in range(4))):
        log_world.write(run, f"of {run.pk}".encode())
    tidy(lane.pk)
    newest = lane.runtimes.order_by("pk").values_list("pk", flat=True)[2:]
    assert logged(lane) == [f"of {pk}" for pk in newest]
    assert logged(other.lane) == [f"of {other.pk}"]


def test_after_a_restored_backup_the_living_run_keeps_its_log(lane: Lane) -> None:
    run = log_world.run(lane)
    log_world.write(run, b"alive")
    stray = Path(run.log_path).with_name(str(run.pk + 1000))
    stray.mkdir()
    tidy(lane.pk)
    assert logged(lane) == ["alive"]
    assert not stray.exists()


def test_what_is_no_log_is_left_alone(lane: Lane, tmp_path: Path) -> None:
    tidy_all()  # there is no folder yet
    log_world.write(log_world.ended(lane), b"x")
    for name in ("valkey.log", "lane-x", f"lane-{lane.pk}/notes"):
        (tmp_path / "logs" / name).mkdir()
    tidy_all()
    assert len(list((tmp_path / "logs").rglob("*"))) == 6


def test_the_logs_of_a_lane_that_is_no_more_go(lane: Lane, tmp_path: Path) -> None:
    run = log_world.ended(lane)
    log_world.write(run, b"x")
    (tmp_path / "logs" / f"lane-{lane.pk + 1}.log.2").write_text("of a release before")
    tidy_all()
    assert logged(lane) == ["x"]
    Runtime.objects.all().delete()
    lane.delete()
    tidy_all()
    assert list((tmp_path / "logs").iterdir()) == []


def test_a_server_of_the_release_before_keeps_its_log_until_its_runs_are_old(
    lane: Lane, tmp_path: Path
) -> None:
    old = log_world.run(lane)
    Runtime.objects.update(log_path=str(tmp_path / "logs" / f"lane-{lane.pk}.log"))
    old.refresh_from_db()
    (tmp_path / "logs").mkdir()
    for end in ("", ".1"):
        Path(f"{old.log_path}{end}").write_text("words")
    tidy(lane.pk)
    assert logged(lane) == ["words"]
    Runtime.objects.update(ended_at=old.started_at)
    for _ in range(2):
        log_world.ended(lane)
    tidy(lane.pk)
    assert list((tmp_path / "logs").iterdir()) == []


def test_a_log_that_cannot_be_removed_stops_nothing(
    lane: Lane, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        log_world.write(log_world.ended(lane), b"x")

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(shutil, "rmtree", refuse)
    tidy(lane.pk)
    assert "old log not removed" in caplog.text


def test_a_host_tidies_once_a_minute(lane: Lane, settings: Settings) -> None:
    settings.SLOTSERVE_HOST_KEY = lane.host.key
    for _ in range(3):
        log_world.write(log_world.ended(lane), b"x")
    supervisor.look_host(lane.host.key)
    assert len(logged(lane)) == 2
    assert Host.objects.get().seen_at is not None


@given(st.sets(st.integers(0, 50)), st.sets(st.integers(0, 50)))
def test_of_the_runs_folders_all_but_the_kept_go(found: set[int], kept: set[int]) -> None:
    gone = superseded([*map(str, found), "notes", "7.x"], kept)
    assert set(map(int, gone)) == found - kept


@pytest.mark.process
@pytest.mark.django_db(transaction=True)
def test_each_run_of_a_real_server_has_its_own_log(fleet_settings: Settings) -> None:
    fleet_settings.SLOTSERVE_LOG_RUNS = 2
    lane = builders.lane()
    preset = fleet.preset()
    for _ in range(3):
        fleet.make_ready(lane, preset)
        fleet.order(lane, None)
        fleet.look_until(lane, fleet.is_phase(lane, "stopped"))
    paths = [Path(run.log_path) for run in lane.runtimes.order_by("pk")]
    assert [path.name for path in paths] == [str(run.pk) for run in lane.runtimes.order_by("pk")]
    assert [path.is_dir() for path in paths] == [False, True, True]
