"""The lanes app."""

from django.apps import AppConfig
from django.core.checks import Tags, register
from django.db.models.signals import post_migrate

from lanes.audit_guards import check_audit_guards, install_after_migrating
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
        """Guard the audit trail after each migration; register the checks of this app."""
        post_migrate.connect(install_after_migrating, sender=self)
        register(check_audit_guards, Tags.database)
        register(check_names)
        register(check_llama_server)
        register(check_commands)
        register(check_port_range)
        register(check_margins)
        register(check_run_as)
        register(check_silence)
