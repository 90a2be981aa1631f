"""Times for people: in the viewer's zone, the day only when it is not today."""

from datetime import datetime

from django import template
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import pgettext

register = template.Library()


@register.simple_tag
def moment(value: datetime, *, seconds: bool = False) -> SafeString:
    """A <time> such as 14:00, or 3 Dec 14:00 on another day; its title says all of it."""
    return _element(value, "H:i:s" if seconds else "H:i", timezone.localtime())


@register.simple_tag
def interval(start: datetime, end: datetime) -> SafeString:
    """Two <time>s, such as 14:00 to 15:00 or 3 Dec 14:00 to 15:00; both days when they differ."""
    now = timezone.localtime()
    reference = timezone.localtime(start)
    return format_html(
        "{} &ndash; {}", _element(start, "H:i", now), _element(end, "H:i", reference)
    )


def _element(value: datetime, clock: str, reference: datetime) -> SafeString:
    """The day is said when it differs from the reference's, the year as well."""
    local = timezone.localtime(value)
    day = "" if local.date() == reference.date() else pgettext("date format", "j M") + " "
    if local.year != reference.year:
        day = pgettext("date format", "j M Y") + " "
    title = date_format(local, pgettext("date format", "j F Y") + " H:i:s e")
    words = date_format(local, day + clock)
    return format_html('<time datetime="{}" title="{}">{}</time>', local.isoformat(), title, words)
