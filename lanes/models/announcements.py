"""What administrators tell everybody, as a banner over all pages."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _


class Level(models.TextChoices):
    """How loud it is."""

    INFO = "info", _("Information")
    WARNING = "warning", _("Warning")
    DANGER = "danger", _("Trouble")


class Announcement(models.Model):
    """Plain text that is shown from a time on, until another. Written by `lanes.announcements`."""

    text = models.CharField(max_length=300)
    level = models.CharField(max_length=10, choices=Level, default=Level.INFO)
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField(null=True, blank=True, help_text="Empty: until it is ended.")
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering: ClassVar = ["-starts_at", "-pk"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(ends_at=None) | Q(ends_at__gt=F("starts_at")),
                name="lanes_announcement_ends_later",
                violation_error_message=_("An announcement must end after it starts."),
            )
        ]

    def __str__(self) -> str:
        return self.text
