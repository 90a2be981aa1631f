"""What people changed: the audit trail."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from lanes.telling import told


class Subject(models.TextChoices):
    """What was changed."""

    LANE = "lane", _("Lanes")
    PRESET = "preset", _("Presets")
    HOST = "host", _("Hosts")
    JOIN_TOKEN = "join_token", _("Join tokens")
    POLICY = "policy", _("Rules")
    MEMBER = "member", _("Members")
    GROUP = "group", _("Groups")
    INVITATION = "invitation", _("Invitations")
    TOKEN = "token", _("Tokens")
    BOOKING = "booking", _("Bookings of others")
    ANNOUNCEMENT = "announcement", _("Announcements")
    ENDPOINT = "endpoint", _("Webhooks and chat")


class AuditEntry(models.Model):
    """One change, by whom. Written once, by `lanes.audit`; never changed. It outlives what it is
    about, so it names that and does not refer to it."""

    at = models.DateTimeField()
    kind = models.CharField(max_length=40, help_text="For programs, such as lane.changed.")
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    actor_name = models.CharField(max_length=150, blank=True, help_text="Empty: SlotServe.")
    subject = models.CharField(max_length=20, choices=Subject)
    subject_id_then = models.BigIntegerField(null=True)
    subject_name = models.CharField(max_length=200)
    sentence = models.CharField(max_length=500)
    words = models.JSONField(null=True, help_text="What the sentence was made of: wire.words.")
    changes = models.JSONField(default=list, help_text="[field, old, new], as lanes.audit has it.")

    class Meta:
        ordering: ClassVar = ["-pk"]
        indexes: ClassVar = [
            models.Index(fields=["at"], name="lanes_audit_at"),
            models.Index(fields=["actor_name", "-id"], name="lanes_audit_by_person"),
            models.Index(fields=["subject", "-id"], name="lanes_audit_by_subject"),
        ]

    def __str__(self) -> str:
        return self.sentence

    @property
    def told(self) -> str:
        """The sentence in the reader's language and zone."""
        return told(self.sentence, self.words)


class AuditPruning(models.Model):
    """While entries that are too old are deleted: how old. Without a row here the database refuses
    to delete any (`lanes.audit_guards`). Written by `lanes.audit`, gone with its transaction."""

    before = models.DateTimeField()

    def __str__(self) -> str:
        return f"entries before {self.before:%Y-%m-%d %H:%M}"
