"""Series: bookings that were made together, at the same times on the wall."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from bookings.recurrence import Every


class Repeat(models.TextChoices):
    """How often, in words; the values are those of `recurrence.Every`."""

    DAY = Every.DAY.value, _("Every day")
    WEEKDAY = Every.WEEKDAY.value, _("Monday to Friday")
    WEEK = Every.WEEK.value, _("Every week")


class Series(models.Model):
    """What bookings of a series were made from. Each booking has a life of its own since then."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="series"
    )
    zone = models.CharField(max_length=64, help_text="Whose clock the times are of.")
    every = models.CharField(max_length=8, choices=Repeat)
    days = models.JSONField(default=list, help_text="Of the week, if weekly; 0 is Monday.")
    until = models.DateField(null=True, blank=True)
    count = models.PositiveSmallIntegerField(null=True, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["-pk"]
        verbose_name_plural = "series"

    def __str__(self) -> str:
        return f"#{self.pk} {self.every}"
