"""Django's admin pages: members and groups are changed on the pages that keep to the rules."""

from typing import Any, cast

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group, User
from django.forms import ModelForm
from django.http import HttpRequest

from lanes import audit
from slotserve.members import about_member

admin.site.unregister(User)
admin.site.unregister(Group)


@admin.register(User)
class MemberAdmin(UserAdmin):  # type: ignore[type-arg]
    """Users are made here and given passwords; `slotserve.members` changes and removes them."""

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> list[str]:
        """All of somebody who is there: the last administrator stays one."""
        shown = {"username", "first_name", "last_name", "email", "groups", "user_permissions"}
        shown |= {"is_active", "is_staff", "is_superuser", "last_login", "date_joined"}
        return sorted(shown) if obj else []

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Never: rows are history."""
        return False

    def save_related(
        self, request: HttpRequest, form: "ModelForm[Any]", formsets: Any, change: bool
    ) -> None:
        """Note who was made; of others nothing is saved."""
        super().save_related(request, form, formsets, change)
        if not change:
            about = about_member(form.instance)
            after = audit.facts_of(form.instance, about.subject)
            audit.note("member.made", cast(User, request.user), about, after=after)
