"""Test loads: a preset's revision tried on a lane, and what came of it."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from lanes.models.lane import Lane, ManualChoice
from lanes.models.presets import PresetRevision
from lanes.telling import told


class Outcome(models.TextChoices):
    """How a test load ended."""

    RUNNING = "", _("running")
    PASSED = "passed", _("passed")
    FAILED = "failed", _("failed")
    INTERRUPTED = "interrupted", _("interrupted")
    STOPPED = "stopped", _("stopped")


class TestLoad(models.Model):
    """One test. Columns of the trial request are written by the host, the rest by
    `bookings.test_loads`. While it runs, the choice makes the planner run the revision."""

    __test__ = False  # it is no test of pytest's

    lane = models.ForeignKey(Lane, on_delete=models.CASCADE, related_name="test_loads")
    revision = models.ForeignKey(
        PresetRevision, on_delete=models.CASCADE, related_name="test_loads"
    )
    choice = models.OneToOneField(
        ManualChoice, null=True, on_delete=models.SET_NULL, related_name="test_load"
    )
    asked_at = models.DateTimeField()
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    outcome = models.CharField(max_length=11, choices=Outcome, blank=True, default="")
    ended_at = models.DateTimeField(null=True)
    load_seconds = models.FloatField(null=True)
    reason = models.CharField(max_length=500, blank=True, default="")
    advice = models.CharField(max_length=500, blank=True, default="")
    words = models.JSONField(null=True, help_text="What reason and advice were made of.")
    trial_asked_at = models.DateTimeField(null=True, help_text="When the host was told to ask it.")
    trial_ended_at = models.DateTimeField(null=True)
    tokens = models.PositiveIntegerField(null=True)
    tokens_per_second = models.FloatField(null=True)
    trial_note = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        ordering: ClassVar = ["-asked_at", "-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["lane"],
                condition=Q(ended_at__isnull=True),
                name="lanes_test_one_open",
                violation_error_message=_("A test load runs on this lane already."),
            )
        ]

    def __str__(self) -> str:
        return f"{self.revision} on {self.lane}: {self.outcome or 'running'}"

    @property
    def told_reason(self) -> str:
        """Why it ended so, in the reader's language."""
        return told(self.reason, (self.words or {}).get("reason"))

    @property
    def told_advice(self) -> str:
        """What to try, in the reader's language."""
        return told(self.advice, (self.words or {}).get("advice"))
