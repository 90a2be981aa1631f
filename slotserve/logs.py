"""How log lines of the web process are shortened, and what never stands in one."""

import logging
import re

SECRETS = re.compile(r"(/(?:once|feeds|invitation|password/reset/key|confirm-email)/)[^/\s\"']+")


class ShortRefusals(logging.Filter):
    """What anybody outside can cause at will is one line: Django's refusals need no traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let it pass, of `django.security.*` without its traceback."""
        if record.name.startswith("django.security."):
            record.exc_info = None
        return True


class NoSecrets(logging.Filter):
    """Addresses that open something without a log-in are logged without what opens it."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let it pass, without the secrets of paths in it."""
        if SECRETS.search(record.getMessage()):
            record.msg, record.args = hidden(record.getMessage()), ()
        return True


def hidden(text: str) -> str:
    """A text without the secrets of paths in it."""
    return SECRETS.sub(r"\1***", text)


def hide_from_access_log() -> None:
    """The server's own access log has a handler of its own, where it is on at all."""
    logging.getLogger("uvicorn.access").addFilter(NoSecretPaths())


class NoSecretPaths(logging.Filter):
    """As `NoSecrets`, for a formatter that reads the arguments: the path stays one of them."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let it pass, without the secrets of its path."""
        if isinstance(record.args, tuple):
            record.args = tuple(
                hidden(each) if isinstance(each, str) else each for each in record.args
            )
        return True
