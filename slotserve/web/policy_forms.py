"""The form of a row of rules, in sections; it reads and explains, the service decides."""

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib.auth.models import Group
from django.forms.boundfield import BoundField
from django.utils.translation import gettext_lazy as _

from bookings.models import Policy
from bookings.policy_rows import ApprovalChoice, PresetChoice
from bookings.policy_service import MOST
from lanes.models import Lane, Preset
from slotserve.web.fields import NamedField, StyledForm

NOT_SAID = ("", _("Not said"))
SECTIONS = (
    (_("Where, and for whom"), ("lane", "group")),
    (_("What may be booked"), ("may_book", "may_book_gpu", "preset_choice", "presets")),
    (
        _("When, and how long"),
        ("grid_minutes", "min_minutes", "max_minutes", "notice_minutes", "ahead_days"),
    ),
    (_("How much"), ("day_hours", "week_hours", "bookings_ahead")),
    (_("Approval"), ("approval", "approval_hours", "pending_hours")),
    (_("Time that is not used"), ("no_show_minutes", "late_cancel_minutes")),
)


@dataclass(frozen=True, slots=True)
class Section:
    """Some of the form's fields, as the template of fields wants a form."""

    title: str
    visible_fields: tuple[BoundField, ...]
    hidden_fields: tuple[BoundField, ...] = ()
    non_field_errors: tuple[str, ...] = ()


class PresetChoices(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]
    """Presets to tick, by the names that people gave them."""

    widget = forms.CheckboxSelectMultiple

    def label_from_instance(self, obj: Preset) -> str:
        """What the list says."""
        return obj.name


def _yes_or_no(label: Any, help_text: Any) -> forms.TypedChoiceField:
    return forms.TypedChoiceField(
        choices=[NOT_SAID, ("yes", _("Yes")), ("no", _("No"))],
        coerce=lambda said: said == "yes",
        empty_value=None,
        required=False,
        label=label,
        help_text=help_text,
    )


def _whole(name: str, label: Any, help_text: Any) -> forms.IntegerField:
    return forms.IntegerField(
        min_value=0, max_value=MOST[name], required=False, label=label, help_text=help_text
    )


def _hours(name: str, label: Any, help_text: Any) -> forms.FloatField:
    field = forms.FloatField(
        min_value=0, max_value=MOST[name], required=False, label=label, help_text=help_text
    )
    field.widget.attrs["step"] = "any"
    return field


class PolicyForm(StyledForm):
    """What a row says. A field that is empty says nothing; 0 is no limit."""

    lane = NamedField(
        Lane.objects.order_by("name"),
        required=False,
        empty_label=_("Every lane"),
        label=_("Lane"),
        to_field_name="slug",
    )
    group = forms.ModelChoiceField(
        Group.objects.order_by("name"),
        to_field_name="name",
        required=False,
        empty_label=_("Everybody"),
        label=_("Group"),
        help_text=_(
            "Rules of a lane for a group come before those of the lane, of the group and of "
            "everybody, field by field."
        ),
    )
    may_book = _yes_or_no(_("May book"), _("No: nobody of them may book there at all."))
    may_book_gpu = _yes_or_no(_("May book the whole GPU"), _("Without a model server."))
    preset_choice = forms.ChoiceField(
        choices=[NOT_SAID, *PresetChoice.choices], required=False, label=_("Models")
    )
    presets = PresetChoices(
        Preset.objects.offered().order_by("name"),
        to_field_name="slug",
        required=False,
        label=_("Models that may be booked"),
        help_text=_("They count where only those ticked may be booked."),
    )
    grid_minutes = _whole(
        "grid_minutes",
        _("Grid in minutes"),
        _("Starts and ends are on multiples of it by the site's clock; 30: at :00 and :30."),
    )
    min_minutes = _whole("min_minutes", _("Shortest in minutes"), "")
    max_minutes = _whole("max_minutes", _("Longest in minutes"), _("240 is 4 hours."))
    notice_minutes = _whole(
        "notice_minutes", _("Notice in minutes"), _("A slot starts at least so long from now.")
    )
    ahead_days = _whole("ahead_days", _("Days ahead"), _("A slot starts at most so far from now."))
    day_hours = _hours("day_hours", _("Hours a day"), _("Of each member, by the site's days."))
    week_hours = _hours("week_hours", _("Hours a week"), _("Weeks begin on Mondays."))
    bookings_ahead = _whole(
        "bookings_ahead", _("Bookings ahead"), _("So many of each member may lie ahead at once.")
    )
    approval = forms.ChoiceField(
        choices=[NOT_SAID, *ApprovalChoice.choices],
        required=False,
        label=_("Bookings that an administrator must approve"),
    )
    approval_hours = _hours("approval_hours", _("Beyond so many hours"), "")
    pending_hours = _hours(
        "pending_hours",
        _("Expires after hours"),
        _("A booking that nobody approves; at its start at the latest."),
    )
    no_show_minutes = _whole(
        "no_show_minutes",
        _("No-show after minutes"),
        _("A slot is released when nobody sent a request so long after its model was ready."),
    )
    late_cancel_minutes = _whole(
        "late_cancel_minutes",
        _("Late cancellation within minutes"),
        _("Cancelled so shortly before its start, a booking counts as if it had been used."),
    )

    def __init__(self, *args: Any, policy: Policy | None, **kwargs: Any) -> None:
        initial = self.initial_of(policy) if policy else None
        super().__init__(*args, initial=initial, **kwargs)

    @staticmethod
    def initial_of(policy: Policy) -> dict[str, Any]:
        """The form's values for a row."""
        said: dict[str, Any] = {name: getattr(policy, name) for name in MOST}
        for name in ("may_book", "may_book_gpu"):
            value = getattr(policy, name)
            said[name] = "" if value is None else "yes" if value else "no"
        return said | {
            "lane": policy.lane.slug if policy.lane else None,
            "group": policy.group.name if policy.group else None,
            "preset_choice": policy.preset_choice,
            "presets": [preset.slug for preset in policy.presets.all()],
            "approval": policy.approval,
        }

    def sections(self) -> list[Section]:
        """The fields by what they are about."""
        return [
            Section(str(title), tuple(self[name] for name in names)) for title, names in SECTIONS
        ]
