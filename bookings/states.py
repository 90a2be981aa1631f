"""What a booking can be: its kinds, its stored states, and where it stands at a moment.

No model is imported here, so that guards and checks can be set up before models are loaded.
"""

from django.db import models


class Kind(models.TextChoices):
    """What is booked: one preset on the lane, or the whole GPU without a model server."""

    MODEL = "model", "One model"
    GPU = "gpu", "Whole GPU"


class State(models.TextChoices):
    """What was decided about a booking. Whether it is upcoming, running or over is derived."""

    PENDING = "pending", "Waiting for approval"
    CONFIRMED = "confirmed", "Confirmed"
    REJECTED = "rejected", "Rejected"
    CANCELLED = "cancelled", "Cancelled"
    EXPIRED = "expired", "Never approved"


class Lapse(models.TextChoices):
    """Why quotas count the whole time of a booking that was not kept to its end."""

    LATE_CANCEL = "late_cancel", "Cancelled late"
    NO_SHOW = "no_show", "Nobody came"


class Status(models.TextChoices):
    """Where a booking stands at a moment: derived from state and times, never stored."""

    PENDING = "pending", "Waiting for approval"
    EXPIRED = "expired", "Never approved"
    UPCOMING = "upcoming", "Upcoming"
    IN_PROGRESS = "in_progress", "In progress"
    ENDED = "ended", "Ended"
    RELEASED = "released", "Released early"
    CANCELLED = "cancelled", "Cancelled"
    REJECTED = "rejected", "Rejected"


# The states in which a booking keeps others from its time. The database guards list them too.
OCCUPYING = (State.PENDING, State.CONFIRMED)

TABLE = "bookings_booking"
OVERLAP_CONSTRAINT = "bookings_no_overlap"
