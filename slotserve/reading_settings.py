"""Reading the settings at a program's door: a sentence where one cannot be used, no traceback."""

import os
import sys

from django.conf import settings

from wire.env import SettingError


def settings_or_exit() -> None:
    """Read them; SystemExit with the sentence."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "slotserve.settings")
    try:
        _ = settings.DATABASES  # the first look reads all
    except SettingError as error:
        sys.exit(f"{error}.")
