"""Announcements: administrators make and end them; pages and REST show those in force."""

import logging
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from lanes import audit, clock
from lanes.models import Announcement, Subject
from lanes.refusals import Refusal
from lanes.validation import not_administrator, refusal_of

log = logging.getLogger(__name__)


def in_force(now: datetime) -> QuerySet[Announcement]:
    """Those to be shown at `now`, the newest first."""
    is_over = Q(ends_at__isnull=False, ends_at__lte=now)
    return Announcement.objects.filter(starts_at__lte=now).exclude(is_over)


def not_over(now: datetime) -> QuerySet[Announcement]:
    """Those in force and those to come."""
    return Announcement.objects.filter(Q(ends_at=None) | Q(ends_at__gt=now))


@transaction.atomic
def announce(
    *,
    text: str,
    level: str,
    starts_at: datetime | None,
    ends_at: datetime | None,
    actor: User,
) -> Announcement | Refusal:
    """Tell everybody from a time on (None: at once) until another (None: until it is ended)."""
    if not actor.is_staff:
        return not_administrator()
    now = clock.database_now()
    if ends_at is not None and ends_at <= now:
        return Refusal("already_over", _("This end is over already: choose a later one."))
    made = Announcement(text=text.strip(), level=level, ends_at=ends_at, made_by=actor)
    made.starts_at = starts_at or now
    refusal = refusal_of(made)
    if refusal:
        return refusal
    made.save()
    about = audit.About(Subject.ANNOUNCEMENT, made.pk, made.text)
    after = audit.facts_of(made, Subject.ANNOUNCEMENT)
    audit.note("announcement.made", actor, about, after=after)
    log.info("announced id=%s by=%s", made.pk, actor.pk)
    return made


@transaction.atomic
def end(announcement: Announcement, *, actor: User) -> Refusal | None:
    """Show it no more, or never, if it is still to come."""
    if not actor.is_staff:
        return not_administrator()
    now = clock.database_now()
    row = Announcement.objects.filter(pk=announcement.pk)
    is_dropped = bool(row.filter(starts_at__gte=now).delete()[0])
    if not is_dropped and not row.filter(Q(ends_at=None) | Q(ends_at__gt=now)).update(ends_at=now):
        return Refusal("already_over", _("This announcement is over already."))
    about = audit.About(Subject.ANNOUNCEMENT, announcement.pk, announcement.text)
    audit.note("announcement.ended", actor, about)
    log.info("announcement ended id=%s by=%s", announcement.pk, actor.pk)
    return None
