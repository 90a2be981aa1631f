"""Tokens with which a machine becomes a host."""

from datetime import datetime
from enum import StrEnum

from django.conf import settings
from django.db import models


class TokenState(StrEnum):
    """What a join token is good for."""

    WAITING = "waiting"  # for its machine
    USED = "used"
    REVOKED = "revoked"
    EXPIRED = "expired"


class JoinToken(models.Model):
    """The right to become one host, once and soon. Only the SHA-256 of its text is kept."""

    digest = models.CharField(max_length=64, unique=True)
    key = models.CharField(max_length=63)
    name = models.CharField(max_length=100)
    address = models.CharField(max_length=255)
    made_at = models.DateTimeField()
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    machine = models.CharField(
        max_length=64,
        default="",
        db_default="",
        help_text="SHA-256 of what the machine that used it says of itself: it may ask again.",
    )
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"join {self.key} until {self.expires_at:%Y-%m-%d %H:%M}"

    def state(self, now: datetime) -> TokenState:
        """Where it stands at `now`."""
        if self.revoked_at is not None:
            return TokenState.REVOKED
        if self.used_at is not None:
            return TokenState.USED
        return TokenState.WAITING if now < self.expires_at else TokenState.EXPIRED
