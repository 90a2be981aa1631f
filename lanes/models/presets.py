"""Presets and their revisions."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy

from lanes.models.catalogue import ModelFile
from lanes.models.hosts import slug_validator
from lanes.telling import told


class Engine(models.TextChoices):
    """A kind of model server."""

    LLAMA_CPP = "llama.cpp", "llama.cpp"
    VLLM = "vllm", "vLLM"
    SGLANG = "sglang", "SGLang"
    COMFYUI = "comfyui", "ComfyUI"
    TRAINING = "training", gettext_lazy("Training service")
    COMMAND = "command", gettext_lazy("Any command")


class PresetQuerySet(models.QuerySet["Preset"]):
    """Which presets may be asked for."""

    def offered(self) -> "PresetQuerySet":
        """Those that can be booked, chosen, or a lane's default."""
        return self.filter(current__isnull=False, archived_at=None)


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
    archived_at = models.DateTimeField(
        null=True, blank=True, help_text="It is offered no more, and kept for its history."
    )

    objects = PresetQuerySet.as_manager()

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
    options = models.JSONField(
        default=dict, db_default={}, help_text="what its engine cannot know, such as a health path"
    )
    image = models.CharField(
        max_length=300, blank=True, db_default="", help_text="of a container; empty: a process"
    )
    notes = models.JSONField(default=list, help_text="what was left out of the arguments, and why")
    aliases = models.JSONField(default=list, help_text="other names that callers may use")
    is_draft = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Made for a test load; nothing else runs it until it is saved.",
    )
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

    @property
    def told_notes(self) -> list[str]:
        """The notes in the reader's language; those of earlier versions are kept as sentences."""
        return [told("", note) if isinstance(note, dict) else str(note) for note in self.notes]
