"""Hosts and their cards."""

from typing import ClassVar

from django.core.validators import RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy

from lanes.telling import told

SLUG_WORDS = (
    "use small letters, digits, dots, hyphens and underscores, starting with a letter or digit"
)
slug_validator = RegexValidator(r"^[a-z0-9][a-z0-9._-]*\Z", SLUG_WORDS)


class Host(models.Model):
    """A machine with GPUs, served by the Celery queue `host.<key>`; the key never changes."""

    key = models.CharField(max_length=63, unique=True, validators=[slug_validator], editable=False)
    name = models.CharField(max_length=100)
    address = models.CharField(
        max_length=255,
        default="127.0.0.1",
        help_text="Where model servers listen: loopback, or a private address that edges reach.",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    seen_at = models.DateTimeField(null=True, blank=True, help_text="Last look of its worker.")
    asked_at = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text="When it was first asked for a look that is overdue. Written by the beat.",
    )
    unreachable_since = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text="Since when nothing is known of it; empty: it answers. Written by the beat.",
    )
    alarms = models.JSONField(
        default=list,
        db_default=[],
        editable=False,
        help_text="Codes of the troubles that are not over yet. Written by the beat.",
    )
    alarm_times = models.JSONField(
        default=dict,
        db_default={},
        editable=False,
        help_text="Of each alarm: since when, and since when it is well. Written by the beat.",
    )

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name


class Driver(models.TextChoices):
    """What NVML, NVIDIA's library, says on a host."""

    NONE = "none", gettext_lazy("No driver")
    WELL = "well", gettext_lazy("Well")
    FAILING = "failing", gettext_lazy("Failing")


class HostReport(models.Model):
    """How a host is, as its worker says with its looks. Written by the worker alone."""

    host = models.OneToOneField(Host, on_delete=models.CASCADE, related_name="report")
    at = models.DateTimeField()
    version = models.CharField(max_length=100, help_text="The code that its worker runs.")
    machine = models.CharField(max_length=255, help_text="What the machine calls itself.")
    clock_skew = models.FloatField(
        help_text="Seconds by which its clock is ahead of the database's; negative: behind."
    )
    disk_free_bytes = models.BigIntegerField(help_text="Of the data folder's disk.")
    disk_total_bytes = models.BigIntegerField()
    driver = models.CharField(max_length=10, choices=Driver)
    driver_words = models.CharField(max_length=300, help_text="Version, or what is wrong.")
    words = models.JSONField(null=True, blank=True, help_text="What they were made of: wire.words.")
    servers_run_as = models.CharField(max_length=64, help_text="The Unix user of model servers.")
    is_user_shared = models.BooleanField(
        help_text="Whether model servers run as the worker's own user and could read its secrets."
    )

    def __str__(self) -> str:
        return f"{self.host} at {self.at:%Y-%m-%d %H:%M:%S}"

    @property
    def told(self) -> str:
        """The driver's words in the reader's language."""
        return told(self.driver_words, self.words)


class Gpu(models.Model):
    """One card of a host, known by its UUID (its index changes between boots)."""

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="gpus")
    uuid = models.CharField(max_length=64, unique=True)
    name = models.CharField(max_length=100)
    memory_bytes = models.BigIntegerField(default=0)

    class Meta:
        ordering: ClassVar = ["uuid"]

    def __str__(self) -> str:
        return f"{self.name} ({self.uuid})"
