"""The bookings app."""

from django.apps import AppConfig
from django.core.checks import Tags, register
from django.db.models.signals import post_migrate

from bookings.checks import check_guards
from bookings.guards import install_after_migrating


class BookingsConfig(AppConfig):
    """Bookings and the planner."""

    name = "bookings"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Guard the database after each migration, and say so when it is not guarded."""
        post_migrate.connect(install_after_migrating, sender=self)
        register(check_guards, Tags.database)
