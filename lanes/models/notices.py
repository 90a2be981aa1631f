"""What a person should know: shown in the app and sent by e-mail."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q

from lanes.models.lane import Lane


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
    at = models.DateTimeField()
    read_at = models.DateTimeField(null=True)
    mail_from = models.DateTimeField(
        null=True, help_text="From when it may be sent by e-mail; empty: it has been, or is not."
    )
    mail_attempts = models.PositiveSmallIntegerField(default=0, db_default=0)

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
            models.Index(
                fields=["mail_from"], condition=Q(mail_from__isnull=False), name="lanes_notice_mail"
            ),
        ]

    def __str__(self) -> str:
        return self.sentence
