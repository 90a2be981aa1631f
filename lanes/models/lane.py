"""Lanes, and what people want of them."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy

from lanes.models.hosts import Gpu, Host, slug_validator
from lanes.models.presets import Preset, PresetRevision
from lanes.telling import told


class Lane(models.Model):
    """A named group of GPUs on one host that runs one model server at a time."""

    slug = models.CharField(max_length=63, unique=True, validators=[slug_validator])
    name = models.CharField(max_length=100)
    host = models.ForeignKey(Host, on_delete=models.PROTECT, related_name="lanes")
    gpus = models.ManyToManyField(Gpu, blank=True, related_name="lanes")
    enabled = models.BooleanField(default=True)
    default_preset = models.ForeignKey(
        Preset, null=True, blank=True, on_delete=models.PROTECT, related_name="default_of"
    )
    needs_approval = models.BooleanField(default=False)
    restart_on_owner_change = models.BooleanField(
        default=False,
        help_text="Restart the server when another person's slot begins: a prefix cache can tell "
        "the next owner what the last one asked.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.slug


class LaneEvent(models.Model):
    """A sentence about a lane, for people; never changed, deleted when it is old."""

    lane = models.ForeignKey(Lane, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField()
    kind = models.CharField(max_length=30)
    sentence = models.CharField(max_length=500)
    words = models.JSONField(null=True, help_text="What the sentence was made of: wire.words.")
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    booking_id_for = models.BigIntegerField(null=True, help_text="The booking it is about, if any.")

    class Meta:
        ordering: ClassVar = ["-at", "-pk"]
        indexes: ClassVar = [
            models.Index(fields=["lane", "-at"], name="lanes_event_newest"),
            models.Index(fields=["booking_id_for", "-at"], name="lanes_event_of_booking"),
        ]

    def __str__(self) -> str:
        return self.sentence

    @property
    def told(self) -> str:
        """The sentence in the reader's language and zone."""
        return told(self.sentence, self.words)


class ManualChoice(models.Model):
    """An administrator's target (a preset, or unload) until a time. At most one is not ended."""

    lane = models.ForeignKey(Lane, on_delete=models.CASCADE, related_name="choices")
    preset = models.ForeignKey(
        Preset, null=True, blank=True, on_delete=models.PROTECT, related_name="chosen_on"
    )
    revision = models.ForeignKey(
        PresetRevision,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="Of a test load: this one rather than the preset's newest.",
    )
    made_at = models.DateTimeField()
    until = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering: ClassVar = ["-made_at"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(until__gt=F("made_at")),
                name="lanes_choice_ends_later",
                violation_error_message=gettext_lazy("A choice must end after it is made."),
            ),
            models.UniqueConstraint(
                fields=["lane"],
                condition=Q(ended_at__isnull=True),
                name="lanes_choice_one_open",
                violation_error_message=gettext_lazy("This lane already has a choice in force."),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.lane}: {self.preset or 'unload'} until {self.until:%Y-%m-%d %H:%M}"


class ReloadRequest(models.Model):
    """The newest wish to restart a lane's server and forget its failures. One row a lane."""

    lane = models.OneToOneField(Lane, on_delete=models.CASCADE, related_name="reload_request")
    asked_at = models.DateTimeField()
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    def __str__(self) -> str:
        return f"{self.lane}: reload asked {self.asked_at:%Y-%m-%d %H:%M:%S}"
