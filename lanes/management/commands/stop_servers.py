"""`manage.py stop_servers`: end every model server of this data folder."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from lanes.stopping import mark_ended, stop_all


class Command(BaseCommand):
    """Run it when the workers of this host are gone: a living one would start them again."""

    help = "End every model server of this data folder (TERM, TERM, KILL), also without a database."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        """One line for each server that ended."""
        for line in stop_all(settings.SLOTSERVE_STOP_TIMEOUT_SECONDS):
            self.stdout.write(line)
        trouble = mark_ended()
        if trouble:
            self.stderr.write(trouble)
