"""Times in which nothing runs on a lane, whoever has booked it."""

from datetime import datetime
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from lanes.models.lane import Lane


class Maintenance(models.Model):
    """[start, end) of a lane, or from start on. It may overlap bookings: they stay, and what is
    left of them counts again when it is over. Written by `bookings.maintenance`."""

    lane = models.ForeignKey(Lane, on_delete=models.CASCADE, related_name="maintenance")
    start = models.DateTimeField()
    end = models.DateTimeField(null=True, blank=True, help_text="Empty: until it is ended.")
    reason = models.CharField(max_length=200, blank=True)
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    ended_at = models.DateTimeField(
        null=True, help_text="It was ended then, or called off if that is before its start."
    )

    class Meta:
        ordering: ClassVar = ["start", "pk"]
        indexes: ClassVar = [
            models.Index(
                fields=["lane", "start"],
                condition=Q(ended_at__isnull=True),
                name="lanes_maintenance_open",
            )
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(end=None) | Q(end__gt=F("start")),
                name="lanes_maintenance_ends_later",
                violation_error_message=_("A maintenance must end after it starts."),
            )
        ]

    def __str__(self) -> str:
        return f"{self.lane} {self.start:%Y-%m-%d %H:%M}"

    def is_in_force(self, now: datetime) -> bool:
        """Whether nothing may run at `now` because of it."""
        is_over = self.ended_at is not None or (self.end is not None and self.end <= now)
        return self.start <= now and not is_over
