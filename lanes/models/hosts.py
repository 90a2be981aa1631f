"""Hosts, their cards and model files."""

from typing import ClassVar

from django.core.validators import RegexValidator
from django.db import models

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
