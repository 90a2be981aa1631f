"""The database as the last referee: triggers or the exclusion constraint, and checks for them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import IntegrityError, OperationalError, connection, models, transaction

from bookings import settling
from bookings.availability import obstacle
from bookings.checks import check_guards
from bookings.guards import FORMAT_TEXT, STATEMENTS, Verdict, guards_present, install, verdict
from bookings.models import Booking, State
from bookings.states import OCCUPYING, OVERLAP_CONSTRAINT, TABLE
from lanes.models import Lane
from tests import builders
from tests.booking_cast import ask, booked, code, taken
from tests.builders import at
from tests.conftest import Moment

pytestmark = pytest.mark.django_db
on_sqlite = pytest.mark.skipif(connection.vendor != "sqlite", reason="SQLite's triggers")
on_postgres = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="NOT TESTED: SLOTSERVE_TEST_POSTGRES is not set"
)


def whole_gpu(lane: Lane, start: float, end: float, **fields: Any) -> Booking:
    """A row straight into the table, past the service."""
    times = {"start": at(start), "end": at(end)}
    return builders.booking(lane=lane, kind="gpu", preset=None, **times, **fields)


def refused(write: Callable[[], object]) -> Verdict:
    with pytest.raises(IntegrityError) as caught, transaction.atomic():
        write()
    return verdict(caught.value)


def test_migrating_from_nothing_puts_the_guards_in_place() -> None:
    assert guards_present()
    assert check_guards(None, databases=["default"]) == []


def test_the_table_that_is_guarded_is_the_bookings() -> None:
    assert Booking._meta.db_table == TABLE


def test_an_overlapping_row_is_refused() -> None:
    lane = builders.lane()
    whole_gpu(lane, 0, 60)
    assert refused(lambda: whole_gpu(lane, 59, 61)) is Verdict.OVERLAP


@pytest.mark.parametrize("changed", [{"start": at(59)}, {"end": at(121)}, {"lane": "other"}])
def test_a_row_changed_into_anothers_time_is_refused(changed: dict[str, Any]) -> None:
    lane, other = builders.lane(), builders.lane("other")
    whole_gpu(lane, 0, 60)
    whole_gpu(lane, 120, 180)
    whole_gpu(other, 60, 120)
    row = Booking.objects.filter(pk=whole_gpu(lane, 60, 120, original_end=at(200)).pk)
    values = {"lane": other} if "lane" in changed else changed
    assert refused(lambda: row.update(**values)) is Verdict.OVERLAP


@pytest.mark.parametrize("state", [State.PENDING, State.CONFIRMED])
def test_a_row_that_comes_back_into_anothers_time_is_refused(state: State) -> None:
    lane = builders.lane()
    gone = whole_gpu(lane, 0, 60, state=State.CANCELLED, confirmed_at=at(-9))
    whole_gpu(lane, 0, 60)
    back = Booking.objects.filter(pk=gone.pk)
    assert refused(lambda: back.update(state=state)) is Verdict.OVERLAP


def test_what_does_not_overlap_is_let_through() -> None:
    lane = builders.lane()
    first = whole_gpu(lane, 0, 60)
    whole_gpu(lane, 60, 120)
    whole_gpu(builders.lane(), 0, 60)
    whole_gpu(lane, 0, 60, state=State.CANCELLED)
    whole_gpu(lane, 0, 60, state=State.REJECTED)
    Booking.objects.filter(pk=first.pk).update(start=at(10), end=at(50))


@pytest.mark.parametrize("tie", [timedelta(microseconds=1), timedelta(milliseconds=1)])
def test_one_microsecond_is_enough_to_overlap(tie: timedelta) -> None:
    lane = builders.lane()
    whole_gpu(lane, 0, 60)
    row = {"lane": lane, "kind": "gpu", "preset": None, "end": at(90)}
    assert refused(lambda: builders.booking(start=at(60) - tie, **row)) is Verdict.OVERLAP
    builders.booking(start=at(60), **row)


@pytest.mark.parametrize("state", State)
def test_service_and_database_agree_on_the_states_that_occupy(moment: Moment, state: State) -> None:
    lane = builders.lane()
    whole_gpu(lane, 60, 120, state=state, confirmed_at=at(-9), held_until=at(9))
    if state in OCCUPYING:
        assert code(ask(lane)) == "slot_taken"
        assert refused(lambda: whole_gpu(lane, 60, 120)) is Verdict.OVERLAP
    else:
        booked(lane)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("bookings_ends_after_start", {"end": at(0), "original_end": at(0)}),
        ("bookings_preset_fits_kind", {"kind": "model"}),
        ("bookings_confirmed_has_time", {"confirmed_at": None}),
        ("bookings_state_known", {"state": "maybe"}),
        ("bookings_held_has_time", {"state": "held"}),
        ("bookings_original_end_last", {"original_end": at(59)}),
    ],
)
def test_each_constraint_refuses_a_row_that_breaks_it(name: str, values: dict[str, Any]) -> None:
    row = Booking.objects.filter(pk=whole_gpu(builders.lane(), 0, 60).pk)
    with pytest.raises(IntegrityError, match=name), transaction.atomic():
        row.update(**values)


def test_the_service_turns_the_databases_no_into_words(
    moment: Moment, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = builders.lane()
    first = booked(lane)
    looks = iter([None])  # the first look sees nothing, as if the other came right after it
    monkeypatch.setattr(settling, "obstacle", lambda *a, **k: next(looks, obstacle(*a, **k)))
    refusal = taken(ask(lane, builders.person("member")))
    assert [c.booking_id for c in refusal.conflicts] == [first.pk]


def test_a_conflict_that_is_gone_again_is_a_refusal_too(
    moment: Moment, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = builders.lane()
    booked(lane)
    monkeypatch.setattr(settling, "obstacle", lambda *a, **k: None)
    refusal = taken(ask(lane))
    assert refusal.conflicts == ()
    assert "a moment faster" in refusal.words


def test_errors_that_nobody_expected_are_not_hidden(
    moment: Moment, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = builders.lane()

    def broken(*_: object, **__: object) -> None:
        raise OperationalError("disk I/O error")

    monkeypatch.setattr(settling, "place", broken)
    monkeypatch.setattr("bookings.services.place", broken)
    with pytest.raises(OperationalError, match="disk"):
        ask(lane)


@on_sqlite
@pytest.mark.parametrize("name", STATEMENTS)
def test_a_dropped_trigger_is_noticed_and_put_back(name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER {name}")
    assert not guards_present()
    assert [found.id for found in check_guards(None, databases=["default"])] == ["slotserve.E001"]
    call_command("migrate", verbosity=0)
    assert guards_present()


@on_sqlite
def test_a_trigger_that_does_something_else_is_noticed() -> None:
    name = f"{OVERLAP_CONSTRAINT}_insert"
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER {name}")
        cursor.execute(f"CREATE TRIGGER {name} BEFORE INSERT ON {TABLE} BEGIN SELECT 1; END")
    assert not guards_present()


@on_sqlite
@pytest.mark.django_db(transaction=True)
def test_a_rebuilt_table_loses_its_triggers_until_migrations_end() -> None:
    purpose = Booking._meta.get_field("purpose")
    wider = models.CharField(max_length=201, blank=True)
    wider.set_attributes_from_name("purpose")
    wider.model = Booking
    for old, new in ((purpose, wider), (wider, purpose)):
        with connection.schema_editor() as editor:
            editor.alter_field(Booking, old, new)
        assert not guards_present()
        call_command("migrate", verbosity=0)
        assert guards_present()


@on_sqlite
def test_the_check_does_not_stop_the_migration_that_cures_it() -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER {OVERLAP_CONSTRAINT}_update")
    with pytest.raises(SystemCheckError, match=r"slotserve\.E001"):
        call_command("check", databases=["default"], tags=["database"])
    call_command("migrate", verbosity=0, skip_checks=False)
    call_command("check", databases=["default"], tags=["database"], verbosity=0)


@on_sqlite
@pytest.mark.parametrize(
    "text",
    [
        "2030-01-15T12:00:00",
        "2030-01-15 12:00:00+00:00",
        "2030-01-15 12:00:00Z",
        "2030-01-15 12:00",
        "2030-01-15 12:00:00.123",
        "2030-01-15",
        "1894708800",
        "",
    ],
)
@pytest.mark.parametrize("column", ["start", "confirmed_at"])
def test_a_raw_write_in_another_time_format_is_refused(text: str, column: str) -> None:
    booking = whole_gpu(builders.lane(), 0, 60)
    with (
        pytest.raises(IntegrityError, match=FORMAT_TEXT) as caught,
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(f'UPDATE {TABLE} SET "{column}" = %s WHERE id = %s', [text, booking.pk])
    assert verdict(caught.value) is Verdict.OTHER


@on_sqlite
def test_times_of_the_right_format_are_let_through() -> None:
    booking = whole_gpu(builders.lane(), 0, 60)
    with connection.cursor() as cursor:
        for text in ("2030-01-15 11:00:00", "2030-01-15 11:00:00.000001", None):
            cursor.execute(f"UPDATE {TABLE} SET released_at = %s", [text])
    booking.refresh_from_db()
    assert booking.released_at is None


@on_sqlite
def test_the_triggers_and_the_look_before_use_the_index(moment: Moment) -> None:
    plan = Booking.objects.in_the_way(1, at(0), at(60)).explain()
    assert "bookings_by_end (lane_id=? AND state=? AND end>?)" in plan


@on_postgres
@pytest.mark.postgres
def test_a_dropped_constraint_is_noticed() -> None:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {TABLE} DROP CONSTRAINT {OVERLAP_CONSTRAINT}")
        assert not guards_present()
        found = check_guards(None, databases=["default"])
        transaction.set_rollback(True)
    assert [message.id for message in found] == ["slotserve.E001"]
    assert guards_present()


@contextmanager
def unguarded() -> Iterator[None]:
    """Without the constraint; afterwards it is there again, and no booking."""
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {TABLE} DROP CONSTRAINT {OVERLAP_CONSTRAINT}")
    try:
        yield
    finally:
        Booking.objects.all().delete()
        install(connection)
        assert guards_present()


@on_postgres
@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_a_dropped_constraint_is_put_back_when_migrations_end() -> None:
    with unguarded():
        call_command("migrate", verbosity=0)
        assert guards_present()


@on_postgres
@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_overlaps_that_keep_it_away_are_told(caplog: pytest.LogCaptureFixture) -> None:
    first = builders.booking(start=at(0))
    with unguarded():
        builders.booking(lane=first.lane, start=at(0))
        call_command("migrate", verbosity=0)
        assert not guards_present()
        assert "bookings overlap, and so stay unguarded: cancel one, and migrate" in caplog.text
