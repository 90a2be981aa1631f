"""Folders that are looked through for models, and the models that are known."""

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext, gettext_lazy

from lanes.models.hosts import Host
from lanes.telling import told
from wire.words import marked

A_PROJECTOR = marked(
    "It is a projector, not a model: put mmproj into its name and it goes with its model."
)
GONE = marked("Its file is not there any more: it cannot be loaded until it is back.")


class ModelFolder(models.Model):
    """A folder of a host whose worker looks through it. `path` is an administrator's, the rest
    the host's."""

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="model_folders")
    path = models.CharField(max_length=1024)
    added_at = models.DateTimeField(auto_now_add=True)
    scanned_at = models.DateTimeField(
        null=True, blank=True, help_text="When it was last looked through."
    )
    found = models.PositiveIntegerField(default=0, db_default=0, help_text="Models seen then.")
    trouble = models.CharField(max_length=1000, default="", db_default="", blank=True)
    words = models.JSONField(
        null=True, blank=True, help_text="What the trouble was made of: wire.words."
    )

    class Meta:
        ordering: ClassVar = ["path"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["host", "path"],
                name="lanes_modelfolder_once",
                violation_error_message=gettext_lazy("This folder is looked through already."),
            )
        ]

    def __str__(self) -> str:
        return self.path

    @property
    def told(self) -> str:
        """The trouble in the reader's language."""
        return told(self.trouble, self.words)


class ModelKind(models.TextChoices):
    """What form a model is in."""

    GGUF = "gguf", "GGUF"
    HUGGING_FACE = "huggingface", gettext_lazy("Hugging Face folder")
    OTHER = "other", gettext_lazy("Other")


class ModelFileQuerySet(models.QuerySet["ModelFile"]):
    """Which models are anybody's."""

    def listed(self) -> "ModelFileQuerySet":
        """Those that nobody has forgotten."""
        return self.filter(forgotten_at=None)


class ModelFile(models.Model):
    """Something a server can load: a GGUF file (of a split one the first part), a folder in
    Hugging Face's form, or a file or folder of another form, into which nobody looks.

    Host, path and name are given when it is registered or found; the rest is written by its host.
    """

    host = models.ForeignKey(Host, on_delete=models.PROTECT, related_name="model_files")
    path = models.CharField(max_length=1024)
    name = models.CharField(max_length=200)
    size_bytes = models.BigIntegerField(default=0)
    added_at = models.DateTimeField(auto_now_add=True)
    folder = models.ForeignKey(
        ModelFolder,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="model_files",
        help_text="Where it was found; empty: it was registered by hand.",
    )
    kind = models.CharField(
        max_length=20, choices=ModelKind, default=ModelKind.GGUF, db_default=ModelKind.GGUF
    )
    parts = models.PositiveIntegerField(
        default=1,
        db_default=1,
        help_text="Files that hold its weights; 0: a folder of another form, not looked through.",
    )
    projector_path = models.CharField(
        max_length=1024, default="", db_default="", blank=True, help_text="For images or sound."
    )
    architecture = models.CharField(max_length=64, default="", db_default="", blank=True)
    parameters = models.BigIntegerField(null=True, blank=True, help_text="Weights in all.")
    quantisation = models.CharField(max_length=64, default="", db_default="", blank=True)
    context_length = models.BigIntegerField(
        null=True, blank=True, help_text="Tokens it was trained for."
    )
    vocabulary_size = models.BigIntegerField(null=True, blank=True)
    has_chat_template = models.BooleanField(null=True, blank=True)
    fingerprint = models.CharField(
        max_length=32,
        default="",
        db_default="",
        blank=True,
        help_text="Of names, sizes, times and inodes when its headers were read; empty: to read.",
    )
    digests = models.JSONField(
        default=dict,
        db_default={},
        blank=True,
        help_text="SHA-256 of each file that holds weights, by name.",
    )
    digests_of = models.CharField(
        max_length=32,
        default="",
        db_default="",
        blank=True,
        help_text="The fingerprint that they belong to.",
    )
    is_hashed = models.BooleanField(
        default=False, db_default=False, help_text="Whether all of that fingerprint's are there."
    )
    missing_since = models.DateTimeField(
        null=True, blank=True, help_text="It is not there any more."
    )
    trouble = models.CharField(max_length=500, default="", db_default="", blank=True)
    words = models.JSONField(
        null=True, blank=True, help_text="What the trouble was made of: wire.words."
    )
    forgotten_at = models.DateTimeField(
        null=True, blank=True, help_text="It is off the list, and kept for what ran it."
    )

    objects = ModelFileQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["host", "path"],
                name="lanes_modelfile_once",
                violation_error_message=gettext_lazy(
                    "This file is already registered on that host."
                ),
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def sha256(self) -> dict[str, str]:
        """SHA-256 of each file that holds weights, by name; empty until all are known."""
        is_known = self.is_hashed and self.digests_of == self.fingerprint
        return dict(self.digests) if is_known else {}

    @property
    def warning(self) -> str:
        """A sentence for whoever would run it, in their language; empty when all is well as far
        as is known."""
        if self.missing_since is not None:
            return gettext(GONE)
        return told(self.trouble, self.words)
