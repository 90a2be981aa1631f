"""What people chose, what calendars were told, and what waits to be sent."""

from typing import ClassVar

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from bookings.models import Booking
from lanes.audit_words import tell_choices
from lanes.models import Notice, Subject
from notices.events import Channel, Event

MOST_REMINDER_MINUTES = 24 * 60


class Preference(models.Model):
    """How one person is spoken to. Written by `notices.preferences` alone."""

    person = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="preference"
    )
    zone = models.CharField(max_length=64, blank=True, help_text="Empty: the installation's.")
    language = models.CharField(max_length=16, blank=True, help_text="Empty: the installation's.")
    choices = models.JSONField(
        default=dict, help_text="Event -> channels, where they are not the usual ones."
    )
    reminder_minutes = models.PositiveSmallIntegerField(
        default=10, validators=[MinValueValidator(1), MaxValueValidator(MOST_REMINDER_MINUTES)]
    )
    freed_minutes = models.PositiveIntegerField(
        default=120, help_text="Shorter time that becomes free is not told."
    )
    freed_days = models.PositiveSmallIntegerField(
        default=7, help_text="Time that becomes free later than that is not told."
    )
    feed_digest = models.CharField(
        max_length=64,
        blank=True,
        help_text="SHA-256 of the calendar's secret; empty: there is none.",
    )

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["feed_digest"], condition=~Q(feed_digest=""), name="notices_feed_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.person}: {self.zone or '-'} {self.language or '-'}"


class Entry(models.Model):
    """What a booking was when people and calendars were last told of it, and how often that was
    something else. Written by `notices.telling` alone."""

    booking = models.OneToOneField(Booking, on_delete=models.CASCADE, related_name="entry")
    sequence = models.PositiveIntegerField(default=0, help_text="SEQUENCE of RFC 5545.")
    lane_id_then = models.BigIntegerField()
    preset_id_then = models.BigIntegerField(null=True)
    start = models.DateTimeField()
    end = models.DateTimeField()
    state = models.CharField(max_length=20)
    owner_id_then = models.BigIntegerField(null=True)
    changed_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.booking_id}: {self.sequence}"


class EndpointKind(models.TextChoices):
    """By which way one is told."""

    WEBHOOK = Channel.WEBHOOK.value, Channel.WEBHOOK.label
    CHAT = Channel.CHAT.value, Channel.CHAT.label


tell_choices(Subject.ENDPOINT, "kind", EndpointKind.choices)
tell_choices(Subject.ENDPOINT, "events", Event.choices)


class Endpoint(models.Model):
    """A chat room or a program that is told for the whole installation."""

    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=7, choices=EndpointKind)
    sealed_url = models.TextField(help_text="Under SLOTSERVE_TABLE_KEYS.")
    shown = models.CharField(max_length=255, help_text="What may be shown of the address.")
    sealed_secret = models.TextField(blank=True, help_text="A webhook's; as the address.")
    events = models.JSONField(default=list, help_text="What it is told of.")
    is_on = models.BooleanField(default=True)
    created_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["name", "pk"]

    def __str__(self) -> str:
        return self.name


class Subscription(models.Model):
    """A browser that takes what is pushed to a person."""

    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="subscriptions"
    )
    digest = models.CharField(max_length=64, unique=True, help_text="SHA-256 of its address.")
    sealed = models.TextField(help_text="What the browser gave: address and keys.")
    browser = models.CharField(max_length=100, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["pk"]

    def __str__(self) -> str:
        return f"{self.person}: {self.browser}"


class Delivery(models.Model):
    """One telling by one way. Waits while `send_from` is set; claimed by compare and set."""

    class State(models.TextChoices):
        """How it ended, if it has."""

        WAITING = "waiting", _("Waiting")
        SENT = "sent", _("Sent")
        FAILED = "failed", _("Failed")
        IN_DOUBT = "in_doubt", _("Perhaps sent")
        MOOT = "moot", _("No longer true")

    channel = models.CharField(max_length=7, choices=Channel)
    notice = models.ForeignKey(
        Notice, null=True, on_delete=models.CASCADE, related_name="deliveries"
    )
    endpoint = models.ForeignKey(
        Endpoint, null=True, on_delete=models.CASCADE, related_name="deliveries"
    )
    subscription = models.ForeignKey(
        Subscription, null=True, on_delete=models.CASCADE, related_name="deliveries"
    )
    event = models.CharField(max_length=30)
    key = models.CharField(max_length=200)
    payload = models.JSONField(default=dict, help_text="What an endpoint is told.")
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    send_from = models.DateTimeField(null=True, help_text="Empty: it is not sent (again).")
    attempts = models.PositiveSmallIntegerField(default=0)
    status = models.PositiveSmallIntegerField(null=True, help_text="The last answer's, by HTTP.")
    reason = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField()
    tried_at = models.DateTimeField(null=True)
    replayed_at = models.DateTimeField(null=True, help_text="When somebody had it sent again.")

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["endpoint", "key"],
                condition=Q(endpoint__isnull=False),
                name="notices_endpoint_once",
            ),
            models.UniqueConstraint(
                fields=["notice"], condition=Q(channel="mail"), name="notices_mail_once"
            ),
            models.UniqueConstraint(
                fields=["notice", "subscription"],
                condition=Q(channel="push"),
                name="notices_push_once",
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["channel", "send_from"],
                condition=Q(send_from__isnull=False),
                name="notices_waiting",
            ),
            models.Index(fields=["endpoint", "-id"], name="notices_of_endpoint"),
        ]

    def __str__(self) -> str:
        return f"{self.channel} {self.key}: {self.state}"


class Link(models.Model):
    """A link that does one thing for its person without a log-in, once."""

    class Action(models.TextChoices):
        """What it does."""

        EXTEND = "extend", _("Extend")
        RELEASE = "release", _("Release")
        CONFIRM = "confirm", _("Confirm")

    digest = models.CharField(max_length=64, unique=True, help_text="SHA-256 of its secret.")
    booking = models.ForeignKey(Booking, on_delete=models.CASCADE, related_name="+")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    action = models.CharField(max_length=7, choices=Action)
    minutes = models.PositiveSmallIntegerField(default=0, help_text="By how much it extends.")
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["expires_at"], name="notices_link_expiry")]

    def __str__(self) -> str:
        return f"{self.action} {self.booking_id}"
