"""Whose names a reader is shown: the site's choice, SLOTSERVE_NAMES."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from enum import StrEnum

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Q
from django.utils.translation import gettext as _

from lanes.models import LaneEvent
from lanes.telling import told


class ShownTo(StrEnum):
    """Who is shown the names of others. Administrators are always."""

    MEMBERS = "members"
    GROUPS = "groups"  # those who share a group with them; administrators' names to everybody
    ADMINISTRATORS = "administrators"


def known_names(
    choice: ShownTo, own: str, *, is_staff: bool, company: Callable[[], Collection[str]]
) -> frozenset[str] | None:
    """The names that a reader of the name `own` is shown; None: all. Pure.

    `company` gives those of their groups and of administrators, and is asked only where these
    matter.
    """
    if is_staff or choice is ShownTo.MEMBERS:
        return None
    return frozenset((own, *(company() if choice is ShownTo.GROUPS else ())))


@dataclass(frozen=True, slots=True)
class Names:
    """What one reader is told of people. Read once a request: `names_for`."""

    known: frozenset[str] | None  # None: all

    def are_shown(self, name: str) -> bool:
        """Whether this reader is told this person's name."""
        return self.known is None or name in self.known

    def of(self, name: str) -> str:
        """The name, or "a member"."""
        return name if self.are_shown(name) else _("a member")

    def meeting(self, names: Collection[str]) -> "Names":
        """The same where these people are no strangers, as on the page of a booking they share."""
        return self if self.known is None else replace(self, known=self.known.union(names))

    def told(self, event: LaneEvent) -> str:
        """What happened, in the reader's language. Of a sentence from before it was kept what it
        was made of, nobody knows whom it names."""
        if self.known is not None and not event.words and (event.actor_id or event.booking_id_for):
            return _("Something that a member did.")
        return told(event.sentence, event.words, self.of)


def names_for(reader: User) -> Names:
    """One query where only groups share names, else none."""

    def company() -> Collection[str]:
        in_theirs = Q(groups__in=reader.groups.all())
        return set(
            User.objects.filter(in_theirs | Q(is_staff=True)).values_list("username", flat=True)
        )

    choice = ShownTo(settings.SLOTSERVE_NAMES)
    known = known_names(choice, reader.get_username(), is_staff=reader.is_staff, company=company)
    return Names(known)
