"""The bookings app."""

from django.apps import AppConfig


class BookingsConfig(AppConfig):
    """Bookings and the planner."""

    name = "bookings"
    default_auto_field = "django.db.models.BigAutoField"
