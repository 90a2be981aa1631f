"""Rules as administrators write them down: a row for a lane or all, and a group or everybody."""

from typing import ClassVar

from django.contrib.auth.models import Group
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from lanes.audit_words import tell_choices
from lanes.models import Lane, Preset, Subject


class ApprovalChoice(models.TextChoices):
    """Which bookings an administrator must approve: policy.Approval with words."""

    NEVER = "never", _("None")
    GPU = "gpu", _("Those of the whole GPU")
    BEYOND = "beyond", _("Those longer than so many hours")
    ALWAYS = "always", _("All")


class PresetChoice(models.TextChoices):
    """Which presets may be booked."""

    ANY = "any", _("Every preset")
    LISTED = "listed", _("Only those ticked below")


tell_choices(Subject.POLICY, "approval", ApprovalChoice.choices)
tell_choices(
    Subject.POLICY,
    "preset_choice",
    [(PresetChoice.ANY.value, PresetChoice.ANY.label), ("listed", _("Only those listed"))],
)


def _number() -> "models.PositiveIntegerField[int | None, int | None]":
    return models.PositiveIntegerField(null=True, blank=True)


def _hours() -> "models.FloatField[float | None, float | None]":
    return models.FloatField(null=True, blank=True, validators=[MinValueValidator(0.0)])


class Policy(models.Model):
    """What holds on a lane for a group. A field that is empty says nothing; a limit of 0 is none.

    Of several rows each field is taken from the most specific that says it: a lane for a group, a
    lane, a group, everybody everywhere (bookings/policy_levels.py). Written by policy_service.
    """

    lane = models.ForeignKey(
        Lane, null=True, blank=True, on_delete=models.CASCADE, related_name="policies"
    )
    group = models.ForeignKey(
        Group, null=True, blank=True, on_delete=models.CASCADE, related_name="policies"
    )
    may_book = models.BooleanField(null=True, blank=True)
    may_book_gpu = models.BooleanField(null=True, blank=True)
    preset_choice = models.CharField(max_length=6, choices=PresetChoice, blank=True, default="")
    presets = models.ManyToManyField(Preset, blank=True, related_name="policies")
    grid_minutes = _number()
    min_minutes = _number()
    max_minutes = _number()
    notice_minutes = _number()
    ahead_days = _number()
    day_hours = _hours()
    week_hours = _hours()
    bookings_ahead = _number()
    approval = models.CharField(max_length=6, choices=ApprovalChoice, blank=True, default="")
    approval_hours = _hours()
    pending_hours = _hours()
    no_show_minutes = _number()
    late_cancel_minutes = _number()

    class Meta:
        ordering: ClassVar = ["lane__name", "group__name", "pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["lane", "group"],
                name="bookings_policy_of_both",
                violation_error_message=_("There are rules for this lane and group already."),
            ),
            models.UniqueConstraint(
                fields=["lane"], condition=Q(group=None), name="bookings_policy_of_lane"
            ),
            models.UniqueConstraint(
                fields=["group"], condition=Q(lane=None), name="bookings_policy_of_group"
            ),
            models.UniqueConstraint(
                models.Value(1),
                condition=Q(lane=None, group=None),
                name="bookings_policy_of_all",
            ),
        ]

    def __str__(self) -> str:
        return f"rules of {self.lane or 'every lane'} for {self.group or 'everybody'}"
