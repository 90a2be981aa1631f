"""`manage.py stop_servers`: end every model server of this data folder."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from lanes.stopping import mark_ended, stop_all
from lanes.worker_lock import living_worker


class Command(BaseCommand):
    """Refused while a worker of this host lives: that would start them again."""

    help = "End every model server of this data folder (TERM, TERM, KILL), also without a database."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        """One line for each server that ended."""
        worker = living_worker()
        if worker:
            raise CommandError(
                f"The worker of this host (process {worker}) lives and would start them again: "
                "stop it first, or bin/up, which ends them itself. Nothing was ended."
            )
        for line in stop_all(settings.SLOTSERVE_STOP_TIMEOUT_SECONDS):
            self.stdout.write(line)
        trouble = mark_ended()
        if trouble:
            self.stderr.write(trouble)
