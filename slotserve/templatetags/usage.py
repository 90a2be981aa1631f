"""Amounts of usage for people."""

from django import template

register = template.Library()


@register.filter
def hours(seconds: float) -> float:
    """Seconds as hours, for floatformat."""
    return seconds / 3600


@register.filter
def percent(share: float | None) -> str:
    """Such as 43 %; n/a where there is nothing to have a share of."""
    return "n/a" if share is None else f"{share * 100:.0f} %"


@register.filter
def unlocalized(number: float) -> str:
    """As programs read it, whatever the language."""
    return f"{number:.6g}"
