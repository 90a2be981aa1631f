"""Reads of bookings."""

from collections.abc import Collection
from datetime import datetime
from typing import TYPE_CHECKING, Self

from django.contrib.auth.models import AnonymousUser, User
from django.db import models

from bookings.share_rows import BookingShare
from bookings.states import OCCUPYING

if TYPE_CHECKING:
    from bookings.models import Booking, Waiting  # noqa: F401 - named in strings below


class BookingQuerySet(models.QuerySet["Booking"]):
    """Bookings, narrowed by who asks, by time and by lane."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """All for whoever is logged in (the calendar is shared), none for a stranger."""
        return self.all() if user.is_authenticated else self.none()

    def of_people(self, user: User | AnonymousUser) -> Self:
        """Those that concern this person: their own, those shared with them, for administrators
        all."""
        if not user.is_authenticated:
            return self.none()
        if user.is_staff:
            return self.all()
        return self.usable_by(user)

    def usable_by(self, user: User) -> Self:
        """Those in whose slots this person may call the lane: their own, those shared with them."""
        return self.filter(models.Q(owner=user) | models.Q(pk__in=_shared_with(user)))

    def shared_with(self, user: User) -> Self:
        """Those of others that this person may use beside them."""
        return self.filter(pk__in=_shared_with(user))

    def others(self, but: int | Collection[int] | None) -> Self:
        """All but that one, or those; all, without one."""
        if not but:
            return self.all()
        return self.exclude(pk=but) if isinstance(but, int) else self.exclude(pk__in=but)

    def current(self, now: datetime) -> Self:
        """Those that keep others from time still to come, by start."""
        return self.filter(state__in=OCCUPYING, end__gt=now).order_by("start", "pk")

    def past(self, now: datetime) -> Self:
        """The rest: over, cancelled, rejected, never approved; newest first."""
        is_current = models.Q(state__in=OCCUPYING, end__gt=now)
        return self.exclude(is_current).order_by("-start", "-pk")

    def in_the_way(self, lane_pk: int, start: datetime, end: datetime) -> Self:
        """Those that hold some of [start, end) on the lane, by start."""
        held = self.filter(lane=lane_pk, state__in=OCCUPYING, end__gt=start, start__lt=end)
        return held.order_by("start", "pk")


def _shared_with(user: User) -> models.QuerySet[BookingShare, int]:
    return BookingShare.objects.filter(member=user).values_list("booking_id", flat=True)


class WaitingQuerySet(models.QuerySet["Waiting"]):
    """Members who wait."""

    def unserved(self, now: datetime) -> Self:
        """Those of members that may still be given time, in their order."""
        still = self.filter(hold=None, left_at=None, closes__gt=now, owner__is_active=True)
        return still.order_by("created_at", "pk")
