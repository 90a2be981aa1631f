"""What a host says of its cards, and a day and a week of each lane's use. Written by the host
only."""

from typing import ClassVar

from django.db import models

from lanes.models.hosts import Gpu, Host
from lanes.models.lane import Lane
from lanes.telling import told

MINUTES_KEPT = 24 * 60
STRETCH_MINUTES = 5
STRETCHES_KEPT = 7 * MINUTES_KEPT // STRETCH_MINUTES


class HostGpus(models.Model):
    """The driver of a host. One row a host; none: its worker has not looked yet."""

    host = models.OneToOneField(Host, on_delete=models.CASCADE, related_name="gpu_driver")
    read_at = models.DateTimeField(help_text="When this was last found to be so.")
    driver = models.CharField(max_length=80, blank=True, help_text="Its version; empty: none.")
    trouble = models.CharField(max_length=300, blank=True)
    words = models.JSONField(
        null=True, blank=True, help_text="What the trouble was made of: wire.words."
    )

    def __str__(self) -> str:
        return f"{self.host}: {self.trouble or self.driver or 'no NVIDIA driver'}"

    @property
    def told(self) -> str:
        """The trouble in the reader's language."""
        return told(self.trouble, self.words)


class GpuState(models.Model):
    """The newest reading of one card. What the driver does not tell is empty."""

    gpu = models.OneToOneField(Gpu, on_delete=models.CASCADE, related_name="state")
    read_at = models.DateTimeField()
    number = models.PositiveSmallIntegerField(null=True, help_text="Its index since this boot.")
    used_bytes = models.BigIntegerField(null=True)
    utilisation = models.PositiveSmallIntegerField(null=True, help_text="percent")
    power_watts = models.FloatField(null=True)
    temperature = models.SmallIntegerField(null=True, help_text="degrees Celsius")
    processes = models.JSONField(null=True, help_text="Holders; null: the driver does not tell.")
    verdict = models.JSONField(default=dict, help_text="Who is on it without being a lane's.")
    trouble = models.CharField(max_length=300, blank=True)
    words = models.JSONField(
        null=True, blank=True, help_text="What the trouble was made of: wire.words."
    )

    def __str__(self) -> str:
        return f"{self.gpu} at {self.read_at:%Y-%m-%d %H:%M:%S}"

    @property
    def told(self) -> str:
        """The trouble in the reader's language."""
        return told(self.trouble, self.words)


class LaneMinute(models.Model):
    """One minute of a lane's cards. A ring: a lane has at most one row for each minute of a day,
    and a new day writes over the last one."""

    lane = models.ForeignKey(Lane, on_delete=models.CASCADE, related_name="minutes")
    slot = models.PositiveSmallIntegerField(help_text="Minute of the day in UTC, 0 to 1439.")
    minute = models.DateTimeField(help_text="When it began.")
    samples = models.PositiveSmallIntegerField(default=1)
    used_bytes = models.BigIntegerField(help_text="The most that was in use, on all cards.")
    outside_bytes = models.BigIntegerField(help_text="The most of it that no lane held.")
    utilisation = models.FloatField(null=True, help_text="Mean percent over samples and cards.")
    power_watts = models.FloatField(null=True, help_text="Mean over samples, of all cards.")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["lane", "slot"], name="lanes_minute_once"),
            models.CheckConstraint(
                condition=models.Q(slot__lt=MINUTES_KEPT), name="lanes_minute_of_a_day"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.lane} {self.minute:%Y-%m-%d %H:%M}"


class LaneStretch(models.Model):
    """Five minutes of a lane's cards, made of their minutes. A ring of a week."""

    lane = models.ForeignKey(Lane, on_delete=models.CASCADE, related_name="stretches")
    slot = models.PositiveSmallIntegerField(help_text="Of the week in UTC, 0 to 2015.")
    minute = models.DateTimeField(help_text="When it began.")
    samples = models.PositiveSmallIntegerField(help_text="Of its minutes together.")
    used_bytes = models.BigIntegerField(help_text="The most that was in use, on all cards.")
    outside_bytes = models.BigIntegerField(help_text="The most of it that no lane held.")
    utilisation = models.FloatField(null=True, help_text="Mean percent over its minutes.")
    power_watts = models.FloatField(null=True, help_text="Mean over its minutes, of all cards.")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["lane", "slot"], name="lanes_stretch_once"),
            models.CheckConstraint(
                condition=models.Q(slot__lt=STRETCHES_KEPT), name="lanes_stretch_of_a_week"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.lane} {self.minute:%Y-%m-%d %H:%M}"
