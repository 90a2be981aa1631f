"""What the database itself refuses and no form could know, for pages and REST alike."""

import logging

from django.db import OperationalError
from django.utils.translation import gettext as _

from bookings.guards import is_chance, is_unkeepable
from lanes.refusals import Refusal

log = logging.getLogger(__name__)


def refusal_of(error: Exception, address: str) -> Refusal | None:
    """What others did at the same moment is `busy`, a value that no database can keep `invalid`;
    None: it is something else."""
    if is_unkeepable(error):
        log.warning("value refused by the database at %s", address, exc_info=error)
        return Refusal("invalid", _value_words(error))
    if is_chance(error):
        log.warning("database busy at %s: %s", address, error)
        return Refusal("busy", _("The database is busy: try again in a second."))
    return None


def _value_words(error: Exception) -> str:
    """PostgreSQL refuses a text with a NUL, SQLite a number of more than 64 bits and a text of more
    than 50,000 bytes to look for."""
    if isinstance(error, OverflowError):
        return _("A number is too large.")
    if isinstance(error, OperationalError):
        return _("This text is too long.")
    return _("A value holds a character that no text may have.")
