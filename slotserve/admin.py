"""Django's admin pages: users are removed as everywhere else, so that bookings are given back; what
is changed of users and groups is in the audit trail."""

from typing import Any, cast

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.db import models
from django.forms import ModelForm
from django.http import HttpRequest

from lanes import audit
from lanes.models import Subject
from slotserve.groups import about_group
from slotserve.members import about_member

admin.site.unregister(User)
admin.site.unregister(Group)


@admin.register(User)
class MemberAdmin(UserAdmin):  # type: ignore[type-arg]
    """Users, whose rows are history: the page of the member removes."""

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Never: `slotserve.members.remove_member` does it."""
        return False

    def save_related(
        self, request: HttpRequest, form: "ModelForm[Any]", formsets: Any, change: bool
    ) -> None:
        """Save groups and the rest; note all that is other than it was."""
        before = _before(form, Subject.MEMBER) if change else audit.NOTHING
        super().save_related(request, form, formsets, change)
        _note(request, "member", about_member(form.instance), before, form.instance)


@admin.register(Group)
class NotedGroupAdmin(GroupAdmin):
    """Groups."""

    def save_related(
        self, request: HttpRequest, form: "ModelForm[Any]", formsets: Any, change: bool
    ) -> None:
        """Save it; note what is other than it was."""
        before = _before(form, Subject.GROUP) if change else audit.NOTHING
        super().save_related(request, form, formsets, change)
        _note(request, "group", about_group(form.instance), before, form.instance)

    def delete_model(self, request: HttpRequest, obj: Group) -> None:
        """Delete it, with its rules of booking."""
        audit.note("group.deleted", cast(User, request.user), about_group(obj))
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: "models.QuerySet[Group]") -> None:
        """The same of several."""
        for group in queryset:
            self.delete_model(request, group)


def _before(form: "ModelForm[Any]", subject: Subject) -> audit.Facts:
    """What it was: the form's first values, where it has the field, else what is so now."""
    now = audit.facts_of(form.instance, subject)
    return {**now, **{name: value for name, value in form.initial.items() if name in now}}


def _note(
    request: HttpRequest, what: str, about: audit.About, before: audit.Facts, row: models.Model
) -> None:
    kind = f"{what}.changed" if before else f"{what}.made"
    after = audit.facts_of(row, about.subject)
    audit.note(kind, cast(User, request.user), about, before=before, after=after)
