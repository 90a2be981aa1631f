"""Times for people: in the viewer's zone, the day only when it is not today."""

from datetime import date, datetime
from functools import lru_cache

from django import template
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import get_language, pgettext

register = template.Library()
CLOCK, SECONDS = "%H:%M", "%H:%M:%S"


@register.simple_tag
def moment(value: datetime, *, seconds: bool = False) -> SafeString:
    """A <time> such as 14:00, or 3 Dec 14:00 on another day; its title says all of it."""
    return _element(value, SECONDS if seconds else CLOCK, timezone.localtime())


@register.simple_tag
def interval(start: datetime, end: datetime) -> SafeString:
    """Two <time>s, such as 14:00 to 15:00 or 3 Dec 14:00 to 15:00; both days when they differ."""
    now = timezone.localtime()
    reference = timezone.localtime(start)
    return format_html(
        "{} &ndash; {}", _element(start, CLOCK, now), _element(end, CLOCK, reference)
    )


def _element(value: datetime, clock: str, reference: datetime) -> SafeString:
    """The day is said when it differs from the reference's, the year as well."""
    local = timezone.localtime(value)
    day, language = local.date(), get_language()
    words = local.strftime(clock)
    if day != reference.date():
        is_long = day.year != reference.year
        words = f"{_day(day, language, is_long=is_long)} {words}"
    title = f"{_full_day(day, language)} {local.strftime(SECONDS)} {local.tzname()}"
    return format_html('<time datetime="{}" title="{}">{}</time>', local.isoformat(), title, words)


# Lists of bookings say the same few days again and again, and Django takes long to say one. The
# language is part of what is kept by.
@lru_cache(maxsize=2000)
def _day(day: date, language: str | None, *, is_long: bool) -> str:
    pattern = pgettext("date format", "j M Y") if is_long else pgettext("date format", "j M")
    return date_format(day, pattern)


@lru_cache(maxsize=2000)
def _full_day(day: date, language: str | None) -> str:
    return date_format(day, pgettext("date format", "j F Y"))
