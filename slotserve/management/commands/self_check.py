"""`manage.py self_check`: what is in order and what is not; exit status 1 when there is trouble."""

import json
import sys
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand

from slotserve.selfcheck.findings import Finding, Level, has_trouble, verdict
from slotserve.selfcheck.service import self_check

WORDS = {
    Level.OK: "ok",
    Level.UNKNOWN: "unknown",
    Level.WARNING: "WARNING",
    Level.TROUBLE: "TROUBLE",
}


class Command(BaseCommand):
    """Warnings leave the exit status 0."""

    help = "Look at database, workers, gateways, clocks, disk: exit status 1 when there is trouble."
    requires_system_checks = []  # they are one of its checks

    def add_arguments(self, parser: ArgumentParser) -> None:
        """[--json]."""
        parser.add_argument("--json", action="store_true", help="findings as JSON, for programs")

    def handle(self, *args: Any, **options: Any) -> None:
        """A line for each check, and what to do."""
        findings = self_check()
        if options["json"]:
            self.stdout.write(json.dumps([asdict(finding) for finding in findings], indent=2))
        else:
            self.stdout.write("\n".join([*map(in_words, findings), verdict(findings)]))
        if has_trouble(findings):
            sys.exit(1)


def in_words(finding: Finding) -> str:
    """A line, and a second one with what to do."""
    line = f"{WORDS[finding.level]:8} {finding.title}: {finding.sentence}"
    return f"{line}\n{'':8} → {finding.advice}" if finding.advice else line
