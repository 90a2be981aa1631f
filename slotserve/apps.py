"""The pages' app."""

from django.apps import AppConfig
from django.core.checks import register

from slotserve.checks import check_single_sign_on


class SlotServeConfig(AppConfig):
    """Pages, REST and accounts."""

    name = "slotserve"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks of this app's settings."""
        register(check_single_sign_on)
