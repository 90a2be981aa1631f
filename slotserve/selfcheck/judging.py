"""The one list of checks, for page, API and command. Pure: facts in, findings out."""

from collections.abc import Callable

from slotserve.selfcheck.facts import Facts
from slotserve.selfcheck.findings import Finding, Named
from slotserve.selfcheck.judging_machine import clocks, disk, zones
from slotserve.selfcheck.judging_traffic import edges, table, usage
from slotserve.selfcheck.judging_workers import hosts, joining, workers

DATABASE = Named("database", "Database")
MIGRATIONS = Named("migrations", "Migrations")
GUARDS = Named("guards", "Guards against double booking")
SETTINGS = Named("settings", "Settings")
VALKEY = Named("valkey", "Valkey")
MOST_NAMED = 3
_START_DATABASE = (
    "Start it, or correct DATABASE_URL. A SQLite file that is damaged comes back from a backup: "
    "`python manage.py restore`."
)


def judge(facts: Facts) -> list[Finding]:
    """What each check finds, in the order of CHECKS."""
    return [check(facts) for check in CHECKS]


def database(facts: Facts) -> Finding:
    """It answers."""
    if isinstance(facts.database, str):
        words = f"The database does not answer: {facts.database.rstrip('.')}."
        return DATABASE.trouble(words, _START_DATABASE)
    return DATABASE.ok("The database answers.")


def migrations(facts: Facts) -> Finding:
    """All of this release's have run."""
    if isinstance(facts.database, str):
        return MIGRATIONS.unknown("Not looked at: the database does not answer.")
    left = facts.database.unapplied
    if not left:
        return MIGRATIONS.ok("All migrations have run.")
    more = ", …" if len(left) > MOST_NAMED else ""
    words = f"{len(left)} migrations have not run: {', '.join(left[:MOST_NAMED])}{more}."
    return MIGRATIONS.trouble(words, "Run `python manage.py migrate`.")


def guards(facts: Facts) -> Finding:
    """The database itself refuses overlapping bookings."""
    if isinstance(facts.database, str):
        return GUARDS.unknown("Not looked at: the database does not answer.")
    if facts.database.is_guarded:
        return GUARDS.ok("The database refuses overlapping bookings by itself.")
    return GUARDS.trouble(
        "The database would take overlapping bookings: its guards are missing.",
        "Run `python manage.py migrate`: it puts them back, or names bookings that overlap.",
    )


def settings(facts: Facts) -> Finding:
    """Django's and our own checks of settings have nothing to say."""
    complaints, make = facts.settings or facts.warnings, SETTINGS.trouble
    if not complaints:
        return SETTINGS.ok("The settings fit together.")
    if not facts.settings:
        make = SETTINGS.warning
    advice = " ".join(dict.fromkeys(each for each in complaints.values() if each))
    return make(" ".join(complaints), advice or "See docs/settings.md.")


def valkey(facts: Facts) -> Finding:
    """It answers."""
    if isinstance(facts.valkey, str):
        words = f"Valkey does not answer: {facts.valkey.rstrip('.')}."
        return VALKEY.trouble(words, "Start it, or correct REDIS_URL.")
    if facts.reach.open_valkey:
        return VALKEY.warning(
            f"Valkey at {facts.reach.open_valkey} asks for no password: whoever reaches it reads "
            "and writes all that is in it.",
            "Give it a user with a password (docs/operations.md, Adding a host), and put both into "
            "REDIS_URL.",
        )
    return VALKEY.ok("Valkey answers.")


CHECKS: tuple[Callable[[Facts], Finding], ...] = (
    database,
    migrations,
    guards,
    settings,
    valkey,
    workers,
    hosts,
    joining,
    table,
    edges,
    usage,
    clocks,
    zones,
    disk,
)
