"""Groups of members: made, renamed and deleted by administrators."""

from django.contrib.auth.models import Group, User
from django.db import transaction
from django.utils.translation import gettext as _

from bookings.models import Policy
from lanes.refusals import NOT_ADMINISTRATOR, Refusal

LONGEST_NAME = 150


def save_group(group: Group | None, name: str, *, actor: User) -> Group | Refusal:
    """Make a group, or give one another name. Refusals: not_administrator, bad_name, name_taken."""
    name = name.strip()
    if not actor.is_staff:
        return NOT_ADMINISTRATOR
    if not name or len(name) > LONGEST_NAME:
        return Refusal("bad_name", _("Give the group a name of 1 to 150 characters."))
    with transaction.atomic():
        others = Group.objects.exclude(pk=group.pk) if group else Group.objects.all()
        if others.filter(name__iexact=name).exists():
            return Refusal("name_taken", _("There is a group of this name already."))
        made = group or Group()
        made.name = name
        made.save()
    return made


def delete_group(group: Group, *, actor: User) -> Refusal | None:
    """Delete a group; its members stay. Refusals: not_administrator, in_use (it has rules)."""
    if not actor.is_staff:
        return NOT_ADMINISTRATOR
    if Policy.objects.filter(group=group).exists():
        words = _("There are rules of booking for this group: delete those first.")
        return Refusal("in_use", words)
    group.delete()
    return None
