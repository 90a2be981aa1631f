#!/usr/bin/env python
"""Django's command line for this project."""

import os
import sys

try:
    from django.core.management import execute_from_command_line
    from django.db import Error as DatabaseTrouble
except ModuleNotFoundError:
    sys.exit(
        f"{sys.executable} has no Django: run .venv/bin/python {' '.join(sys.argv)}\n"
        "(bin/up makes .venv; without it: python3 -m venv .venv, then "
        ".venv/bin/pip install -r requirements.txt)."
    )

from slotserve.command_trouble import in_words
from wire.env import SettingError


def main() -> None:
    """Run one management command; a sentence where settings or database do not let it."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "slotserve.settings")
    for word in sys.argv:
        if any("\ud800" <= character <= "\udfff" for character in word):
            sys.exit(f"{word!a} is not UTF-8: write it otherwise.")
    try:
        execute_from_command_line(sys.argv)
    except SettingError as error:
        sys.exit(f"{error}.")
    except DatabaseTrouble as error:
        sys.exit(in_words(error))


if __name__ == "__main__":
    main()
