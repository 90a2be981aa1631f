"""The one list of checks, for page, API and command. Pure: facts in, findings out."""

from collections.abc import Callable

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from slotserve.selfcheck.facts import Facts
from slotserve.selfcheck.findings import Finding, Named
from slotserve.selfcheck.judging_machine import clocks, disk, zones
from slotserve.selfcheck.judging_traffic import edges, table, usage
from slotserve.selfcheck.judging_workers import hosts, joining, workers
from wire.words import marked

DATABASE = Named("database", marked("Database"))
MIGRATIONS = Named("migrations", marked("Migrations"))
GUARDS = Named("guards", marked("Guards against double booking"))
SETTINGS = Named("settings", marked("Settings"))
VALKEY = Named("valkey", marked("Valkey"))
MOST_NAMED = 3


def judge(facts: Facts) -> list[Finding]:
    """What each check finds, in the order of CHECKS."""
    return [check(facts) for check in CHECKS]


def database(facts: Facts) -> Finding:
    """It answers."""
    if isinstance(facts.database, str):
        words = _("The database does not answer: %(why)s.") % {"why": facts.database.rstrip(".")}
        return DATABASE.trouble(
            words,
            _(
                "Start it, or correct DATABASE_URL. A SQLite file that is damaged comes back from "
                "a backup: `python manage.py restore`."
            ),
        )
    return DATABASE.ok(_("The database answers."))


def migrations(facts: Facts) -> Finding:
    """All of this release's have run."""
    if isinstance(facts.database, str):
        return MIGRATIONS.unknown(_("Not looked at: the database does not answer."))
    left = facts.database.unapplied
    if not left:
        return MIGRATIONS.ok(_("All migrations have run."))
    more = ", …" if len(left) > MOST_NAMED else ""
    words = ngettext(
        "%(count)s migration has not run: %(names)s.",
        "%(count)s migrations have not run: %(names)s.",
        len(left),
    ) % {"count": len(left), "names": ", ".join(left[:MOST_NAMED]) + more}
    return MIGRATIONS.trouble(words, _("Run `python manage.py migrate`."))


def guards(facts: Facts) -> Finding:
    """The database itself refuses overlapping bookings."""
    if isinstance(facts.database, str):
        return GUARDS.unknown(_("Not looked at: the database does not answer."))
    if facts.database.is_guarded:
        return GUARDS.ok(_("The database refuses overlapping bookings by itself."))
    return GUARDS.trouble(
        _("The database would take overlapping bookings: its guards are missing."),
        _("Run `python manage.py migrate`: it puts them back, or names bookings that overlap."),
    )


def settings(facts: Facts) -> Finding:
    """Django's and our own checks of settings have nothing to say."""
    complaints, make = facts.settings or facts.warnings, SETTINGS.trouble
    if not complaints:
        return SETTINGS.ok(_("The settings fit together."))
    if not facts.settings:
        make = SETTINGS.warning
    advice = " ".join(dict.fromkeys(each for each in complaints.values() if each))
    return make(" ".join(complaints), advice or _("See docs/settings.md."))


def valkey(facts: Facts) -> Finding:
    """It answers."""
    if isinstance(facts.valkey, str):
        words = _("Valkey does not answer: %(why)s.") % {"why": facts.valkey.rstrip(".")}
        return VALKEY.trouble(words, _("Start it, or correct REDIS_URL."))
    if facts.reach.open_valkey:
        return VALKEY.warning(
            _(
                "Valkey at %(place)s asks for no password: whoever reaches it reads "
                "and writes all that is in it."
            )
            % {"place": facts.reach.open_valkey},
            _(
                "Give it a user with a password (docs/operations.md, Adding a host), and "
                "put both into REDIS_URL."
            ),
        )
    return VALKEY.ok(_("Valkey answers."))


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
