"""Kept sentences as this reader is told them: in the language and the zone that are in force."""

from collections.abc import Callable, Mapping
from datetime import datetime

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext, pgettext

from wire.words import Reader, kept_of, retold


def told(sentence: str, kept: Mapping[str, object] | None, name: Callable[[str], str] = str) -> str:
    """The sentence for whoever reads now; as it is kept when nobody knows what it was made of.

    `kept` is what `wire.words.kept_of` gave when it was written; `name` says a person's name.
    """
    return retold(kept, Reader(gettext, moment, name)) if kept else sentence


def tell(sentence: str) -> str:
    """A sentence of `wire.words.said` for whoever reads now; a plain one stays as it is."""
    return told(sentence, kept_of(sentence))


def moment(at: datetime, now: datetime | None = None) -> str:
    """A time with its zone's name, such as "14:00 CET"; seconds if it has any; the day unless it is
    today."""
    local, now = timezone.localtime(at), timezone.localtime(now)
    words = [date_format(local, "H:i:s" if local.second else "H:i"), local.tzname() or ""]
    if local.year != now.year:
        words.insert(0, date_format(local, pgettext("date format", "j M Y")))
    elif local.date() != now.date():
        words.insert(0, date_format(local, pgettext("date format", "j M")))
    return " ".join(words).strip()
