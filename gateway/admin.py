"""Django's admin pages: what a member may use of the gateway. For administrators."""

from dataclasses import asdict
from typing import TYPE_CHECKING, cast

from django.contrib import admin
from django.contrib.auth.models import User
from django.forms import ModelForm
from django.http import HttpRequest

from gateway.limits import RateLimits, own_limits_of, set_member_limits
from gateway.models import MemberLimit
from lanes import audit, ticks
from lanes.models import Subject

if TYPE_CHECKING:  # the class has no type parameter when it runs
    Base = admin.ModelAdmin[MemberLimit]
else:
    Base = admin.ModelAdmin


@admin.register(MemberLimit)
class MemberLimitAdmin(Base):
    """Limits of members; the service writes them."""

    list_display = ("member", "requests_per_minute", "tokens_per_minute")
    search_fields = ("member__username",)
    autocomplete_fields = ("member",)
    actions = None  # deleting in bulk would go past `delete_model`

    def get_readonly_fields(
        self, request: HttpRequest, obj: MemberLimit | None = None
    ) -> list[str]:
        """Whose limits they are stays."""
        return ["member"] if obj else []

    def save_model(
        self, request: HttpRequest, obj: MemberLimit, form: "ModelForm[MemberLimit]", change: bool
    ) -> None:
        """Set them."""
        wish = RateLimits(obj.requests_per_minute, obj.tokens_per_minute)
        made = set_member_limits(obj.member, wish, actor=cast(User, request.user))
        if isinstance(made, MemberLimit):
            obj.pk = made.pk

    def delete_model(self, request: HttpRequest, obj: MemberLimit) -> None:
        """From now on the member is as everybody."""
        before = asdict(own_limits_of(obj))
        obj.delete()
        about = audit.About(Subject.MEMBER, obj.member_id, obj.member.get_username())
        audit.note("member.limits", cast(User, request.user), about, before=before)
        ticks.plan_soon()
