"""The database keeps the audit trail: nothing changes or deletes an entry but its age."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import DatabaseError, connection, transaction

from lanes import audit, audit_guards, clock
from lanes.audit_guards import REFUSED, check_audit_guards, install, is_guarded
from lanes.models import AuditEntry, AuditPruning, Subject
from tests import builders

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
on_sqlite = pytest.mark.skipif(connection.vendor != "sqlite", reason="SQLite's triggers")
on_postgres = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="NOT TESTED: SLOTSERVE_TEST_POSTGRES is not set"
)


@pytest.fixture
def entry() -> AuditEntry:
    boss = builders.administrator()
    about = audit.About(Subject.LANE, 7, "fast")
    audit.note("lane.made", boss, about, after={"name": "fast"})
    return AuditEntry.objects.get()


def refused(write: Callable[[], object]) -> None:
    before = list(AuditEntry.objects.values())
    with pytest.raises(DatabaseError, match=REFUSED), transaction.atomic():
        write()
    assert list(AuditEntry.objects.values()) == before


def test_migrating_from_nothing_guards_the_trail() -> None:
    assert is_guarded(connection)
    assert check_audit_guards(None, databases=["default"]) == []


def test_the_columns_that_are_kept_are_all_but_the_persons() -> None:
    assert AuditEntry._meta.db_table == audit_guards.TABLE
    assert AuditPruning._meta.db_table == audit_guards.PRUNING
    columns = [field.column for field in AuditEntry._meta.concrete_fields]
    assert set(audit_guards.KEPT) == set(columns) - {"actor_id"}


@pytest.mark.parametrize("column", [name for name in audit_guards.KEPT if name != "id"])
def test_no_column_of_an_entry_is_changed(entry: AuditEntry, column: str) -> None:
    other = {
        "at": entry.at - DAY,
        "subject_id_then": None,
        "words": None,
        "changes": [["name", None, "slow"]],
    }.get(column, "other")
    refused(lambda: AuditEntry.objects.update(**{column: other}))


def test_no_entry_is_given_to_another_person(entry: AuditEntry) -> None:
    refused(lambda: AuditEntry.objects.update(actor=builders.person("scapegoat")))
    refused(lambda: AuditEntry.objects.update(actor=None, actor_name="scapegoat"))
    refused(lambda: AuditEntry.objects.update(id=entry.pk + 1))


def test_a_person_who_is_deleted_keeps_her_name_in_it(entry: AuditEntry) -> None:
    User.objects.get(username="administrator").delete()
    kept = AuditEntry.objects.get()
    assert (kept.actor, kept.actor_name) == (None, "administrator")
    refused(lambda: AuditEntry.objects.update(actor=builders.person("scapegoat")))


def test_no_entry_is_deleted(entry: AuditEntry) -> None:
    refused(entry.delete)
    refused(AuditEntry.objects.all().delete)


def test_what_is_too_old_is_deleted_and_nothing_else(entry: AuditEntry) -> None:
    now = clock.database_now()
    assert audit.prune(now, kept=DAY) == 0
    assert audit.prune(now + 2 * DAY, kept=DAY) == 1
    audit.note("lane.made", None, audit.About(Subject.LANE, 8, "next"), after={"name": "next"})
    AuditPruning.objects.create(before=now - DAY)
    refused(AuditEntry.objects.all().delete)


def test_pruning_leaves_nothing_open(entry: AuditEntry) -> None:
    audit.prune(entry.at + 2 * DAY, kept=DAY)
    assert not AuditPruning.objects.exists()


def test_migrate_puts_the_guards_back() -> None:
    audit_guards.remove(connection)
    complaint = check_audit_guards(None, databases=["default"])
    assert [each.id for each in complaint] == ["slotserve.E002"]
    with pytest.raises(SystemCheckError, match=r"slotserve\.E002"):
        call_command("check", databases=["default"])
    call_command("migrate", verbosity=0)
    assert is_guarded(connection)


@on_sqlite
def test_a_trigger_that_differs_is_replaced() -> None:
    audit_guards.remove(connection)
    with connection.cursor() as cursor:
        for name in audit_guards.SQLITE:
            cursor.execute(
                f"CREATE TRIGGER {name} BEFORE DELETE ON {audit_guards.TABLE} BEGIN SELECT 1; END"
            )
    assert not is_guarded(connection)
    install(connection)
    assert is_guarded(connection)


@on_postgres
def test_a_trigger_that_was_switched_off_or_a_function_that_differs_is_replaced() -> None:
    for statement in (
        f"ALTER TABLE {audit_guards.TABLE} DISABLE TRIGGER ALL",
        f"CREATE OR REPLACE FUNCTION {audit_guards.FUNCTION}() RETURNS trigger LANGUAGE plpgsql "
        "AS $$BEGIN RETURN OLD; END$$",
    ):
        with connection.cursor() as cursor:
            cursor.execute(statement)
        assert not is_guarded(connection)
        install(connection)
        assert is_guarded(connection)


@on_postgres
@pytest.mark.django_db(transaction=True)
def test_the_trail_is_not_truncated(entry: AuditEntry) -> None:
    def truncate() -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"TRUNCATE {audit_guards.TABLE}")

    refused(truncate)


@pytest.mark.django_db(transaction=True)
def test_flush_empties_the_trail_and_guards_what_comes(entry: AuditEntry) -> None:
    call_command("flush", interactive=False, verbosity=0)
    assert not AuditEntry.objects.exists()
    assert is_guarded(connection)
