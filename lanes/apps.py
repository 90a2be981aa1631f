"""The lanes app."""

from django.apps import AppConfig
from django.core.checks import register

from lanes.checks import (
    check_commands,
    check_llama_server,
    check_margins,
    check_names,
    check_port_range,
    check_run_as,
    check_silence,
)


class LanesConfig(AppConfig):
    """Hosts, lanes, presets and the processes they run."""

    name = "lanes"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks of this app's settings."""
        register(check_names)
        register(check_llama_server)
        register(check_commands)
        register(check_port_range)
        register(check_margins)
        register(check_run_as)
        register(check_silence)
