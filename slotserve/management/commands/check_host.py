"""check_host: whether this machine can serve as the host that its settings say it is."""

import os
import pwd
import socket
from collections.abc import Iterator
from typing import Any

import redis
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from lanes import host_place, host_reports, ports, ticks
from lanes.host_health import SKEW_SECONDS
from lanes.models import Host
from lanes.reach import open_to_all
from lanes.refusals import Refusal
from lanes.services import register_host

OTHER_CODE = "The database is of another release: install the same code here as there."


class Command(BaseCommand):
    """bin/join's look; safe to repeat, as after a move to another network."""

    help = (
        "Look whether database and Valkey answer from this machine, its address is its own and "
        "its clock is right; register its GPUs."
    )
    requires_system_checks = []

    def handle(self, *args: object, **options: Any) -> None:
        """One line for each thing; an error at the first that keeps the host from working."""
        host = self._host()
        self._valkey()
        for problem in _problems(host):
            raise CommandError(problem)
        made = register_host(host.key, host.name)
        if isinstance(made, Refusal):
            raise CommandError(made.words)
        cards = ", ".join(gpu.name for gpu in made.gpus.all()) or "none, models run on the CPU"
        self.stdout.write(f"{host.name}: database and Valkey answer; GPUs: {cards}.")
        for note in _notes():
            self.stdout.write(f"Note: {note}")

    def _host(self) -> Host:
        place = connection.settings_dict.get("HOST") or connection.settings_dict["NAME"]
        try:
            if MigrationExecutor(connection).migration_plan(_leaves()):
                raise CommandError(OTHER_CODE)
            found = Host.objects.filter(key=settings.SLOTSERVE_HOST_KEY).first()
        except DatabaseError as error:
            words = str(error).strip()
            raise CommandError(f"The database at {place} does not let us in: {words}") from error
        if found is None:
            key = settings.SLOTSERVE_HOST_KEY
            file = settings.SLOTSERVE_DATA / "environment"
            raise CommandError(
                f"There is no host {key!r}: it was deleted. Remove {file}, join anew."
            )
        return found

    def _valkey(self) -> None:
        client = ticks.valkey()
        try:
            client.set("ss:try:host", "1", ex=5)
            client.llen(ticks.host_queue(settings.SLOTSERVE_HOST_KEY))
        except redis.RedisError as error:
            place = client.connection_pool.connection_kwargs.get("host")
            raise CommandError(f"Valkey at {place} does not let us in: {error}") from error


def _leaves() -> list[Any]:
    return list(MigrationExecutor(connection).loader.graph.leaf_nodes())


def _problems(host: Host) -> Iterator[str]:
    other = host_place.other_machine(host)
    if other:
        yield (
            f"{other} is the host {host.key} already: stop its worker and wait for "
            f"{settings.SLOTSERVE_HOST_SILENT_SECONDS:g} s, or join as another host."
        )
    if not ports.is_free(host.address, 0):
        yield (
            f"{host.address} is no address of this machine ({socket.gethostname()}): give the host "
            "the right one on the page of hosts."
        )
    named = settings.SLOTSERVE_RUN_AS
    try:
        if named:
            pwd.getpwnam(named)
    except KeyError:
        yield f"There is no user {named}: make it with `useradd --system --no-create-home {named}`."
    _, skew = host_reports.read_clocks()
    if abs(skew) > SKEW_SECONDS:
        yield f"This machine's clock is {skew:+.1f} s from the database's: let NTP set it."


def _notes() -> Iterator[str]:
    if not settings.SLOTSERVE_RUN_AS:
        yield (
            "model servers run as the worker's own user and could read its settings; give "
            "--run-as USER" + ("." if os.geteuid() == 0 else ", as root.")
        )
    place = open_to_all(settings.REDIS_URL)
    if place:
        yield f"Valkey at {place} asks for no password: whoever reaches it orders what runs here."
