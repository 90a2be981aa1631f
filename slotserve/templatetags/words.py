"""`told`: a sentence of a pure module in the reader's language."""

from django import template

from lanes.telling import tell

register = template.Library()


@register.filter
def told(sentence: str) -> str:
    """Also of a plain string, which stays as it is."""
    return tell(sentence)
