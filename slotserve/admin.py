"""Django's admin pages: members and groups are changed on the pages that keep to the rules."""

from typing import Any, cast

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.forms import AdminPasswordChangeForm
from django.contrib.auth.models import Group, User
from django.forms import ModelForm
from django.http import HttpRequest

from lanes import audit
from slotserve.members import about_member

admin.site.unregister(User)
admin.site.unregister(Group)


class PasswordForm(AdminPasswordChangeForm):  # type: ignore[type-arg]
    """Django's, but it writes the password alone: the member may be removed meanwhile."""

    def save(self, commit: bool = True) -> User:
        """Nothing of what was read before is written back."""
        person: User = super().save(commit=False)
        if commit:
            person.save(update_fields=["password"])
        return person


@admin.register(User)
class MemberAdmin(UserAdmin):  # type: ignore[type-arg]
    """Users are made here and given passwords; `slotserve.members` changes and removes them."""

    change_password_form = PasswordForm

    def save_model(
        self, request: HttpRequest, obj: User, form: "ModelForm[Any]", change: bool
    ) -> None:
        """Who is there is only shown, so nothing that was read is written back."""
        if not change:
            super().save_model(request, obj, form, change)

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
