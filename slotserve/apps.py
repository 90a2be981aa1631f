"""The pages' app."""

from django.apps import AppConfig
from django.core.checks import register
from django.db.backends.signals import connection_created

from slotserve.checks import check_single_sign_on
from slotserve.failed_statements import close_what_fails


class SlotServeConfig(AppConfig):
    """Pages, REST and accounts."""

    name = "slotserve"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks of this app's settings; hear of each new database connection."""
        register(check_single_sign_on)
        connection_created.connect(close_what_fails)
