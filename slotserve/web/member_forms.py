"""Forms of members and groups."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib.auth.models import Group, User
from django.utils.translation import gettext_lazy as _

from slotserve.members import Member
from slotserve.web.fields import StyledForm


class MemberForm(StyledForm):
    """What administrators may change of a person."""

    username = forms.CharField(max_length=150, label=_("User name"))
    first_name = forms.CharField(max_length=150, required=False, label=_("First name"))
    last_name = forms.CharField(max_length=150, required=False, label=_("Last name"))
    email = forms.EmailField(
        required=False,
        label=_("E-mail"),
        help_text=_("Counts as verified: single sign-on with it is this member."),
    )
    groups = forms.ModelMultipleChoiceField(
        Group.objects.order_by("name"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        label=_("Groups"),
    )
    is_administrator = forms.BooleanField(
        required=False, label=_("Administrator: may see and change everything")
    )
    is_active = forms.BooleanField(
        required=False, label=_("May log in"), help_text=_("Without it tokens do not work either.")
    )

    def __init__(self, *args: Any, person: User, **kwargs: Any) -> None:
        initial = {
            "username": person.username,
            "first_name": person.first_name,
            "last_name": person.last_name,
            "email": person.email,
            "groups": person.groups.all(),
            "is_administrator": person.is_staff,
            "is_active": person.is_active,
        }
        super().__init__(*args, initial=initial, **kwargs)

    def wish(self) -> tuple[Member, Sequence[Group]]:
        """The arguments of `save_member`."""
        cleaned = dict(self.cleaned_data)
        groups = cleaned.pop("groups")
        return Member(**cleaned), groups


class SearchForm(StyledForm):
    """Which members are shown."""

    q = forms.CharField(required=False, label=_("Name or e-mail"))
    group = forms.ModelChoiceField(
        Group.objects.order_by("name"), required=False, empty_label=_("Any"), label=_("Group")
    )


class GroupForm(StyledForm):
    """A group's name."""

    name = forms.CharField(max_length=150, label=_("Name"))
