"""What may be asked of the audit trail, by page, CSV and REST alike."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from bookings.wall_clock import day_start
from lanes import audit
from lanes.models import AuditEntry, Subject

NAMES = ("person", "subject", "named", "kind", "from", "to", "before")
MOST = 2**63 - 1
DIGITS = len(str(MOST))
YEARS = range(1970, 2500)


@dataclass(frozen=True, slots=True)
class AuditAsked:
    """The entries that were asked for; or what is wrong, by the parameter's name."""

    entries: QuerySet[AuditEntry]
    errors: Mapping[str, str]


def read_audit_question(values: Mapping[str, str]) -> AuditAsked:
    """Read `person` (a user name), `subject`, `named` (a part of what was changed), `kind`, `from`
    and `to` (days of the reader's zone, both included) and `before` (the number of an entry).
    What is wrong is left out of the question."""
    errors: dict[str, str] = {}
    first, last = _day(values, "from", errors), _day(values, "to", errors)
    subject = values.get("subject", "")
    if subject and subject not in Subject.values:
        errors["subject"] = _("Choose one of %(names)s.") % {"names": ", ".join(Subject.values)}
        subject = ""
    entries = audit.trail(
        person=values.get("person", ""),
        subject=subject,
        named=values.get("named", ""),
        kind=values.get("kind", ""),
        since=_midnight(first) if first else None,
        until=_midnight(last + timedelta(days=1)) if last else None,
    )
    before = _number(values, errors)
    return AuditAsked(entries.filter(pk__lt=before) if before else entries, errors)


def _midnight(day: date) -> datetime:
    return day_start(day, timezone.get_current_timezone())


def _day(values: Mapping[str, str], name: str, errors: dict[str, str]) -> date | None:
    text = values.get(name, "")
    try:
        day = date.fromisoformat(text) if text else None
    except ValueError:
        day = None
    if text and (day is None or day.year not in YEARS):
        errors[name] = _("%(text)s is no day: write it as 2030-01-31.") % {"text": text[:40]}
        return None
    return day


def _number(values: Mapping[str, str], errors: dict[str, str]) -> int | None:
    text = values.get("before", "")
    if not text:
        return None
    number = int(text) if text.isascii() and text.isdecimal() and len(text) <= DIGITS else 0
    if not 0 < number <= MOST:
        errors["before"] = _("Give the number of an entry.")
        return None
    return number
