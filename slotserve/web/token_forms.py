"""The form that makes a token, and the one that looks at those of others."""

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from gateway.limits import MOST, RateLimits
from gateway.models import Scope
from gateway.tokens import DEFAULT_SCOPES
from lanes.models import Lane
from slotserve.web.fields import MomentField, StyledForm

NEVER, AT_A_TIME = "never", "time"
LIFETIMES = [
    ("1", gettext_lazy("After a day")),
    ("7", gettext_lazy("After a week")),
    ("30", gettext_lazy("After 30 days")),
    ("90", gettext_lazy("After 90 days")),
    ("365", gettext_lazy("After a year")),
    (AT_A_TIME, gettext_lazy("At a time of your choice")),
    (NEVER, gettext_lazy("Never, until it is revoked")),
]


class LanesField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]
    """Lanes to tick, by name."""

    widget = forms.CheckboxSelectMultiple

    def label_from_instance(self, obj: Lane) -> str:
        """What the list says."""
        return obj.name


class TokenForm(StyledForm):
    """A wish for a token."""

    name = forms.CharField(
        max_length=100,
        label=gettext_lazy("Name"),
        help_text=gettext_lazy("What uses it, such as “laptop” or “CI”."),
    )
    scopes = forms.MultipleChoiceField(
        choices=Scope.choices,
        initial=DEFAULT_SCOPES,
        widget=forms.CheckboxSelectMultiple,
        label=gettext_lazy("What it may do"),
    )
    lanes = LanesField(
        Lane.objects.order_by("name"),
        to_field_name="slug",
        required=False,
        label=gettext_lazy("On these lanes"),
        help_text=gettext_lazy("None ticked: on every lane, also on those to come."),
    )
    lifetime = forms.ChoiceField(
        choices=LIFETIMES, initial="90", label=gettext_lazy("Expires"), required=False
    )
    expires_at = MomentField(
        required=False,
        label=gettext_lazy("At (with “a time of your choice”)"),
    )
    requests_per_minute = forms.IntegerField(
        min_value=1,
        max_value=MOST,
        required=False,
        label=gettext_lazy("Requests a minute (optional)"),
    )
    tokens_per_minute = forms.IntegerField(
        min_value=1,
        max_value=MOST,
        required=False,
        label=gettext_lazy("Tokens a minute (optional)"),
        help_text=gettext_lazy("Of prompts and answers."),
    )

    def clean(self) -> dict[str, Any]:
        """A time of one's choice must be given."""
        cleaned = super().clean() or {}
        if cleaned.get("lifetime") == AT_A_TIME and cleaned.get("expires_at", "") is None:
            self.add_error("expires_at", _("Say when it expires, or choose another lifetime."))
        return cleaned

    def wish(self, now: datetime) -> dict[str, Any]:
        """The arguments of `create_token`."""
        cleaned = self.cleaned_data
        limits = RateLimits(cleaned["requests_per_minute"], cleaned["tokens_per_minute"])
        return {
            "name": cleaned["name"],
            "scopes": cleaned["scopes"],
            "lanes": list(cleaned["lanes"]),
            "expires_at": self._expiry(now),
            "rate_limits": limits,
        }

    def _expiry(self, now: datetime) -> datetime | None:
        lifetime = self.cleaned_data["lifetime"] or NEVER
        if lifetime == AT_A_TIME:
            expires_at: datetime = self.cleaned_data["expires_at"]
            return expires_at
        return None if lifetime == NEVER else now + timedelta(days=int(lifetime))


class OwnerForm(StyledForm):
    """Whose tokens an administrator looks at: a name, or everybody's."""

    of = forms.ModelChoiceField(
        User.objects.filter(api_tokens__session="").distinct().order_by("username"),
        to_field_name="username",
        required=False,
        empty_label=gettext_lazy("Everybody"),
        label=gettext_lazy("Tokens of"),
    )
