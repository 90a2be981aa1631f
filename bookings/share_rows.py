"""Who may use a booking's slot beside its owner."""

from typing import ClassVar

from django.conf import settings
from django.db import models


class BookingShare(models.Model):
    """One member with whom a booking is shared. Written by `bookings.sharing` alone."""

    booking = models.ForeignKey("bookings.Booking", on_delete=models.CASCADE, related_name="shares")
    member = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="shared_bookings"
    )
    added_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["booking", "member"], name="bookings_shared_once")
        ]

    def __str__(self) -> str:
        return f"#{self.booking_id} with {self.member}"
