"""Telling people what they should know: in the app; `notices` sends it on by other ways.

A notice is about something with a name of its own, and one of the times that it came up. Telling a
person of the same time again does nothing, so whoever notices something may say so at every look.
Another time within the hour is not told either: when it is still so after the hour, it is.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from lanes import ticks
from lanes.events import LONGEST
from lanes.models import Lane, Notice
from wire.words import kept_of

log = logging.getLogger(__name__)
KEPT = timedelta(days=90)  # older ones are forgotten
FORGOTTEN_AT_ONCE = 1000
QUIET = timedelta(hours=1)  # after a notice nobody is told of the same thing again


@dataclass(frozen=True, slots=True)
class News:
    """What is to be told. `kind` is a word for programs, `advice` what to try, `since` what makes
    this time another than the last. Of `wire.words.said` each reader is told in their language."""

    about: str
    kind: str
    sentence: str
    advice: str = ""
    lane: Lane | None = None
    since: datetime | None = None
    booking: int | None = None
    is_quiet: bool = False  # listed as read already

    @property
    def key(self) -> str:
        """This time of it: nobody is told of it twice."""
        return f"{self.about}:{self.since.isoformat()}" if self.since else self.about


def tell_people(people: Iterable[User], news: News, now: datetime) -> int:
    """Tell each of them, unless they were told of it before; how many were told now.

    By which other ways they are told is decided once this transaction has been committed.
    """
    wanted = {person.pk: person for person in people if person.is_active}
    is_lately = Q(key__startswith=f"{news.about}:", at__gt=now - QUIET)
    known = Notice.objects.filter(Q(key=news.key) | is_lately, recipient__in=wanted)
    for pk in set(known.values_list("recipient_id", flat=True)):
        del wanted[pk]
    rows = [_notice(person, news, now) for person in wanted.values()]
    if rows:
        Notice.objects.bulk_create(rows, ignore_conflicts=True)
        log.info("told key=%s people=%s: %s", news.key, len(rows), news.sentence)
        ticks.notices_soon()
    return len(rows)


def administrators() -> QuerySet[User]:
    """Those who administer lanes and hosts; hosts may read all of members but their passwords."""
    return User.objects.defer("password").filter(is_staff=True, is_active=True)


def notices_of(person: User) -> QuerySet[Notice]:
    """A person's notices, the newest first."""
    return Notice.objects.filter(recipient=person).select_related("lane")


def unread_count(person: User) -> int:
    """How many of them the person has not read."""
    return Notice.objects.filter(recipient=person, read_at=None).count()


def mark_read(
    person: User, now: datetime, *, up_to: int | None = None, pk: int | None = None
) -> int:
    """Take a person's notices as read: one, those up to a number, or all; how many were unread."""
    unread = Notice.objects.filter(recipient=person, read_at=None)
    if pk is not None:
        unread = unread.filter(pk=pk)
    if up_to is not None:
        unread = unread.filter(pk__lte=up_to)
    return unread.update(read_at=now)


def forget_old(now: datetime) -> None:
    """Drop what is older than 90 days, not too much at once."""
    old = Notice.objects.filter(at__lt=now - KEPT).order_by("pk")
    numbers = list(old.values_list("pk", flat=True)[:FORGOTTEN_AT_ONCE])
    Notice.objects.filter(pk__in=numbers).delete()


def _notice(person: User, news: News, now: datetime) -> Notice:
    return Notice(
        recipient=person,
        key=news.key,
        kind=news.kind,
        lane=news.lane,
        sentence=news.sentence[:LONGEST],
        advice=news.advice[:LONGEST],
        words={"sentence": kept_of(news.sentence), "advice": kept_of(news.advice)},
        at=now,
        read_at=now if news.is_quiet else None,
        booking_id_for=news.booking,
    )
