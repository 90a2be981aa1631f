"""What a booking can be: its kinds, its stored states, and where it stands at a moment.

No model is imported here, so that guards and checks can be set up before models are loaded.
"""

from django.db import models
from django.utils.translation import gettext_lazy


class Kind(models.TextChoices):
    """What is booked: one preset on the lane, or the whole GPU without a model server."""

    MODEL = "model", gettext_lazy("One model")
    GPU = "gpu", gettext_lazy("Whole GPU")


class State(models.TextChoices):
    """What was decided about a booking. Whether it is upcoming, running or over is derived."""

    PENDING = "pending", gettext_lazy("Waiting for approval")
    CONFIRMED = "confirmed", gettext_lazy("Confirmed")
    REJECTED = "rejected", gettext_lazy("Rejected")
    CANCELLED = "cancelled", gettext_lazy("Cancelled")
    EXPIRED = "expired", gettext_lazy("Never approved")
    HELD = "held", gettext_lazy("Held for whoever waited")


class Lapse(models.TextChoices):
    """Why quotas count the whole time of a booking that was not kept to its end."""

    LATE_CANCEL = "late_cancel", gettext_lazy("Cancelled late")
    NO_SHOW = "no_show", gettext_lazy("Nobody came")


class Status(models.TextChoices):
    """Where a booking stands at a moment: derived from state and times, never stored."""

    PENDING = "pending", gettext_lazy("Waiting for approval")
    EXPIRED = "expired", gettext_lazy("Never approved")
    LAPSED = "lapsed", gettext_lazy("Not taken in time")
    HELD = "held", gettext_lazy("Held for whoever waited")
    UPCOMING = "upcoming", gettext_lazy("Upcoming")
    IN_PROGRESS = "in_progress", gettext_lazy("In progress")
    ENDED = "ended", gettext_lazy("Ended")
    RELEASED = "released", gettext_lazy("Released early")
    CANCELLED = "cancelled", gettext_lazy("Cancelled")
    REJECTED = "rejected", gettext_lazy("Rejected")


# The states in which a booking keeps others from its time. The database guards list them too.
OCCUPYING = (State.PENDING, State.CONFIRMED, State.HELD)

LONGEST_COMMENT = 300  # characters that an administrator may say with a decision

TABLE = "bookings_booking"
OVERLAP_CONSTRAINT = "bookings_no_overlap"
