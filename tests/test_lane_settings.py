"""System checks of hosts' settings, and the log that people read."""

import sys
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.checks.registry import registry
from pytest_django import Settings

from lanes import checks, log_reading
from lanes.models import Lane, Runtime
from tests import builders


@pytest.mark.parametrize("named", ["/nowhere/llama-server", __file__, "no-such-program"])
def test_a_llama_server_that_is_no_program_is_an_error(settings: Settings, named: str) -> None:
    settings.SLOTSERVE_LLAMA_SERVER = named
    assert [error.id for error in checks.check_llama_server(None)] == ["slotserve.E011"]


@pytest.mark.parametrize("named", ["", sys.executable, "sh"])
def test_a_program_or_none_is_fine(settings: Settings, named: str) -> None:
    settings.SLOTSERVE_LLAMA_SERVER = named
    assert checks.check_llama_server(None) == []


@pytest.mark.parametrize(
    ("first", "last", "found"),
    [
        (2000, 1999, ["slotserve.E012"]),
        (65000, 65536, ["slotserve.E012"]),
        (2000, 2000, []),
        (2000, 65535, []),
    ],
)
def test_the_range_of_ports_must_have_ports(
    settings: Settings, first: int, last: int, found: list[str]
) -> None:
    settings.SLOTSERVE_PORT_FIRST, settings.SLOTSERVE_PORT_LAST = first, last
    assert [error.id for error in checks.check_port_range(None)] == found


@pytest.mark.parametrize(
    ("named", "found"), [("", []), ("nobody", []), ("no such user", ["slotserve.E013"])]
)
def test_servers_run_as_a_user_that_exists(
    settings: Settings, named: str, found: list[str]
) -> None:
    settings.SLOTSERVE_RUN_AS = named
    assert [error.id for error in checks.check_run_as(None)] == found


def test_the_checks_run_with_all_others() -> None:
    ours = {
        checks.check_llama_server,
        checks.check_port_range,
        checks.check_margins,
        checks.check_run_as,
    }
    assert ours <= set(registry.get_checks())


def ran(lane: Lane, log: Path, minute: int = 0) -> Runtime:
    """A server that ran on the lane and is gone."""
    moment = builders.at(minute)
    revision = builders.preset().current
    assert revision is not None
    return Runtime.objects.create(
        lane=lane,
        revision=revision,
        generation=minute + 1,
        phase_since=moment,
        started_at=moment,
        ended_at=moment + timedelta(seconds=1),
        address="127.0.0.1",
        port=18100,
        sealed_key="-",
        log_path=str(log),
    )


@pytest.mark.django_db
def test_people_read_the_end_of_the_newest_server_s_log(tmp_path: Path) -> None:
    lane = builders.lane()
    (tmp_path / "old.log").write_text("old\n")
    (tmp_path / "new.log").write_text("first\n\x1b[31mred\x1b[0m\x07 alarm\n")
    ran(lane, tmp_path / "new.log", minute=5)
    ran(lane, tmp_path / "old.log", minute=1)
    assert log_reading.tail_of_lane(lane) == ["first", "red alarm"]


@pytest.mark.django_db
def test_a_long_log_is_cut_to_its_last_whole_lines(tmp_path: Path) -> None:
    lane, log = builders.lane(), tmp_path / "long.log"
    log.write_text("".join(f"line {n:06} {'x' * 200}\n" for n in range(2000)))
    ran(lane, log)
    lines = log_reading.tail_of_lane(lane)
    assert lines[-1].startswith("line 001999")
    assert lines[0].startswith("line ")
    assert len(lines) <= log_reading.MOST_LINES


@pytest.mark.django_db
def test_without_a_log_a_sentence_says_why(tmp_path: Path) -> None:
    lane = builders.lane()
    assert log_reading.tail_of_lane(lane) == ["No model server has run on this lane yet."]
    ran(lane, tmp_path / "elsewhere.log")
    assert "is not on this machine" in log_reading.tail_of_lane(lane)[0]
