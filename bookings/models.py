"""Bookings: a member's claim on a lane for [start, end)."""

from datetime import datetime
from typing import ClassVar

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import DateTimeRangeField, RangeBoundary, RangeOperators
from django.db import models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor as Editor
from django.db.models import F, Func, Q
from django.utils.translation import gettext_lazy

from bookings.policy_rows import Policy
from bookings.querysets import BookingQuerySet, WaitingQuerySet
from bookings.series_rows import Series
from bookings.share_rows import BookingShare
from bookings.states import (
    LONGEST_COMMENT,
    OCCUPYING,
    OVERLAP_CONSTRAINT,
    Kind,
    Lapse,
    State,
    Status,
)
from lanes.audit_words import tell_choices
from lanes.models import Lane, Preset, PresetRevision, Subject
from wire.words import said

__all__ = [
    "OCCUPYING",
    "Booking",
    "BookingShare",
    "Kind",
    "Lapse",
    "Policy",
    "Series",
    "State",
    "Status",
    "Waiting",
]

tell_choices(Subject.BOOKING, "state", State.choices)


class TstzRange(Func):
    """tstzrange(start, end, '[)')."""

    function = "TSTZRANGE"
    output_field = DateTimeRangeField()


class PostgresExclusion(ExclusionConstraint):
    """The exclusion constraint, made only where the database knows it; SQLite has triggers."""

    # The stubs say str; Django itself takes None as "nothing to do".
    def constraint_sql(  # type: ignore[override]
        self, model: type[models.Model], schema_editor: Editor
    ) -> str | None:
        """The clause of CREATE TABLE, or None."""
        known = _knows_exclusion(schema_editor)
        return super().constraint_sql(model, schema_editor) if known else None

    def create_sql(  # type: ignore[override]
        self, model: type[models.Model], schema_editor: Editor
    ) -> str | None:
        """The statement that adds it, or None."""
        known = _knows_exclusion(schema_editor)
        return super().create_sql(model, schema_editor) if known else None

    def remove_sql(  # type: ignore[override]
        self, model: type[models.Model], schema_editor: Editor
    ) -> str | None:
        """The statement that removes it, or None."""
        known = _knows_exclusion(schema_editor)
        return super().remove_sql(model, schema_editor) if known else None

    def validate(self, *args: object, **kwargs: object) -> None:
        """The service checks with words; the database has the last one."""


def _knows_exclusion(schema_editor: Editor) -> bool:
    return schema_editor.connection.vendor == "postgresql"


class Booking(models.Model):
    """A claim on a lane. In progress from max(start, confirmed_at) until end, when confirmed."""

    lane = models.ForeignKey(Lane, on_delete=models.PROTECT, related_name="bookings")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="bookings"
    )
    kind = models.CharField(max_length=5, choices=Kind, default=Kind.MODEL)
    preset = models.ForeignKey(
        Preset, null=True, blank=True, on_delete=models.PROTECT, related_name="bookings"
    )
    pinned_revision = models.ForeignKey(
        PresetRevision,
        null=True,
        on_delete=models.PROTECT,
        related_name="+",
        editable=False,
        help_text="Set by the planner when the target is first ordered.",
    )
    start = models.DateTimeField()
    end = models.DateTimeField()
    original_end = models.DateTimeField(help_text="The end before an early release.")
    state = models.CharField(max_length=9, choices=State, default=State.CONFIRMED)
    purpose = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField()
    confirmed_at = models.DateTimeField(null=True, blank=True)
    released_at = models.DateTimeField(null=True, blank=True)
    asked_at = models.DateTimeField(
        null=True, help_text="Since when it waits for approval, or last did."
    )
    first_request_at = models.DateTimeField(
        null=True, help_text="The first request in its time that was answered; the gateway tells."
    )
    lapse = models.CharField(
        max_length=11,
        choices=Lapse,
        blank=True,
        default="",
        db_default="",
        help_text="Quotas count it whole: it was cancelled late, or nobody came.",
    )
    owner_since = models.DateTimeField(
        null=True, editable=False, help_text="Since when it is its owner's, if it was another's."
    )
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    decision_comment = models.CharField(
        max_length=LONGEST_COMMENT,
        blank=True,
        default="",
        db_default="",
        help_text="What was said by whoever approved or rejected it.",
    )
    held_until = models.DateTimeField(
        null=True, help_text="A hold lapses then, if its member has not confirmed it."
    )
    series = models.ForeignKey(
        Series, null=True, blank=True, on_delete=models.SET_NULL, related_name="bookings"
    )

    objects = BookingQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["start", "pk"]
        indexes: ClassVar = [
            models.Index(
                fields=["lane", "end"],
                condition=Q(state__in=("pending", "confirmed", "held")),
                name="bookings_occupying",
            ),
            # SQLite uses no partial index for bound values, and the planner reads this often.
            models.Index(fields=["lane", "state", "end"], name="bookings_by_end"),
            models.Index(fields=["owner", "-start"], name="bookings_of_owner"),
            models.Index(fields=["owner", "original_end"], name="bookings_of_owner_by_end"),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(end__gt=F("start")),
                name="bookings_ends_after_start",
                violation_error_message=gettext_lazy("A booking must end after it starts."),
            ),
            models.CheckConstraint(
                condition=Q(kind="gpu", preset__isnull=True)
                | Q(kind="model", preset__isnull=False),
                name="bookings_preset_fits_kind",
                violation_error_message=gettext_lazy(
                    "Name a preset, or book the whole GPU without one."
                ),
            ),
            models.CheckConstraint(
                condition=~Q(state="confirmed") | Q(confirmed_at__isnull=False),
                name="bookings_confirmed_has_time",
            ),
            # Another state would slip past the overlap guards, which list those that occupy.
            models.CheckConstraint(
                condition=Q(
                    state__in=("pending", "confirmed", "rejected", "cancelled", "expired", "held")
                ),
                name="bookings_state_known",
                violation_error_message=gettext_lazy("There is no such state of a booking."),
            ),
            models.CheckConstraint(
                condition=~Q(state="held") | Q(held_until__isnull=False),
                name="bookings_held_has_time",
            ),
            models.CheckConstraint(
                condition=Q(original_end__gte=F("end")),
                name="bookings_original_end_last",
                violation_error_message=gettext_lazy("A release may only make a booking shorter."),
            ),
            PostgresExclusion(
                name=OVERLAP_CONSTRAINT,
                expressions=[
                    ("lane", RangeOperators.EQUAL),
                    (TstzRange("start", "end", RangeBoundary()), RangeOperators.OVERLAPS),
                ],
                condition=Q(state__in=("pending", "confirmed", "held")),
            ),
        ]

    def __str__(self) -> str:
        return (
            f"#{self.pk} {self.lane} {self.start:%Y-%m-%d %H:%M} - {self.end:%H:%M} ({self.state})"
        )

    @property
    def called(self) -> str:
        """What people call it: its preset's name, else a sentence of `said`."""
        return self.preset.name if self.preset else said("the whole GPU")

    @property
    def active_from(self) -> datetime:
        """From when it counts as in progress: one confirmed late begins late."""
        return max(self.start, self.confirmed_at) if self.confirmed_at else self.start

    def status(self, now: datetime) -> Status:
        """Where it stands at `now`."""
        if self.state == State.EXPIRED and self.held_until and not self.asked_at:
            return Status.LAPSED  # a hold; one that was confirmed may have waited for approval
        if self.state not in OCCUPYING:
            return Status(self.state)
        if self.state == State.HELD:
            ends = min(self.held_until or self.end, self.end)
            return Status.HELD if now < ends else Status.LAPSED
        if self.state == State.PENDING:
            return Status.PENDING if now < self.end else Status.EXPIRED
        if now >= self.end:
            return Status.RELEASED if self.released_at else Status.ENDED
        return Status.IN_PROGRESS if now >= self.active_from else Status.UPCOMING

    def is_changeable_by(self, user: User | AnonymousUser) -> bool:
        """Whether it is theirs, or they administer."""
        return user.is_staff or (user.is_authenticated and user.pk == self.owner_id)

    def purpose_for(self, user: User | AnonymousUser) -> str:
        """What it is for, to its owner and administrators; nobody else is told."""
        return self.purpose if self.is_changeable_by(user) else ""

    def decision_comment_for(self, user: User | AnonymousUser) -> str:
        """What was said with the decision about it, to the same people."""
        return self.decision_comment if self.is_changeable_by(user) else ""


class Waiting(models.Model):
    """A member who waits for time on one of some lanes, somewhere in [opens, closes).

    It waits until it was given a hold, was left, or its window is too short.
    """

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="waiting"
    )
    lanes = models.ManyToManyField(Lane, related_name="waiting")
    kind = models.CharField(max_length=5, choices=Kind, default=Kind.MODEL)
    preset = models.ForeignKey(
        Preset, null=True, blank=True, on_delete=models.CASCADE, related_name="waiting"
    )
    minutes = models.PositiveIntegerField()
    opens = models.DateTimeField()
    closes = models.DateTimeField()
    purpose = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField()
    left_at = models.DateTimeField(null=True, blank=True)
    hold = models.OneToOneField(
        Booking, null=True, blank=True, on_delete=models.SET_NULL, related_name="waiting"
    )

    objects = WaitingQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["created_at", "pk"]
        verbose_name_plural = "waiting"
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(kind="gpu", preset__isnull=True)
                | Q(kind="model", preset__isnull=False),
                name="waiting_preset_fits_kind",
                violation_error_message="Name a preset, or wait for the whole GPU without one.",
            ),
            models.CheckConstraint(
                condition=Q(closes__gt=F("opens")),
                name="waiting_closes_after_opening",
                violation_error_message="The window must end after it begins.",
            ),
        ]
        indexes: ClassVar = [  # the newest is asked for every second
            models.Index(
                fields=["left_at"], condition=Q(left_at__isnull=False), name="bookings_waiting_left"
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.pk} {self.owner_id}: {self.minutes} min"
