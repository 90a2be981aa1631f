"""Amounts of usage for people."""

from django import template
from django.utils.formats import get_format
from django.utils.translation import gettext as _

from bookings.policy_words import length_words

register = template.Library()


@register.filter
def hours(seconds: float) -> float:
    """Seconds as hours, for floatformat."""
    return seconds / 3600


@register.filter
def hours_words(seconds: float) -> str:
    """Seconds as hours to a tenth, halves up, such as 12.5; in German 12,5. A page has hundreds,
    and floatformat takes ten times as long."""
    tenths = int(seconds / 360 + 0.5)
    return f"{tenths / 10:.1f}".replace(".", get_format("DECIMAL_SEPARATOR"))


@register.filter
def whole(count: int) -> str:
    """Such as 151,936; in German 151.936."""
    return f"{count:,}".replace(",", get_format("THOUSAND_SEPARATOR"))


@register.filter
def percent(share: float | None) -> str:
    """Such as 43 %; n/a where there is nothing to have a share of."""
    return "n/a" if share is None else f"{share * 100:.0f} %"


@register.filter
def unlocalized(number: float) -> str:
    """As programs read it, whatever the language."""
    return f"{number:.6g}"


@register.filter
def minutes(seconds: float) -> str:
    """Seconds as a length, such as 1 h 30 min; less than a second as none."""
    return length_words(seconds / 60) if seconds >= 1 else _("none")
