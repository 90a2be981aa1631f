"""What the pages keep: invitations."""

from datetime import datetime
from typing import ClassVar

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.utils.translation import gettext_lazy as _


class InvitationState(models.TextChoices):
    """Where an invitation stands: derived, never stored."""

    OPEN = "open", _("open")
    USED = "used", _("used")
    REVOKED = "revoked", _("revoked")
    EXPIRED = "expired", _("expired")


class Invitation(models.Model):
    """A link that makes one account, once, until it expires; its secret is kept as SHA-256."""

    digest = models.CharField(max_length=64, unique=True)
    email = models.EmailField(blank=True, help_text="Empty: for whoever has the link.")
    groups = models.ManyToManyField(Group, blank=True)
    is_administrator = models.BooleanField(default=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    used_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["-created_at", "-pk"]

    def __str__(self) -> str:
        return f"invitation {self.pk} for {self.email or 'anybody'}"

    def state(self, now: datetime) -> InvitationState:
        """Where it stands at this moment."""
        if self.used_at is not None:
            return InvitationState.USED
        if self.revoked_at is not None:
            return InvitationState.REVOKED
        return InvitationState.EXPIRED if self.expires_at <= now else InvitationState.OPEN
