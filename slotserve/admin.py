"""Django's admin pages: users are removed as everywhere else, so that bookings are given back."""

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.http import HttpRequest

admin.site.unregister(User)


@admin.register(User)
class MemberAdmin(UserAdmin):  # type: ignore[type-arg]
    """Users, whose rows are history: the page of the member removes."""

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Never: `slotserve.members.remove_member` does it."""
        return False
