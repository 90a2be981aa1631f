"""Large numbers for people."""

from django import template
from django.utils.formats import number_format

from lanes.catalogue.facts import in_words
from slotserve.amounts import as_written

register = template.Library()


@register.filter
def weights(count: int | None) -> str:
    """Such as 7.6 B for the weights of a model; nothing for none."""
    if not count:
        return ""
    for unit, size in (("T", 10**12), ("B", 10**9), ("M", 10**6)):
        if count >= size:
            return f"{number_format(f'{count / size:.3g}')} {unit}"
    return str(count)


@register.filter
def thousands(count: int) -> str:
    """Such as 151,936; in German 151.936."""
    return number_format(count, force_grouping=True)


@register.filter
def disk(count: int) -> str:
    """Such as 98.4 MB; in German 98,4 MB."""
    return as_written(in_words(count))
