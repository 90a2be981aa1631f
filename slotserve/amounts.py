"""Amounts as the reader's language writes numbers."""

from django.utils.formats import number_format
from django.utils.translation import gettext


def as_written(amount: str) -> str:
    """An English amount, such as "1,234.5 GiB", in German "1.234,5 GiB"; words are translated."""
    number, _, unit = amount.partition(" ")
    if not number[:1].isdigit():
        return gettext(amount)
    told = number_format(number.replace(",", ""), force_grouping="," in number)
    return f"{told} {unit}".strip()
