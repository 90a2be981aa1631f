"""`commands`: what stands between backticks as a command or name to type."""

import re

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

register = template.Library()


@register.filter
def commands(text: str) -> SafeString:
    """HTML of plain text."""
    marked = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
    return mark_safe(marked)  # noqa: S308 - escaped just before
