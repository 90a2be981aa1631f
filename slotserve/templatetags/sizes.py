"""Amounts of memory for people."""

from django import template
from django.utils.formats import number_format

from lanes.gpus.room import size
from slotserve.amounts import as_written

register = template.Library()


@register.filter(name="size")
def in_words(amount: int | None) -> str:
    """Such as 14.0 GiB, in German 14,0 GiB; empty when it is not known."""
    return "" if amount is None else as_written(size(amount))


@register.filter
def mebibytes(amount: int) -> str:
    """MiB as GiB with at most one decimal, such as 5.5 or 24, as live.js writes them."""
    return number_format(f"{amount / 1024:.1f}".removesuffix(".0"))
