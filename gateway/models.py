"""API tokens, the order of route tables, and usage."""

from datetime import datetime
from typing import ClassVar

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser, User
from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy

from bookings.models import Booking, State
from lanes.audit_words import tell_choices
from lanes.models import Lane, Subject


class Scope(models.TextChoices):
    """What a token may be used for."""

    INFERENCE = "inference", gettext_lazy("Call models through the gateway")
    BOOKINGS = "bookings", gettext_lazy("See and change bookings")
    READ = "read", gettext_lazy("See lanes, presets and usage")
    ADMIN = "admin", gettext_lazy("Everything its owner may do")


tell_choices(Subject.TOKEN, "scopes", Scope.choices)


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    """Reads of tokens."""

    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> "ApiTokenQuerySet":
        """A person's own; administrators see all. Those of browsers' sessions nobody sees."""
        if not isinstance(user, User) or not user.is_active:
            return self.none()
        of_programs = self.filter(session="")
        return of_programs if user.is_staff else of_programs.filter(owner=user)

    def usable(self, now: datetime) -> "ApiTokenQuerySet":
        """Neither revoked nor expired nor without a lane left; their owner may still log in.

        One of a booking: while that is confirmed, not over and still its owner's; before it
        begins, too.
        """
        in_time = Q(expires_at__isnull=True) | Q(expires_at__gt=now)
        has_lane = Q(is_limited=False) | Exists(
            ApiToken.lanes.through.objects.filter(apitoken_id=OuterRef("pk"))
        )
        of_slot = Q(booking__state=State.CONFIRMED, booking__end__gt=now, booking__owner=F("owner"))
        is_right = Q(booking=None) & has_lane | of_slot
        return self.filter(in_time, is_right, revoked_at__isnull=True, owner__is_active=True)


class ApiToken(models.Model):
    """A program's credential: shown once, kept as SHA-256, revocable."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens"
    )
    name = models.CharField(max_length=100)
    prefix = models.CharField(
        max_length=12, help_text="The first characters, to tell tokens apart."
    )
    digest = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the token, hex.")
    scopes = models.JSONField(default=list)
    lanes = models.ManyToManyField(Lane, blank=True, help_text="None: every lane.")
    is_limited = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Made for some lanes only: when those are deleted it opens none, not all.",
    )
    booking = models.ForeignKey(
        Booking,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="tokens",
        help_text="Works for its lane and times alone, whatever becomes of them.",
    )
    requests_per_minute = models.PositiveIntegerField(
        null=True, blank=True, help_text="Through the gateway; empty: no limit but its owner's."
    )
    tokens_per_minute = models.PositiveIntegerField(
        null=True, blank=True, help_text="Of prompts and answers; empty: no limit but its owner's."
    )
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    session = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text="SHA-256 of the session of the pages that it is for, hex; empty: a program's.",
    )

    objects = ApiTokenQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=~Q(requests_per_minute=0) & ~Q(tokens_per_minute=0),
                name="gateway_token_limits_positive",
                violation_error_message=gettext_lazy(
                    "A token's limit is 1 or more; leave it empty for none."
                ),
            )
        ]

    def __str__(self) -> str:
        return f"{self.prefix}… ({self.name})"

    @property
    def is_over(self) -> bool:
        """Whether its time is over, by this process's clock: for pages; give it its booking."""
        ends = [self.expires_at, self.booking.end if self.booking else None]
        return any(end is not None and end <= timezone.now() for end in ends)


class MemberLimit(models.Model):
    """What one person may ask of the gateway a minute, with all tokens together.

    Empty: as everybody (SLOTSERVE_REQUESTS_PER_MINUTE, SLOTSERVE_TOKENS_PER_MINUTE); 0: no limit.
    """

    member = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="rate_limit"
    )
    requests_per_minute = models.PositiveIntegerField(
        null=True, blank=True, help_text="Empty: as everybody. 0: no limit."
    )
    tokens_per_minute = models.PositiveIntegerField(
        null=True, blank=True, help_text="Of prompts and answers. Empty: as everybody. 0: no limit."
    )

    class Meta:
        ordering: ClassVar = ["member__username"]

    def __str__(self) -> str:
        return f"limits of {self.member}"


class TableState(models.Model):
    """The number of the last route table. One row, locked before the facts are read."""

    version = models.BigIntegerField(default=0)
    digest = models.CharField(max_length=64, blank=True, help_text="Of the parts last published.")

    def __str__(self) -> str:
        return f"route table {self.version}"


class UsageRecord(models.Model):
    """One request that the edge has answered or refused. Never a prompt, never an answer."""

    request_id = models.CharField(max_length=36, unique=True)
    at = models.DateTimeField()
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="usage"
    )
    token = models.ForeignKey(ApiToken, null=True, on_delete=models.SET_NULL, related_name="usage")
    lane = models.ForeignKey(Lane, null=True, on_delete=models.SET_NULL, related_name="usage")
    booking_id_for = models.BigIntegerField(null=True)
    preset = models.CharField(max_length=63, blank=True)
    route = models.CharField(max_length=100)
    status = models.PositiveSmallIntegerField()
    code = models.CharField(max_length=40, blank=True, help_text="The refusal's code, if refused.")
    duration_ms = models.FloatField()
    queue_ms = models.FloatField(
        default=0,
        db_default=0,
        help_text="Of the duration: waiting for a load, a switch or a free slot.",
    )
    first_byte_ms = models.FloatField(null=True)
    bytes_in = models.BigIntegerField(default=0)
    bytes_out = models.BigIntegerField(default=0)
    is_aborted = models.BooleanField(default=False)
    prompt_tokens = models.PositiveIntegerField(null=True)
    completion_tokens = models.PositiveIntegerField(null=True)
    cached_tokens = models.PositiveIntegerField(
        null=True, help_text="Of the prompt's: read from the server's cache."
    )
    is_estimated = models.BooleanField(
        default=False,
        db_default=False,
        help_text="The completion's tokens are events of a stream that told no count.",
    )

    class Meta:
        ordering: ClassVar = ["-at", "-pk"]
        indexes: ClassVar = [
            models.Index(fields=["owner", "-at"], name="gateway_usage_of_owner"),
            models.Index(fields=["booking_id_for", "at"], name="gateway_usage_of_booking"),
            models.Index(fields=["at"], name="gateway_usage_by_time"),
        ]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.route} {self.status}"


class UsageDayQuerySet(models.QuerySet["UsageDay"]):
    """Reads of usage by day."""

    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> "UsageDayQuerySet":
        """A person's own; administrators see all."""
        if not isinstance(user, User) or not user.is_active:
            return self.none()
        return self if user.is_staff else self.filter(owner_id_for=user.pk)


class UsageDay(models.Model):
    """What one member did on a lane with a preset on one day of the site's zone, in one booking or
    outside of any. Written by `gateway.usage_days` alone; names outlive what they name."""

    day = models.DateField()
    owner_id_for = models.BigIntegerField()
    owner_name = models.CharField(max_length=150)
    lane_id_for = models.BigIntegerField(default=0, help_text="0: no lane was asked.")
    lane_name = models.CharField(max_length=100, blank=True)
    preset = models.CharField(max_length=63, blank=True)
    booking_id_for = models.BigIntegerField(default=0, help_text="0: outside of bookings.")
    used_seconds = models.FloatField(default=0)
    loading_seconds = models.FloatField(default=0)
    idle_seconds = models.FloatField(default=0)
    unmeasured_seconds = models.FloatField(default=0, help_text="Of bookings of the whole GPU.")
    requests = models.PositiveIntegerField(default=0)
    refused = models.PositiveIntegerField(default=0, help_text="Of the requests.")
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    completion_tokens = models.PositiveBigIntegerField(default=0)

    objects = UsageDayQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-day", "pk"]
        indexes: ClassVar = [
            models.Index(fields=["owner_id_for", "day"], name="gateway_day_of_owner"),
            models.Index(fields=["booking_id_for"], name="gateway_day_of_booking"),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["day", "owner_id_for", "lane_id_for", "preset", "booking_id_for"],
                name="gateway_usage_day_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.day} {self.owner_name} {self.lane_name} {self.preset}"


class UsageDueDay(models.Model):
    """A day whose usage must be worked out again."""

    day = models.DateField(unique=True)

    class Meta:
        ordering: ClassVar = ["-day"]

    def __str__(self) -> str:
        return f"{self.day}"


class UsageProgress(models.Model):
    """How far usage has been looked through for days that are due. One row."""

    zone = models.CharField(max_length=100, help_text="Whose midnights part the days.")
    through = models.DateField(help_text="The day of the newest look.")
    last_record = models.BigIntegerField(default=0, help_text="The newest record looked at.")
    kept_from = models.DateField(
        null=True,
        help_text="Days before it are not worked out again: their requests are forgotten.",
    )

    def __str__(self) -> str:
        return f"usage through {self.through}"
