"""The database as the keeper of the audit trail: it refuses to change or delete an entry.

Two things are let through. When a person's row is deleted, entries lose their reference to it (the
name stays). And `lanes.audit.prune` deletes what is too old: in its transaction a row of
AuditPruning says up to when. Triggers do it on SQLite and PostgreSQL alike. They are put back after
every migration, because Django drops SQLite's whenever it rebuilds the table, and checked for.
"""

from collections.abc import Sequence

from django.apps import AppConfig
from django.core.checks import CheckMessage
from django.core.checks import Error as CheckError
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

TABLE, PRUNING = "lanes_auditentry", "lanes_auditpruning"
REFUSED = "slotserve_audit_append_only"  # what the database says
FUNCTION = "lanes_audit_append_only"
ANY_ROW, ALL_ROWS = f"{FUNCTION}_row", f"{FUNCTION}_all"
# All columns but the person's; a test holds the list against the model.
KEPT = (
    "id",
    "at",
    "kind",
    "actor_name",
    "subject",
    "subject_id_then",
    "subject_name",
    "sentence",
    "words",
    "changes",
)

# Constants of this project only: nothing that anybody sends.
_IS_DUE = f'EXISTS (SELECT 1 FROM {PRUNING} WHERE "before" > OLD."at")'  # noqa: S608
_IS_SAME = " AND ".join(f'NEW."{name}" IS OLD."{name}"' for name in KEPT)
_ABORT = f"BEGIN SELECT RAISE(ABORT, '{REFUSED}'); END"
_SQLITE_BODIES = {
    f"{FUNCTION}_update": f"BEFORE UPDATE ON {TABLE}\n"
    f"WHEN NOT (NEW.actor_id IS NULL AND {_IS_SAME})\n{_ABORT}",
    f"{FUNCTION}_delete": f"BEFORE DELETE ON {TABLE}\nWHEN NOT {_IS_DUE}\n{_ABORT}",
}
SQLITE = {name: f"CREATE TRIGGER {name} {body}" for name, body in _SQLITE_BODIES.items()}

_POSTGRESQL_BODY = f"""
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF {_IS_DUE} THEN RETURN OLD; END IF;
    ELSIF TG_OP = 'UPDATE' THEN
        IF NEW.actor_id IS NULL AND to_jsonb(NEW) - 'actor_id' = to_jsonb(OLD) - 'actor_id'
        THEN RETURN NEW; END IF;
    END IF;
    RAISE EXCEPTION '{REFUSED}' USING ERRCODE = 'restrict_violation';
END
"""
_POSTGRESQL = (
    f"CREATE OR REPLACE FUNCTION {FUNCTION}() RETURNS trigger LANGUAGE plpgsql "
    f"AS $${_POSTGRESQL_BODY}$$",
    f"CREATE TRIGGER {ANY_ROW} BEFORE UPDATE OR DELETE ON {TABLE} "
    f"FOR EACH ROW EXECUTE FUNCTION {FUNCTION}()",
    f"CREATE TRIGGER {ALL_ROWS} BEFORE TRUNCATE ON {TABLE} "
    f"FOR EACH STATEMENT EXECUTE FUNCTION {FUNCTION}()",
)


def check_audit_guards(
    app_configs: Sequence[AppConfig] | None,
    databases: Sequence[str] | None = None,
    **_: object,
) -> list[CheckMessage]:
    """slotserve.E002: a database with an audit trail must refuse to change it."""
    return [
        CheckError(
            f"The database {alias!r} lacks its guards of the audit trail.",
            hint="Run `manage.py migrate`.",
            id="slotserve.E002",
        )
        for alias in databases or ()
        if _table_exists(connections[alias]) and not is_guarded(connections[alias])
    ]


def is_guarded(connection: BaseDatabaseWrapper) -> bool:
    """Whether this database itself refuses to change entries."""
    find = _sqlite_is_guarded if connection.vendor == "sqlite" else _postgresql_is_guarded
    return find(connection)


def install(connection: BaseDatabaseWrapper) -> None:
    """Put the triggers back if one is missing or differs."""
    if not _table_exists(connection) or is_guarded(connection):
        return
    remove(connection)
    statements = SQLITE.values() if connection.vendor == "sqlite" else _POSTGRESQL
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def remove(connection: BaseDatabaseWrapper) -> None:
    """Take them away, for `flush` alone: who empties the whole database means the trail, too."""
    if not _table_exists(connection):
        return
    names, where = (SQLITE, "") if connection.vendor == "sqlite" else ((ANY_ROW, ALL_ROWS), TABLE)
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        for name in names:
            cursor.execute(f"DROP TRIGGER IF EXISTS {name}{where and f' ON {where}'}")


def install_after_migrating(sender: AppConfig, using: str = DEFAULT_DB_ALIAS, **_: object) -> None:
    """What post_migrate calls."""
    install(connections[using])


def _table_exists(connection: BaseDatabaseWrapper) -> bool:
    with connection.cursor() as cursor:
        return PRUNING in connection.introspection.table_names(cursor)


def _sqlite_is_guarded(connection: BaseDatabaseWrapper) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = %s", [TABLE]
        )
        present = dict(cursor.fetchall())
    return all(present.get(name) == statement for name, statement in SQLITE.items())


def _postgresql_is_guarded(connection: BaseDatabaseWrapper) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tgname FROM pg_trigger JOIN pg_proc ON pg_proc.oid = tgfoid"
            " WHERE tgrelid = to_regclass(%s) AND tgenabled = 'O' AND prosrc = %s",
            [TABLE, _POSTGRESQL_BODY],
        )
        return {ANY_ROW, ALL_ROWS} <= {name for (name,) in cursor.fetchall()}
