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
        file: Path | None = options["report"]
        unshown = _unshown(file) if file else {}
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
        if file is None:
            self.stdout.write(in_words(report))
        else:
            self._write(file, report, unshown)
        publish()  # so that the edge knows the token before the first beat

    def _write(self, file: Path, report: Report, unshown: dict[str, str]) -> None:
        """The report; where that fails, its secrets are shown, as nobody could read them again."""
        try:
            write_report(file, report, unshown)
        except OSError as error:
            self.stdout.write(in_words(report))
            raise CommandError(f"{file} cannot be written: {error.strerror}.") from error

    def _bring_up_to_date(self) -> None:
        call_command("migrate", interactive=False, verbosity=0)
        collect_if_changed()
        call_command("check", databases=["default"], stdout=io.StringIO())  # errors still raise


def _unshown(file: Path) -> dict[str, str]:
    """The secrets of an earlier report that nobody was shown; CommandError where none can be."""
    try:
        if not file.name or not file.parent.is_dir():
            raise CommandError(f"{file} cannot be a report: give a file in a folder that exists.")
        if not file.exists():
            return {}
        told = json.loads(file.read_text() if file.is_file() else "")
        return {name: str(told.get(name, "")) for name in ("password", "token")}
    except OSError as error:
        raise CommandError(f"{file} cannot be used: {error.strerror}.") from error
    except (ValueError, AttributeError) as error:
        raise CommandError(f"{file} is no report of an earlier first start: remove it.") from error


def write_report(file: Path, report: Report, unshown: dict[str, str]) -> None:
    """As JSON, for its owner alone. Secrets in one that nobody was shown go into this one."""
    password = report.password or unshown.get("password", "")
    report = replace(report, password=password, token=report.token or unshown.get("token", ""))
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
