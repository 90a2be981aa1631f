"""How log lines of the web process are shortened."""

import logging


class ShortRefusals(logging.Filter):
    """What anybody outside can cause at will is one line: Django's refusals need no traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let it pass, of `django.security.*` without its traceback."""
        if record.name.startswith("django.security."):
            record.exc_info = None
        return True
