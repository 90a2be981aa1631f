"""The gateway app."""

from django.apps import AppConfig


class GatewayConfig(AppConfig):
    """Tokens, the route table and usage."""

    name = "gateway"
    default_auto_field = "django.db.models.BigAutoField"
