"""A database that is busy, and others who came first: refusals, never errors."""

import sqlite3
from collections.abc import Collection, Iterator

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, OperationalError, connection, transaction

from bookings import services, settling
from bookings.guards import Verdict, verdict
from bookings.models import Booking
from lanes.models import Lane
from tests import builders
from tests.booking_cast import ask, booked, code, done
from tests.builders import at
from tests.conftest import Moment

on_sqlite = pytest.mark.skipif(connection.vendor != "sqlite", reason="SQLite's one writer")
on_postgres = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="NOT TESTED: SLOTSERVE_TEST_POSTGRES is not set"
)


@pytest.mark.parametrize(
    ("cause", "meaning"),
    [
        (psycopg.errors.DeadlockDetected(), Verdict.BUSY),
        (psycopg.errors.SerializationFailure(), Verdict.BUSY),
        (psycopg.errors.LockNotAvailable(), Verdict.BUSY),
        (psycopg.errors.QueryCanceled(), Verdict.BUSY),
        (psycopg.errors.ForeignKeyViolation(), Verdict.BUSY),
        (psycopg.errors.ExclusionViolation(), Verdict.OTHER),  # of a constraint without our name
        (psycopg.errors.UniqueViolation(), Verdict.TWIN),
        (psycopg.OperationalError("the connection is lost"), Verdict.OTHER),
        (ValueError(), Verdict.OTHER),
    ],
)
def test_what_the_database_means_by_an_error(cause: Exception, meaning: Verdict) -> None:
    error = OperationalError()
    error.__cause__ = cause
    assert verdict(error) is meaning


@pytest.mark.parametrize(
    ("sqlite_code", "meaning"),
    [
        (sqlite3.SQLITE_BUSY, Verdict.BUSY),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, Verdict.BUSY),
        (sqlite3.SQLITE_LOCKED, Verdict.BUSY),
        (sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY, Verdict.BUSY),
        (sqlite3.SQLITE_CONSTRAINT_UNIQUE, Verdict.TWIN),
        (sqlite3.SQLITE_CONSTRAINT_CHECK, Verdict.OTHER),
        (sqlite3.SQLITE_FULL, Verdict.OTHER),
    ],
)
def test_what_sqlite_means_by_a_code(sqlite_code: int, meaning: Verdict) -> None:
    error, cause = IntegrityError(), sqlite3.OperationalError()
    cause.sqlite_errorcode = sqlite_code
    error.__cause__ = cause
    assert verdict(error) is meaning


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(settling, "LOCK_SECONDS", 0.05)
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA busy_timeout = 50")
    yield
    connection.close()


@on_sqlite
@pytest.mark.django_db(transaction=True)
def test_another_writer_on_sqlite_makes_it_busy(moment: Moment, short_waits: None) -> None:
    lane, owner = builders.lane(), builders.person()
    other = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        assert code(ask(lane, owner)) == "busy"
        other.execute("ROLLBACK")
        booked(lane, owner)
    finally:
        other.close()


@on_postgres
@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_a_lock_that_is_not_given_on_postgresql_makes_it_busy(
    moment: Moment, short_waits: None
) -> None:
    lane, owner = builders.lane(), builders.person()
    with psycopg.connect(**connection.get_connection_params() | {"cursor_factory": None}) as other:
        other.execute("SELECT 1 FROM lanes_lane FOR UPDATE")
        assert code(ask(lane, owner)) == "busy"
        other.rollback()
        booked(lane, owner)


@pytest.mark.django_db(transaction=True)
def test_a_member_deleted_meanwhile_is_a_refusal(moment: Moment) -> None:
    lane, owner = builders.lane(), builders.person()
    User.objects.filter(pk=owner.pk).delete()
    assert code(ask(lane, owner)) == "owner_inactive"
    assert not Booking.objects.exists()


@pytest.mark.django_db
def test_a_booking_moved_between_look_and_lock_is_a_refusal(
    moment: Moment, monkeypatch: pytest.MonkeyPatch
) -> None:
    booking, elsewhere = booked(builders.lane()), builders.lane()
    lock = settling.lock

    def late(owner_pk: int, lane_pks: Collection[int], *, heir: Collection[int]) -> dict[int, Lane]:
        Booking.objects.filter(pk=booking.pk).update(lane=elsewhere)
        return lock(owner_pk, lane_pks, heir=heir)

    monkeypatch.setattr(settling, "lock", late)
    assert code(services.cancel(booking, actor=booking.owner)) == "busy"


@pytest.mark.django_db
def test_a_change_is_decided_by_what_the_booking_is_now(moment: Moment) -> None:
    seen = booked(builders.lane())
    done(services.extend(Booking.objects.get(pk=seen.pk), actor=seen.owner, end=at(180)))
    assert code(services.extend(seen, actor=seen.owner, end=at(150))) == "not_later"


@pytest.mark.django_db
def test_now_is_read_after_the_locks(moment: Moment, monkeypatch: pytest.MonkeyPatch) -> None:
    booking = booked(builders.lane())
    lock = settling.lock

    def slow(owner_pk: int, lane_pks: Collection[int], *, heir: Collection[int]) -> dict[int, Lane]:
        moment.set(120)
        return lock(owner_pk, lane_pks, heir=heir)

    monkeypatch.setattr(settling, "lock", slow)
    assert code(services.release(booking, actor=booking.owner)) == "too_late"


@on_postgres
@pytest.mark.postgres
@pytest.mark.django_db
def test_the_member_is_locked_before_lanes_and_lanes_by_key(moment: Moment) -> None:
    booking, other = booked(builders.lane()), builders.lane()
    with transaction.atomic(), connection.execute_wrapper(recorder := Recorder()):
        services.move(
            booking, actor=booking.owner, start=booking.start, end=booking.end, lane=other
        )
    locks = [sql for sql in recorder.statements if "FOR NO KEY UPDATE" in sql]
    assert [sql.split(" FROM ")[1].split('"')[1] for sql in locks] == [
        "auth_user",
        "lanes_lane",
        "bookings_booking",
    ]
    assert 'ORDER BY "lanes_lane"."id" ASC' in locks[1]


class Recorder:
    """Keeps the statements that go through."""

    def __init__(self) -> None:
        self.statements: list[str] = []

    def __call__(self, execute: object, sql: str, *rest: object) -> object:
        self.statements.append(sql)
        return execute(sql, *rest)  # type: ignore[operator]
