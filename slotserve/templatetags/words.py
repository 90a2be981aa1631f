"""`told`: a sentence of a pure module in the reader's language."""

from django import template

from lanes.telling import told as told_to_reader
from wire.words import kept_of

register = template.Library()


@register.filter
def told(sentence: str) -> str:
    """Also of a plain string, which stays as it is."""
    return told_to_reader(sentence, kept_of(sentence))
