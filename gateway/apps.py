"""The gateway app."""

from django.apps import AppConfig
from django.core.checks import register

from gateway.checks import check_table_keys


class GatewayConfig(AppConfig):
    """Tokens, the route table and usage."""

    name = "gateway"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks of this app's settings."""
        register(check_table_keys)
