"""The lanes app."""

from django.apps import AppConfig


class LanesConfig(AppConfig):
    """Hosts, lanes, presets and the processes they run."""

    name = "lanes"
    default_auto_field = "django.db.models.BigAutoField"
