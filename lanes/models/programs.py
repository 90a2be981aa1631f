"""What a host's programs are, as its worker asked them."""

from typing import ClassVar

from django.db import models

from lanes.models.hosts import Host
from lanes.telling import told


class LlamaServer(models.Model):
    """The llama-server of a host and the flags it takes. Written by the host's worker alone."""

    host = models.OneToOneField(Host, on_delete=models.CASCADE, related_name="llama_server")
    identity = models.TextField(
        help_text="Path, size and time of the file that was asked: another is asked anew."
    )
    version = models.CharField(max_length=100, blank=True)
    flags = models.JSONField(default=list, help_text="Every name; empty: nobody knows.")
    trouble = models.CharField(
        max_length=300, blank=True, help_text="Why it is not known; empty: it is."
    )
    words = models.JSONField(
        null=True, blank=True, help_text="What the trouble was made of: wire.words."
    )
    asked_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["host"]

    def __str__(self) -> str:
        return f"llama-server {self.version} on {self.host}"

    @property
    def told(self) -> str:
        """The trouble in the reader's language."""
        return told(self.trouble, self.words)
