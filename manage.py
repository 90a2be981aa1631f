#!/usr/bin/env python
"""Django's command line for this project."""

import os
import sys

from django.core.management import execute_from_command_line

from wire.env import SettingError


def main() -> None:
    """Run one management command."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "slotserve.settings")
    try:
        execute_from_command_line(sys.argv)
    except SettingError as error:
        sys.exit(f"{error}.")


if __name__ == "__main__":
    main()
