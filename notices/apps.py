"""The app's registration."""

from django.apps import AppConfig


class NoticesConfig(AppConfig):
    """What people are told, and by which ways."""

    default_auto_field = "django.db.models.BigAutoField"
    name = "notices"
