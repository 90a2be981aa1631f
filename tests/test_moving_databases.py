"""From SQLite to PostgreSQL: everything arrives, guarded, or nothing does."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from bookings.guards import STATEMENTS, Verdict, guards_present, verdict
from bookings.models import Booking
from gateway.models import UsageRecord
from lanes.models import Host, Lane
from slotserve.database import MOVED
from slotserve.databases.sqlite_files import opened
from slotserve.databases.tables import MADE_BY_MIGRATE, all_models, has_rows, read_rows, summary
from slotserve.stack.parts import ROOT
from tests import builders
from tests.filled_database import USAGE_ROWS
from tests.running import eventually
from tests.worker import environment

pytest_plugins = ["tests.opened_databases"]
pytestmark = [
    pytest.mark.usefixtures("more_databases"),
    pytest.mark.django_db(transaction=True),
    pytest.mark.postgres,
    pytest.mark.skipif(
        not os.environ.get("SLOTSERVE_TEST_POSTGRES"), reason="needs SLOTSERVE_TEST_POSTGRES"
    ),
]


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite database in use by nobody, with something in each table."""
    path = tmp_path_factory.mktemp("filled") / "slotserve.sqlite3"
    program = [sys.executable, "-m", "tests.filled_database"]
    settings = {"DATABASE_URL": f"sqlite:///{path}", "DJANGO_SETTINGS_MODULE": "slotserve.settings"}
    subprocess.run(program, cwd=ROOT, env=os.environ | settings, check=True)
    return path


@pytest.fixture
def source(filled: Path, tmp_path: Path) -> Path:
    """A copy of it that a test may break."""
    return Path(shutil.copy(filled, tmp_path / "slotserve.sqlite3"))


def move(source: Path) -> str:
    out = StringIO()
    call_command("move_from_sqlite", str(source), stdout=out)
    return out.getvalue()


def refusal(source: Path) -> str:
    with pytest.raises(CommandError) as refused:
        move(source)
    return str(refused.value)


def is_empty() -> bool:
    return not any(has_rows(m, "default") for m in all_models() if m not in MADE_BY_MIGRATE)


def change(source: Path, *statements: str) -> None:
    """Write to the file as SQLite allows, and no more checks than that."""
    with contextlib.closing(sqlite3.connect(source)) as db, db:
        for statement in statements:
            db.execute(statement)


@contextlib.contextmanager
def writing(source: Path) -> Iterator[None]:
    """Somebody else in the middle of a transaction."""
    with contextlib.closing(sqlite3.connect(source, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        yield


def test_every_row_of_every_table_arrives(source: Path) -> None:
    said = move(source)
    assert f"gateway_usagerecord: {USAGE_ROWS}\n" in said
    with opened(source, "old") as old:
        for model in all_models():
            there, here = (summary(read_rows(model, alias)) for alias in (old, "default"))
            assert there == here, model
    assert sum(has_rows(model, "default") for model in all_models()) > 25


def test_people_keep_what_they_may_do(source: Path) -> None:
    move(source)
    owner = User.objects.get(username="owner")
    assert owner.has_perms(["lanes.view_lane", "bookings.add_booking"])


def test_new_rows_get_numbers_that_were_never_given(source: Path) -> None:
    move(source)
    highest = Booking.objects.order_by("-pk")[0].pk
    booking = builders.booking(lane=Lane.objects.get(), start=builders.at(900))
    assert booking.pk == highest + 2  # the one between was deleted
    assert builders.host("another").pk == Host.objects.exclude(key="another").latest("pk").pk + 1


def test_the_new_database_refuses_overlaps_by_itself(source: Path) -> None:
    move(source)
    assert guards_present()
    with pytest.raises(Exception, match="bookings_no_overlap") as refused:
        builders.booking(lane=Lane.objects.get(), start=builders.at(30))
    assert verdict(refused.value) == Verdict.OVERLAP  # type: ignore[arg-type]


def test_the_old_file_stays_as_it_is(source: Path, filled: Path) -> None:
    move(source)
    with opened(source, "old") as old:
        assert summary(read_rows(UsageRecord, old)).rows == USAGE_ROWS


def test_a_database_that_is_not_empty_is_refused_and_left_alone(source: Path) -> None:
    builders.person("somebody")
    assert "not empty (auth_user)" in refusal(source)
    assert list(User.objects.values_list("username", flat=True)) == ["somebody"]
    assert not Lane.objects.exists()


def test_the_move_leaves_a_mark_without_the_password(source: Path) -> None:
    move(source)
    target = os.environ["SLOTSERVE_TEST_POSTGRES"]
    password = urlsplit(target).password
    assert password
    assert (source.parent / MOVED).read_text().strip() == target.replace(f":{password}@", "@")


def test_a_refused_move_leaves_none(source: Path) -> None:
    builders.person("somebody")
    refusal(source)
    assert not (source.parent / MOVED).exists()


def test_twice_is_refused(source: Path) -> None:
    move(source)
    assert "not empty" in refusal(source)


BROKEN = [
    ("lanes_laneevent SET sentence = printf('%.600c', 'x')", "lanes_laneevent: value too long"),
    (
        "gateway_usagerecord SET status = 99999 WHERE id = 1050",
        "usagerecord: smallint out of range",
    ),
    ("bookings_booking SET owner_id = 999 WHERE id = 1", "violates foreign key constraint"),
    (
        "lanes_presetrevision SET notes = '[\"\\u0000\"]'",
        "lanes_presetrevision: unsupported Unicode",
    ),
]


@pytest.mark.parametrize(("statement", "words"), BROKEN)
def test_a_row_that_does_not_fit_is_named_and_nothing_is_moved(
    source: Path, statement: str, words: str
) -> None:
    change(source, f"UPDATE {statement}")
    said = refusal(source)
    assert words in said
    assert "\n" not in said
    assert is_empty()


def test_overlapping_bookings_of_a_database_without_guards_are_not_moved(source: Path) -> None:
    earlier = "UPDATE bookings_booking SET start = datetime(start, '-30 minutes') WHERE id = 2"
    change(source, *(f"DROP TRIGGER {name}" for name in STATEMENTS), earlier)
    assert "bookings_no_overlap" in refusal(source)
    assert is_empty()


def test_a_file_in_use_is_refused(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slotserve.databases.sqlite_files.BUSY_SECONDS", 0.1)
    with writing(source):
        assert "is in use" in refusal(source)
    assert is_empty()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: None, "is not a file"),
        (lambda path: path.write_text("hello " * 999), "is no database of SlotServe"),
        (lambda path: change(path, "CREATE TABLE a (b)"), "is no database of SlotServe"),
    ],
)
def test_what_is_no_database_of_ours_is_refused(tmp_path: Path, make: Any, words: str) -> None:
    path = tmp_path / "other.sqlite3"
    make(path)
    assert words in refusal(path)


def test_a_newer_release_s_file_is_refused(source: Path) -> None:
    row = "('lanes', '0999_more', '2030-01-01')"
    change(source, f"INSERT INTO django_migrations (app, name, applied) VALUES {row}")
    assert "of a newer release (lanes.0999_more)" in refusal(source)


def test_a_kill_in_the_middle_leaves_nothing_and_the_next_try_succeeds(
    source: Path, tmp_path: Path
) -> None:
    with stuck_at("gateway_usagerecord") as waiters:
        argv = [sys.executable, "manage.py", "move_from_sqlite", str(source)]
        env = environment(tmp_path, "unix:///nobody")
        moving = subprocess.Popen(argv, cwd=ROOT, env=env, stdout=subprocess.DEVNULL)
        try:
            eventually(waiters, "the move has come to the last table", 60)
        finally:
            moving.kill()
            moving.wait()
    assert is_empty()
    move(source)
    assert UsageRecord.objects.count() == USAGE_ROWS


@contextlib.contextmanager
def stuck_at(table: str) -> Iterator[Any]:
    """Who inserts there waits; yields a question after how many do."""
    made = (
        "CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_advisory_xact_lock(42); RETURN NEW; END $$",
        f"CREATE TRIGGER hold BEFORE INSERT ON {table} EXECUTE FUNCTION hold()",
    )
    counting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as other:
        try:
            for statement in made:
                other.execute(statement)
            other.execute("SELECT pg_advisory_lock(42)")
            yield lambda: other.execute(counting).fetchone()[0]  # type: ignore[index]
        finally:
            other.execute("SELECT pg_advisory_unlock(42)")
            other.execute("DROP FUNCTION hold CASCADE")
