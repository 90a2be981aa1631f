"""Kept sentences as this reader is told them: in the language and the zone that are in force."""

from collections.abc import Callable, Mapping
from datetime import datetime

from django.utils import timezone
from django.utils.formats import date_format, get_format
from django.utils.translation import gettext, pgettext

from wire.words import Reader, kept_of, retold


def told(sentence: str, kept: Mapping[str, object] | None, name: Callable[[str], str] = str) -> str:
    """The sentence for whoever reads now; as it is kept when nobody knows what it was made of.

    `kept` is what `wire.words.kept_of` gave when it was written; `name` says a person's name.
    """
    if not kept:
        return sentence
    point = get_format("DECIMAL_SEPARATOR")
    return retold(kept, Reader(gettext, moment, name, day, slot, point))


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


def day(value: datetime) -> str:
    """A time with its day and its zone's name, for somebody who may read it another day."""
    local = timezone.localtime(value)
    return f"{date_format(local, gettext('D j M Y, H:i'))} {zone_name(local)}"


def slot(start: datetime, end: datetime) -> str:
    """A slot with its zone's name; the second day only where it is another, and both names where
    the clocks change within it."""
    first, last = timezone.localtime(start), timezone.localtime(end)
    is_one_day, is_one_zone = first.date() == last.date(), first.tzname() == last.tzname()
    begin = date_format(first, gettext("D j M Y, H:i"))
    if not is_one_zone:
        begin += f" {zone_name(first)}"
    close = date_format(last, "H:i" if is_one_day else gettext("D j M Y, H:i"))
    return f"{begin} – {close} {zone_name(last)}"  # noqa: RUF001 - an interval's dash


def zone_name(local: datetime) -> str:
    """CET, EST …; where a zone has no name but its offset, its place and that."""
    name = local.tzname() or ""
    if name[:1] not in {"+", "-"}:
        return name
    place = getattr(local.tzinfo, "key", "").rpartition("/")[2].replace("_", " ")
    hours = local.strftime("%z")
    return f"{place} UTC{hours[:3]}:{hours[3:5]}".strip()
