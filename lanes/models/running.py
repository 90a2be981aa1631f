"""What a lane should run (its order), what runs (its runtime), and how loads went."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy

from lanes.models.lane import Lane
from lanes.models.presets import PresetRevision
from lanes.telling import told


class Phase(models.TextChoices):
    """Where a model server is in its life."""

    STOPPED = "stopped", gettext_lazy("Stopped")
    STARTING = "starting", gettext_lazy("Starting")
    READY = "ready", gettext_lazy("Ready")
    DRAINING = "draining", gettext_lazy("Draining")
    STOPPING = "stopping", gettext_lazy("Stopping")
    FAILED = "failed", gettext_lazy("Failed")


class Order(models.Model):
    """What the planner wants of a lane. Written by the planner only."""

    lane = models.OneToOneField(Lane, on_delete=models.CASCADE, related_name="order")
    target = models.ForeignKey(
        PresetRevision, null=True, on_delete=models.PROTECT, related_name="+"
    )
    generation = models.PositiveBigIntegerField(
        default=0, help_text="Rises for a new target, a reload, or an owner-change restart."
    )
    is_reload = models.BooleanField(default=False, help_text="This generation skips the drain.")
    fresh_from = models.PositiveBigIntegerField(
        default=0,
        db_default=0,
        help_text="Only a server of this generation or a newer one will do: the generation of the "
        "newest reload or owner-change restart.",
    )
    ordered_at = models.DateTimeField(help_text="When this generation was ordered.")
    rule = models.PositiveSmallIntegerField(default=5)
    booking_id_for = models.BigIntegerField(
        null=True, help_text="The booking that rules 1 to 3 serve: the commitment."
    )
    booking_start_for = models.DateTimeField(
        null=True, help_text="That booking's start when this was decided: it may move since."
    )
    booking_preset_for = models.CharField(
        max_length=63,
        default="",
        db_default="",
        help_text="Its preset then; empty for the whole GPU.",
    )
    owner_id_for = models.BigIntegerField(null=True, help_text="Whose slot is in progress.")
    is_fallback = models.BooleanField(default=False)
    sentence = models.CharField(max_length=500)
    words = models.JSONField(null=True, help_text="What the sentence was made of: wire.words.")
    reconsider_at = models.DateTimeField(null=True)
    decided_at = models.DateTimeField()
    reload_asked_at = models.DateTimeField(
        null=True, help_text="The newest reload that this order has already carried out."
    )

    def __str__(self) -> str:
        return f"{self.lane} g{self.generation}: {self.target or 'nothing'}"

    @property
    def told(self) -> str:
        """The sentence in the reader's language and zone."""
        return told(self.sentence, self.words)

    @property
    def is_in_slot(self) -> bool:
        """Whether a slot is in progress: the planner's rule 1."""
        return self.rule == 1 and self.booking_id_for is not None

    @property
    def is_for_whole_gpu(self) -> bool:
        """Whether a whole-GPU slot is in progress or near, so that no server may run."""
        return self.target_id is None and self.booking_id_for is not None


class Runtime(models.Model):
    """One model server process, as its host reports it. Written by the host only."""

    lane = models.ForeignKey(Lane, on_delete=models.PROTECT, related_name="runtimes")
    revision = models.ForeignKey(PresetRevision, on_delete=models.PROTECT, related_name="+")
    generation = models.PositiveBigIntegerField()
    phase = models.CharField(max_length=10, choices=Phase, default=Phase.STARTING)
    phase_since = models.DateTimeField()
    started_at = models.DateTimeField()
    ready_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True, help_text="Set when the process is gone.")
    drain_until = models.DateTimeField(null=True)
    term_at = models.DateTimeField(null=True)
    signals_sent = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="TERM, TERM, KILL: 0 to 3"
    )
    shim_pid = models.BigIntegerField(null=True)
    pid = models.BigIntegerField(null=True)
    start_ticks = models.BigIntegerField(null=True, help_text="The kernel's start time of pid.")
    address = models.CharField(max_length=255)
    port = models.PositiveIntegerField()
    sealed_key = models.TextField(help_text="The server's API key, under SLOTSERVE_TABLE_KEYS.")
    slots = models.PositiveIntegerField(
        null=True, help_text="Requests it works on at once; empty: nobody knows."
    )
    context_length = models.PositiveIntegerField(null=True, help_text="Tokens for one request.")
    capabilities = models.JSONField(
        default=list, db_default=[], help_text="Such as completion, vision, rerank."
    )
    gpu_bytes = models.BigIntegerField(
        null=True, help_text="The most GPU memory it was seen to hold while ready."
    )
    exit_status = models.IntegerField(null=True)
    reason = models.CharField(max_length=500, blank=True)
    failure_kind = models.CharField(max_length=30, blank=True, default="", db_default="")
    failure_line = models.CharField(max_length=500, blank=True, default="", db_default="")
    failure_advice = models.CharField(max_length=500, blank=True, default="", db_default="")
    words = models.JSONField(
        null=True, help_text="What reason and advice were made of, by these names: wire.words."
    )
    log_path = models.CharField(max_length=1024, blank=True)

    class Meta:
        ordering: ClassVar = ["-generation", "-pk"]
        indexes: ClassVar = [
            models.Index(fields=["lane", "-id"], name="lanes_runtime_newest"),
            models.Index(fields=["lane", "ended_at"], name="lanes_runtime_by_end"),
            models.Index(
                fields=["revision", "-id"],
                condition=Q(context_length__isnull=False),
                name="lanes_runtime_facts",
            ),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["lane"],
                condition=Q(ended_at__isnull=True),
                name="lanes_runtime_one_alive",
                violation_error_message=gettext_lazy("This lane already has a model server."),
            )
        ]

    def __str__(self) -> str:
        return f"{self.lane} g{self.generation} {self.phase}"

    @property
    def told_reason(self) -> str:
        """Why it failed, in the reader's language."""
        return told(self.reason, (self.words or {}).get("reason"))

    @property
    def told_advice(self) -> str:
        """What to try, in the reader's language."""
        return told(self.failure_advice, (self.words or {}).get("advice"))


class PresetFailure(models.Model):
    """How often in a row a preset revision failed on a lane. Written by the host; cleared, never
    deleted, by success, a reload, or the end of the booking it was for."""

    lane = models.ForeignKey(Lane, on_delete=models.CASCADE, related_name="failures")
    revision = models.ForeignKey(PresetRevision, on_delete=models.CASCADE, related_name="+")
    count = models.PositiveIntegerField(default=0, help_text="Failures in a row; 0: none in force.")
    since = models.DateTimeField(null=True, help_text="When the first of them in a row was.")
    failed_at = models.DateTimeField(null=True)
    reason = models.CharField(max_length=500, blank=True)
    failure_kind = models.CharField(max_length=30, blank=True, default="", db_default="")
    failure_line = models.CharField(max_length=500, blank=True, default="", db_default="")
    failure_advice = models.CharField(max_length=500, blank=True, default="", db_default="")
    words = models.JSONField(
        null=True, help_text="What reason and advice were made of, by these names: wire.words."
    )
    booking_id_for = models.BigIntegerField(null=True)
    last_exit_at = models.DateTimeField(
        null=True, help_text="Last exit after a minute or more of being ready."
    )

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["lane", "revision"], name="lanes_failure_once")
        ]

    def __str__(self) -> str:
        return f"{self.revision} on {self.lane}: {self.count}"

    @property
    def told_reason(self) -> str:
        """Why it failed, in the reader's language."""
        return told(self.reason, (self.words or {}).get("reason"))

    @property
    def told_advice(self) -> str:
        """What to try, in the reader's language."""
        return told(self.failure_advice, (self.words or {}).get("advice"))


class LoadRecord(models.Model):
    """One load that came to its end: seconds from spawn to ready, or to failure."""

    lane = models.ForeignKey(Lane, on_delete=models.CASCADE, related_name="loads")
    revision = models.ForeignKey(PresetRevision, on_delete=models.CASCADE, related_name="loads")
    generation = models.PositiveBigIntegerField()
    started_at = models.DateTimeField()
    seconds = models.FloatField()
    succeeded = models.BooleanField()
    reason = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering: ClassVar = ["-started_at", "-pk"]
        indexes: ClassVar = [
            models.Index(
                fields=["lane", "revision", "-started_at"],
                condition=Q(succeeded=True),
                name="lanes_load_newest",
            )
        ]

    def __str__(self) -> str:
        return f"{self.revision} on {self.lane}: {self.seconds:.1f} s"
