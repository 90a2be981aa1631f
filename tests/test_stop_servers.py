"""`manage.py stop_servers`, and being woken by a server's end."""

import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DatabaseError
from pytest_django import Settings

from lanes import clock, records, stopping, ticks, worker_lock
from lanes.models import Lane, Runtime
from tests import builders, fleet

pytest_plugins = ["tests.fleet_fixtures"]
pytestmark = [pytest.mark.process, pytest.mark.django_db]


@pytest.fixture
def lane(fleet_settings: Settings, db: None) -> Lane:
    return builders.lane()


def stop_servers() -> list[str]:
    """Its lines."""
    output = StringIO()
    call_command("stop_servers", stdout=output)
    return output.getvalue().splitlines()


def test_every_server_ends_with_a_line_and_is_reported(lane: Lane) -> None:
    other = builders.lane()
    pids = [fleet.make_ready(each, fleet.preset()).pid for each in (lane, other)]
    lines = stop_servers()
    assert sorted(lines) == sorted(
        f"lane {each.pk}: model server ended: pid {pid}"
        for each, pid in zip((lane, other), pids, strict=True)
    )
    assert set(Runtime.objects.values_list("phase", flat=True)) == {"stopped"}


def test_while_a_worker_of_this_host_lives_nothing_is_ended(lane: Lane) -> None:
    server = fleet.make_ready(lane, fleet.preset())
    held = worker_lock.take()
    words = rf"\(process {os.getpid()}\) lives and would start them again"
    with pytest.raises(CommandError, match=words):
        stop_servers()
    assert server.pid in fleet.processes_of(records.installation_id())
    os.close(held)
    assert len(stop_servers()) == 1


@pytest.mark.parametrize("kind", ["deaf", "forks"])
def test_bad_citizens_end_within_the_stop_timeout(lane: Lane, kind: str) -> None:
    fleet.make_ready(lane, fleet.preset(kind))
    assert len(stop_servers()) == 1
    assert not fleet.processes_of(records.installation_id())


def test_a_server_without_a_record_ends_too(lane: Lane) -> None:
    fleet.make_ready(lane, fleet.preset())
    records.record_path(lane.pk).unlink()
    records.lock_path(lane.pk).unlink()
    assert len(stop_servers()) == 1


def test_only_what_has_ended_on_this_host_is_reported_so(lane: Lane) -> None:
    living = fleet.make_ready(lane, fleet.preset())
    elsewhere = builders.lane(host=builders.host("other-host"))
    Runtime.objects.filter(pk=living.pk).update(lane=elsewhere)
    stopping.mark_ended()
    Runtime.objects.update(lane=lane)
    stopping.mark_ended()
    assert Runtime.objects.get().ended_at is None
    list(stopping.stop_all(1.0))
    stopping.mark_ended()
    assert Runtime.objects.get().ended_at is not None


def test_with_nothing_to_end_it_says_nothing(lane: Lane) -> None:
    assert stop_servers() == []


def test_another_installations_servers_are_left_alone(
    lane: Lane, settings: Settings, tmp_path: Path
) -> None:
    kept = fleet.make_ready(lane, fleet.preset())
    settings.SLOTSERVE_DATA = tmp_path / "another"
    assert stop_servers() == []
    settings.SLOTSERVE_DATA = tmp_path
    assert fleet.servers(lane.pk) == [kept.pid]


def test_it_works_without_a_database(lane: Lane, tmp_path: Path) -> None:
    fleet.make_ready(lane, fleet.preset())
    environment = {
        **os.environ,
        "SLOTSERVE_DATA": str(tmp_path),
        "DATABASE_URL": f"sqlite:///{tmp_path}/no/such/folder/x.sqlite3",
    }
    done = subprocess.run(
        [sys.executable, "manage.py", "stop_servers"],
        cwd=fleet.SERVERS.parent.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "model server ended" in done.stdout
    assert "the database could not be told" in done.stderr


def test_a_failing_database_is_said(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise DatabaseError("gone")

    monkeypatch.setattr(clock, "database_now", fail)
    assert stopping.mark_ended() == "the database could not be told: gone"


def test_the_end_of_a_server_asks_for_a_look(lane: Lane, asked: list[tuple[int, str]]) -> None:
    server = fleet.make_ready(lane, fleet.preset())
    asked.clear()
    assert server.pid is not None
    fleet.kill(server.pid)
    fleet.until(lambda: (lane.pk, "test-host") in asked)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """Looks that were asked for at once."""
    found: list[tuple[int, str]] = []

    def request(lane_pk: int, host_key: str, delay: float = 0.0) -> None:
        if not delay:
            found.append((lane_pk, host_key))

    monkeypatch.setattr(ticks, "request_look", request)
    return found


def test_the_installations_name_is_made_once(settings: Settings, tmp_path: Path) -> None:
    settings.SLOTSERVE_DATA = tmp_path / "new"
    name = records.installation_id()
    assert records.installation_id() == name
    kept = {path.name for path in (tmp_path / "new").iterdir()}
    assert kept == {"installation-home", "installation-id"}


@pytest.mark.parametrize("text", ["", "{", "[]", json.dumps({"pid": 1})])
def test_what_is_no_record_is_none(settings: Settings, tmp_path: Path, text: str) -> None:
    settings.SLOTSERVE_DATA = tmp_path
    records.record_path(3).write_text(text)
    assert records.read_record(3) is None
    assert records.recorded_lanes() == [3]
