"""Hosts, lanes, models, presets; what a lane should run (its order) and what runs (its runtime).

Every column has one writer: an `Order` is written by the planner, a `Runtime` and a `LoadRecord`
by the lane's host, the rest by `lanes.services`.
"""

from typing import ClassVar

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import F, Q

SLUG_WORDS = (
    "use small letters, digits, dots, hyphens and underscores, starting with a letter or digit"
)
slug_validator = RegexValidator(r"^[a-z0-9][a-z0-9._-]*\Z", SLUG_WORDS)


class Engine(models.TextChoices):
    """A kind of model server."""

    LLAMA_CPP = "llama.cpp", "llama.cpp"


class Phase(models.TextChoices):
    """Where a model server is in its life."""

    STOPPED = "stopped", "Stopped"
    STARTING = "starting", "Starting"
    READY = "ready", "Ready"
    DRAINING = "draining", "Draining"
    STOPPING = "stopping", "Stopping"
    FAILED = "failed", "Failed"


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

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name


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


class ModelFile(models.Model):
    """Something a server can load: for llama.cpp a GGUF file on a host."""

    host = models.ForeignKey(Host, on_delete=models.PROTECT, related_name="model_files")
    path = models.CharField(max_length=1024)
    name = models.CharField(max_length=200)
    size_bytes = models.BigIntegerField(default=0)
    added_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["host", "path"],
                name="lanes_modelfile_once",
                violation_error_message="This file is already registered on that host.",
            )
        ]

    def __str__(self) -> str:
        return self.name


class Preset(models.Model):
    """A model file with engine, arguments and environment, under the name that callers use.

    What it says is in its revisions; every edit adds one. `current` is the newest.
    """

    slug = models.CharField(max_length=63, unique=True, validators=[slug_validator])
    name = models.CharField(max_length=100)
    current = models.ForeignKey(
        "PresetRevision", null=True, on_delete=models.PROTECT, related_name="+", editable=False
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["slug"]

    def __str__(self) -> str:
        return self.slug


class PresetRevision(models.Model):
    """One unchanging version of a preset: a target that a lane can be ordered to run."""

    preset = models.ForeignKey(Preset, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    model_file = models.ForeignKey(ModelFile, on_delete=models.PROTECT, related_name="revisions")
    engine = models.CharField(max_length=20, choices=Engine, default=Engine.LLAMA_CPP)
    arguments = models.JSONField(default=list, help_text="argv list, without SlotServe's own flags")
    environment = models.JSONField(default=dict, help_text="names and values, allow-listed")
    notes = models.JSONField(default=list, help_text="what was left out of the arguments, and why")
    aliases = models.JSONField(default=list, help_text="other names that callers may use")
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering: ClassVar = ["preset", "-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["preset", "number"], name="lanes_revision_number_once")
        ]

    def __str__(self) -> str:
        return f"{self.preset} r{self.number}"


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
        max_length=63, default="", help_text="Its preset then; empty for the whole GPU."
    )
    owner_id_for = models.BigIntegerField(null=True, help_text="Whose slot is in progress.")
    is_fallback = models.BooleanField(default=False)
    sentence = models.CharField(max_length=500)
    reconsider_at = models.DateTimeField(null=True)
    decided_at = models.DateTimeField()
    reload_asked_at = models.DateTimeField(
        null=True, help_text="The newest reload that this order has already carried out."
    )

    def __str__(self) -> str:
        return f"{self.lane} g{self.generation}: {self.target or 'nothing'}"


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
    signals_sent = models.PositiveSmallIntegerField(default=0, help_text="TERM, TERM, KILL: 0 to 3")
    shim_pid = models.BigIntegerField(null=True)
    pid = models.BigIntegerField(null=True)
    start_ticks = models.BigIntegerField(null=True, help_text="The kernel's start time of pid.")
    address = models.CharField(max_length=255)
    port = models.PositiveIntegerField()
    sealed_key = models.TextField(help_text="The server's API key, under SLOTSERVE_TABLE_KEYS.")
    exit_status = models.IntegerField(null=True)
    reason = models.CharField(max_length=500, blank=True)
    log_path = models.CharField(max_length=1024, blank=True)

    class Meta:
        ordering: ClassVar = ["-generation", "-pk"]
        indexes: ClassVar = [models.Index(fields=["lane", "-id"], name="lanes_runtime_newest")]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["lane"],
                condition=Q(ended_at__isnull=True),
                name="lanes_runtime_one_alive",
                violation_error_message="This lane already has a model server.",
            )
        ]

    def __str__(self) -> str:
        return f"{self.lane} g{self.generation} {self.phase}"


class PresetFailure(models.Model):
    """How often in a row a preset revision failed on a lane. Written by the host; cleared, never
    deleted, by success, a reload, or the end of the booking it was for."""

    lane = models.ForeignKey(Lane, on_delete=models.CASCADE, related_name="failures")
    revision = models.ForeignKey(PresetRevision, on_delete=models.CASCADE, related_name="+")
    count = models.PositiveIntegerField(default=0, help_text="Failures in a row; 0: none in force.")
    failed_at = models.DateTimeField(null=True)
    reason = models.CharField(max_length=500, blank=True)
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


class LaneEvent(models.Model):
    """A sentence about a lane, for people; append only."""

    lane = models.ForeignKey(Lane, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField()
    kind = models.CharField(max_length=30)
    sentence = models.CharField(max_length=500)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering: ClassVar = ["-at", "-pk"]
        indexes: ClassVar = [models.Index(fields=["lane", "-at"], name="lanes_event_newest")]

    def __str__(self) -> str:
        return self.sentence


class ManualChoice(models.Model):
    """An administrator's target (a preset, or unload) until a time. At most one is not ended."""

    lane = models.ForeignKey(Lane, on_delete=models.CASCADE, related_name="choices")
    preset = models.ForeignKey(
        Preset, null=True, blank=True, on_delete=models.PROTECT, related_name="chosen_on"
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
                violation_error_message="A choice must end after it is made.",
            ),
            models.UniqueConstraint(
                fields=["lane"],
                condition=Q(ended_at__isnull=True),
                name="lanes_choice_one_open",
                violation_error_message="This lane already has a choice in force.",
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
