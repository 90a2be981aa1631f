"""Amounts of memory for people."""

from django import template

from lanes.gpus.room import size

register = template.Library()


@register.filter(name="size")
def in_words(amount: int | None) -> str:
    """Such as 14.0 GiB; empty when it is not known."""
    return "" if amount is None else size(amount)
