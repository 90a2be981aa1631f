"""Groups of members: made, renamed and deleted by administrators."""

from django.contrib.auth.models import Group, User
from django.db import IntegrityError, transaction
from django.db.models import Count, Q, QuerySet
from django.utils.translation import gettext as _

from bookings.models import Policy
from lanes import audit
from lanes.models import Subject
from lanes.refusals import NOT_ADMINISTRATOR, Refusal

LONGEST_NAME = 150


def groups() -> QuerySet[Group]:
    """All, by name, with `size`: how many members may log in."""
    size = Count("user", filter=Q(user__is_active=True))
    return Group.objects.annotate(size=size).order_by("name")


def save_group(group: Group | None, name: str, *, actor: User) -> Group | Refusal:
    """Make a group, or give one another name. Refusals: not_administrator, bad_name, name_taken."""
    name = name.strip()
    if not actor.is_staff:
        return NOT_ADMINISTRATOR
    if not name or len(name) > LONGEST_NAME:
        return Refusal("bad_name", _("Give the group a name of 1 to 150 characters."))
    others = Group.objects.exclude(pk=group.pk) if group else Group.objects.all()
    taken = Refusal("name_taken", _("There is a group of this name already."))
    if others.filter(name__iexact=name).exists():
        return taken
    before = {"name": Group.objects.get(pk=group.pk).name} if group else audit.NOTHING
    made = group or Group()
    made.name = name
    try:
        with transaction.atomic():
            made.save()
            kind, about = "group.changed" if group else "group.made", about_group(made)
            audit.note(kind, actor, about, before=before, after={"name": name})
    except IntegrityError:  # another made it at the same moment
        return taken
    return made


@transaction.atomic
def delete_group(group: Group, *, actor: User) -> Refusal | None:
    """Delete a group; its members stay. Refusals: not_administrator, not_found,
    in_use (it has rules)."""
    if not actor.is_staff:
        return NOT_ADMINISTRATOR
    # Whoever makes rules for it locks it as well: they are there by now, or will find it gone.
    locked = list(Group.objects.select_for_update().filter(pk=group.pk))
    if not locked:
        return Refusal("not_found", _("This group has been deleted meanwhile."))
    if Policy.objects.filter(group=group).exists():
        words = _("There are rules of booking for this group: delete those first.")
        return Refusal("in_use", words)
    audit.note("group.deleted", actor, about_group(group))
    group.delete()
    return None


def about_group(group: Group) -> audit.About:
    """A group, for the audit trail."""
    return audit.About(Subject.GROUP, group.pk, group.name)
