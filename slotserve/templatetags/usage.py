"""Amounts of usage for people."""

from collections.abc import Iterable
from html import escape

from django import template
from django.utils.formats import get_format
from django.utils.safestring import SafeString, mark_safe
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


@register.simple_tag
def options(choices: Iterable[tuple[str, str]], chosen: str) -> SafeString:
    """An <option> for each value and its words. There are hundreds: a template takes ten times as
    long."""
    made = (
        f'<option value="{escape(value)}"{" selected" if value == chosen else ""}>'
        f"{escape(words)}</option>"
        for value, words in choices
    )
    return mark_safe("".join(made))  # noqa: S308 - all that is put in is escaped
