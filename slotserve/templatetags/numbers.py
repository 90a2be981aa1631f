"""Large numbers for people."""

from django import template

from lanes.catalogue.facts import in_words

register = template.Library()


@register.filter
def weights(count: int | None) -> str:
    """Such as 7.6 B for the weights of a model; nothing for none."""
    if not count:
        return ""
    for unit, size in (("T", 10**12), ("B", 10**9), ("M", 10**6)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return str(count)


@register.filter
def thousands(count: int) -> str:
    """Such as 151,936."""
    return f"{count:,}"


@register.filter
def disk(count: int) -> str:
    """Such as 98.4 MB."""
    return in_words(count)
