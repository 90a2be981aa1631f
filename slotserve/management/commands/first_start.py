"""first_start: bring database and static files up to date, then make what a new one needs."""

import io
import json
import os
from argparse import ArgumentParser
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection

from gateway.publish import publish
from lanes.refusals import Refusal
from slotserve.first_start import Report, prepare
from slotserve.static_files import collect_if_changed


class Command(BaseCommand):
    """Safe to repeat: a second time it changes nothing and says so in a second."""

    help = (
        "Migrate, collect static files, run the checks; then make an administrator, register this "
        "host with its GPUs, and add a demo lane, each only when it is missing."
    )
    requires_system_checks = []  # they run below, once the tables are there

    def add_arguments(self, parser: ArgumentParser) -> None:
        """[--no-demo] [--report FILE]."""
        parser.add_argument("--no-demo", action="store_true", help="make no demo lane")
        parser.add_argument("--report", type=Path, help="a file for the report, with secrets")

    def handle(self, *args: object, **options: Any) -> None:
        """Database, static files, checks, first start, report."""
        try:
            self._bring_up_to_date()
            report = prepare(with_demo=not options["no_demo"])
        except (DatabaseError, OSError) as error:
            name = connection.settings_dict["NAME"]
            raise CommandError(
                f"The database {name} or the disk cannot be used: {error}"
            ) from error
        if isinstance(report, Refusal):
            raise CommandError(report.words)
        if options["report"]:
            write_report(options["report"], report)
        else:
            self.stdout.write(in_words(report))
        publish()  # so that the edge knows the token before the first beat

    def _bring_up_to_date(self) -> None:
        call_command("migrate", interactive=False, verbosity=0)
        collect_if_changed()
        call_command("check", databases=["default"], stdout=io.StringIO())  # errors still raise


def write_report(file: Path, report: Report) -> None:
    """As JSON, for its owner alone. Secrets in one that nobody was shown go into this one."""
    if file.exists():
        unshown = json.loads(file.read_text())
        secrets = {name: unshown.get(name, "") for name in ("password", "token")}
        report = replace(report, **{n: getattr(report, n) or kept for n, kept in secrets.items()})
    new = file.with_suffix(".new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        json.dump(asdict(report), out)
    new.replace(file)


def in_words(report: Report) -> str:
    """For a person who ran the command."""
    password = f", password {report.password}" if report.password else ""
    lines = [f"Administrator {report.administrator}{password}"]
    lines += [f"Demo token {report.token}"] if report.token else []
    return "\n".join([*lines, *report.notes])
