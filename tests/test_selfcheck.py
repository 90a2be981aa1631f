"""The self-check on real parts: command, page and API tell the same."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from rest_framework.test import APIClient

from bookings.guards import STATEMENTS, install
from bookings.models import Booking
from bookings.states import OVERLAP_CONSTRAINT
from gateway.publish import publish
from lanes import ticks
from slotserve.selfcheck import reading, reading_valkey
from slotserve.selfcheck.findings import Finding, Level
from slotserve.selfcheck.service import self_check
from tests import builders
from tests.conftest import ValkeyServer
from tests.running import eventually
from tests.worker import WORKER, celery, environment

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.valkey]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mostly nobody is there who could answer."""
    monkeypatch.setattr(reading_valkey, "ANSWER_SECONDS", 0.3)


def levels() -> dict[str, Level]:
    return {finding.check: finding.level for finding in self_check()}


def finding(check: str) -> Finding:
    return next(each for each in self_check() if each.check == check)


def ran(*arguments: str) -> tuple[int, str]:
    """The command's exit status and what it wrote."""
    out = StringIO()
    try:
        call_command("self_check", *arguments, stdout=out)
    except SystemExit as end:
        return int(end.code or 0), out.getvalue()
    return 0, out.getvalue()


@contextmanager
def without_guards() -> Iterator[None]:
    """The database as if somebody had dropped them."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(f"DROP TRIGGER {next(iter(STATEMENTS))}")
            yield
            install(connection)
            return
        table = f"ALTER TABLE {Booking._meta.db_table}"
        cursor.execute(f"{table} RENAME CONSTRAINT {OVERLAP_CONSTRAINT} TO something_else")
        yield
        cursor.execute(f"{table} RENAME CONSTRAINT something_else TO {OVERLAP_CONSTRAINT}")


def test_what_does_not_run_is_trouble_and_the_exit_status_says_so(valkey: str) -> None:
    builders.lane("demo")
    status, words = ran()
    assert status == 1
    assert "TROUBLE  Workers: No worker serves plan, host.test-host." in words
    assert "TROUBLE  Gateways: No gateway is running" in words
    assert "ok       Guards against double booking: " in words
    assert words.splitlines()[-1].startswith("Trouble with ")


def test_programs_get_json(valkey: str) -> None:
    told = json.loads(ran("--json")[1])
    assert {"check", "title", "level", "sentence", "advice"} == set(told[0])
    assert [each["check"] for each in told] == [each.check for each in self_check()]


def test_a_published_table_is_found_and_other_keys_are(
    valkey: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert levels()["table"] == Level.TROUBLE
    publish()
    assert levels()["table"] == Level.OK
    monkeypatch.setenv("SLOTSERVE_TABLE_KEYS", "other" * 10)
    assert "not signed by a known key" in finding("table").sentence


def test_a_valkey_that_was_restarted_between_is_no_trouble(
    valkey: str, valkey_server: ValkeyServer
) -> None:
    for _ in range(2):
        assert levels()["valkey"] == Level.OK
        valkey_server.stop()
        valkey_server.start()


@pytest.mark.process
def test_a_living_worker_is_heard_of(valkey: str, tmp_path: Path) -> None:
    builders.lane("demo")
    queues = ("-Q", f"plan,{ticks.host_queue('test-host')}")
    with celery(*WORKER, *queues, env=environment(tmp_path, valkey), log=tmp_path / "log"):
        eventually(lambda: levels()["workers"] == Level.OK, "a worker that answers", 120)
    eventually(lambda: levels()["workers"] == Level.TROUBLE, "no worker", 60)


def test_without_valkey_the_rest_is_looked_at(settings: Any) -> None:
    found = levels()
    assert found["valkey"] == Level.TROUBLE
    assert found["workers"] == found["table"] == Level.UNKNOWN
    assert found["guards"] == found["disk"] == Level.OK


def test_a_valkey_that_hangs_holds_nothing_up_for_long(
    valkey: str, valkey_server: ValkeyServer
) -> None:
    with valkey_server.paused():
        assert levels()["valkey"] == Level.TROUBLE


def test_missing_guards_are_trouble(valkey: str) -> None:
    with without_guards():
        assert levels()["guards"] == Level.TROUBLE
    assert levels()["guards"] == Level.OK


def test_without_a_database_it_says_so_and_goes_on(
    valkey: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    connection.close()
    with monkeypatch.context() as patch:
        if connection.vendor == "postgresql":
            patch.setitem(connection.settings_dict, "PORT", "9")
        else:
            patch.setitem(connection.settings_dict, "NAME", str(tmp_path / "no" / "folder"))
        found = {each.check: each for each in self_check()}
        connection.close()
    assert found["database"].level == Level.TROUBLE
    assert "\n" not in found["database"].sentence
    assert found["guards"].level == found["clocks"].level == Level.UNKNOWN
    assert found["valkey"].level == Level.OK


def test_a_folder_that_is_gone_is_trouble(valkey: str, settings: Any, tmp_path: Path) -> None:
    settings.SLOTSERVE_DATA = tmp_path / "gone"
    assert finding("disk").sentence == f"{tmp_path}/gone cannot be written to."


def test_the_zones_of_this_machine_are_told(valkey: str) -> None:
    zones = reading.read_zones()
    assert zones.is_known
    assert zones.count > 300
    assert zones.version[:4].isdecimal()


def test_the_page_shows_every_check_to_administrators_only(valkey: str) -> None:
    client = Client()
    assert client.get("/administration/self-check/").status_code == 302
    client.force_login(builders.person("member"))
    assert client.get("/administration/self-check/").status_code == 403
    client.force_login(builders.administrator())
    page = client.get("/administration/self-check/").content.decode()
    assert "Trouble with " in page
    assert "No gateway is running: nobody can call a model." in page
    assert "<code>python -m gateway.edge</code>" in page
    assert page.index(">trouble<") < page.index(">ok<")
    assert page.count('class="list-group-item"') == len(self_check())


def test_the_api_tells_administrators_the_same(valkey: str) -> None:
    client = APIClient()
    client.force_login(builders.person("member"))
    assert client.get("/api/v1/self-check/").status_code == 403
    client.force_login(builders.administrator())
    told = client.get("/api/v1/self-check/").json()
    assert told["has_trouble"] is True
    assert told["verdict"].startswith("Trouble with ")
    assert [each["check"] for each in told["findings"]] == [each.check for each in self_check()]
