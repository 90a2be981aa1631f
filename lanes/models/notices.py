"""What a person should know: shown in the app; `notices` sends it by other ways."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q

from lanes.models.lane import Lane
from lanes.telling import told


class Notice(models.Model):
    """One thing that one person should know, once. Written by `lanes.notices` alone."""

    recipient = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notices"
    )
    key = models.CharField(
        max_length=200, help_text="What it is about: a person gets one notice of each key."
    )
    kind = models.CharField(max_length=30)
    lane = models.ForeignKey(Lane, null=True, on_delete=models.CASCADE, related_name="+")
    sentence = models.CharField(max_length=500)
    advice = models.CharField(max_length=500, blank=True, db_default="")
    words = models.JSONField(
        null=True, help_text="What sentence and advice were made of, by these names: wire.words."
    )
    at = models.DateTimeField()
    read_at = models.DateTimeField(null=True)
    booking_id_for = models.BigIntegerField(null=True, help_text="The booking it is about.")
    routed_at = models.DateTimeField(
        null=True, help_text="Since when it waits to be sent by the ways that its person chose."
    )

    class Meta:
        ordering: ClassVar = ["-at", "-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["recipient", "key"], name="lanes_notice_once")
        ]
        indexes: ClassVar = [
            models.Index(fields=["recipient", "-at"], name="lanes_notice_newest"),
            models.Index(
                fields=["recipient"], condition=Q(read_at=None), name="lanes_notice_unread"
            ),
            models.Index(fields=["at"], condition=Q(routed_at=None), name="lanes_notice_unrouted"),
            models.Index(
                fields=["booking_id_for"],
                condition=Q(booking_id_for__isnull=False),
                name="lanes_notice_booking",
            ),
        ]

    def __str__(self) -> str:
        return self.sentence

    @property
    def told_sentence(self) -> str:
        """What is so, in the reader's language and zone."""
        return told(self.sentence, (self.words or {}).get("sentence"))

    @property
    def told_advice(self) -> str:
        """What to try, in the reader's language."""
        return told(self.advice, (self.words or {}).get("advice"))
