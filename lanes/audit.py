"""The audit trail: who changed what, from what to what. Services note it in their transaction."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Model, QuerySet
from django.db.models.manager import BaseManager
from django.utils.translation import gettext, gettext_lazy

from lanes import clock
from lanes.audit_words import FIELDS, SENTENCES, Labels, labels_of
from lanes.events import LONGEST
from lanes.models.audit import AuditEntry, AuditPruning, Subject
from lanes.telling import moment
from wire.words import kept_of, said

LONGEST_NAME = 200
LONGEST_VALUE = 300  # characters of one value
ITSELF = "SlotServe"  # who acts when nobody does
Facts = Mapping[str, object]
NOTHING: Facts = MappingProxyType({})
PRUNED_AT_ONCE = 1000
YES, NO, NONE = gettext_lazy("yes"), gettext_lazy("no"), gettext_lazy("nothing")


@dataclass(frozen=True, slots=True)
class About:
    """What is changed; its name may be a sentence of `wire.words.said`."""

    subject: Subject
    pk: int | None
    name: str


@dataclass(frozen=True, slots=True)
class Change:
    """One field for readers: `name` for programs, the rest in words."""

    name: str
    label: str
    old: str
    new: str


def facts_of(row: Model, subject: Subject) -> Facts:
    """What of a row, as it is now, the trail may tell; a query for each field of several rows."""
    names = [name for name in FIELDS[subject] if hasattr(row, name)]
    return {name: _plain(getattr(row, name)) for name in names}


def note(
    kind: str,
    actor: User | None,
    about: About,
    *,
    before: Facts = NOTHING,
    after: Facts = NOTHING,
    what: str = "",
) -> None:
    """Write down a change, of which `FIELDS` are told; one that changes none of them is none, when
    its kind ends in "changed". `what` is a sentence of its own where the kind's has {what}."""
    changes = [
        [name, _plain(before.get(name)), _plain(after.get(name))]
        for name in FIELDS[about.subject]
        if _plain(before.get(name)) != _plain(after.get(name)) and (before or after.get(name))
    ]
    if not changes and kind.endswith(".changed"):
        return
    name = actor.get_username() if actor else ""
    text = SENTENCES.get(kind) or SENTENCES[kind.partition(".")[0]]
    sentence = said(text, actor=name or ITSELF, name=about.name, what=what)
    AuditEntry.objects.create(
        at=clock.database_now(),
        kind=kind,
        actor=actor,
        actor_name=name,
        subject=about.subject,
        subject_id_then=about.pk,
        subject_name=about.name[:LONGEST_NAME],
        sentence=sentence[:LONGEST],
        words=kept_of(sentence),
        changes=changes,
    )


def changes_of(entry: AuditEntry) -> list[Change]:
    """An entry's, in the reader's language and zone."""
    subject = Subject(entry.subject)
    labels = FIELDS.get(subject, {})
    told = [
        (name, _told(old, labels_of(subject, name)), _told(new, labels_of(subject, name)))
        for name, old, new in entry.changes
    ]
    # What was empty in one way and is so in another is no change to readers.
    return [
        Change(name, gettext(labels.get(name, name)), old, new)
        for name, old, new in told
        if old != new
    ]


def trail(
    *,
    person: str = "",
    subject: str = "",
    named: str = "",
    kind: str = "",
    since: datetime | None = None,
    until: datetime | None = None,
) -> QuerySet[AuditEntry]:
    """Entries, the newest first. `named` is a part of the name of what was changed."""
    found = AuditEntry.objects.order_by("-pk")
    wanted = {
        "actor_name": person,
        "subject": subject,
        "subject_name__icontains": named,
        "kind": kind,
        "at__gte": since,
        "at__lt": until,
    }
    return found.filter(**{name: value for name, value in wanted.items() if value})


def prune(now: datetime, kept: timedelta) -> int:
    """Delete entries that are older, not too many at once; how many."""
    before = now - kept
    old = AuditEntry.objects.filter(at__lt=before).order_by("at")
    numbers = list(old.values_list("pk", flat=True)[:PRUNED_AT_ONCE])
    if not numbers:
        return 0
    with transaction.atomic():
        due = AuditPruning.objects.create(before=before)  # else the database refuses
        deleted, _ = AuditEntry.objects.filter(pk__in=numbers).delete()
        due.delete()
    return deleted


def _plain(value: object) -> object:
    """As JSON keeps it."""
    if isinstance(value, datetime):
        return {"moment": value.isoformat()}
    if isinstance(value, BaseManager):
        return sorted(str(each) for each in value.all())
    if isinstance(value, Mapping) or value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Iterable) and not isinstance(value, str):
        return sorted(str(each) for each in value)
    return str(value)[:LONGEST_VALUE]


def _told(value: object, labels: Labels) -> str:
    """A value for this reader; `labels` are those of a field's choices."""
    if isinstance(value, bool):
        return str(YES if value else NO)
    if isinstance(value, Mapping):
        return moment(datetime.fromisoformat(str(value["moment"])))
    if isinstance(value, list):
        return ", ".join(str(labels.get(each, each)) for each in value) or str(NONE)
    return str(NONE) if value in {None, ""} else str(labels.get(str(value), value))
