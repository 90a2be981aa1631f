"""Forms of invitations: to make one, and to accept it."""

from datetime import timedelta

from django import forms
from django.contrib.auth.models import Group
from django.utils.translation import gettext_lazy as _

from slotserve.invitations import LONGEST, USUAL
from slotserve.web.fields import StyledForm


class InviteForm(StyledForm):
    """Whom to invite, and as what."""

    email = forms.EmailField(
        max_length=254,
        required=False,
        label=_("E-mail (optional)"),
        help_text=_("The link is sent there. Without it you get a link to pass on."),
    )
    groups = forms.ModelMultipleChoiceField(
        Group.objects.order_by("name"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        label=_("Groups"),
    )
    is_administrator = forms.BooleanField(
        required=False, label=_("As an administrator, who may see and change everything")
    )
    days = forms.IntegerField(
        min_value=1,
        max_value=LONGEST.days,
        initial=USUAL.days,
        label=_("Open for days"),
    )

    def lifetime(self) -> timedelta:
        """How long it is open."""
        return timedelta(days=self.cleaned_data["days"])


class AcceptForm(StyledForm):
    """The name and password of a new member."""

    username = forms.CharField(
        max_length=150,
        label=_("User name"),
        widget=forms.TextInput(attrs={"autocomplete": "username", "autocapitalize": "none"}),
    )
    password = forms.CharField(
        label=_("Password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_("At least 8 characters, not a common one, and not digits alone."),
    )
