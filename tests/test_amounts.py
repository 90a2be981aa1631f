"""Numbers and days as each language writes them."""

from datetime import UTC, datetime

import pytest
from django.utils import translation

from slotserve.amounts import as_written
from slotserve.templatetags.numbers import disk, thousands, weights
from slotserve.templatetags.sizes import in_words
from slotserve.templatetags.times import moment


@pytest.mark.parametrize(
    ("amount", "english", "german"),
    [
        ("14.0 GiB", "14.0 GiB", "14,0 GiB"),
        ("1,234.5 TB", "1,234.5 TB", "1.234,5 TB"),
        ("512 MiB", "512 MiB", "512 MiB"),
    ],
)
def test_amounts_are_written_as_in_the_language(amount: str, english: str, german: str) -> None:
    with translation.override("en"):
        assert as_written(amount) == english
    with translation.override("de"):
        assert as_written(amount) == german


def test_filters_speak_german() -> None:
    with translation.override("de"):
        assert in_words(15032385536) == "14,0 GiB"
        assert disk(98_400_000) == "98,4 MB"
        assert thousands(151_936) == "151.936"
        assert weights(7_600_000_000) == "7,6 B"


def test_filters_speak_english() -> None:
    assert in_words(15032385536) == "14.0 GiB"
    assert in_words(None) == ""
    assert disk(98_400_000) == "98.4 MB"
    assert thousands(151_936) == "151,936"
    assert weights(7_600_000_000) == "7.6 B"
    assert weights(None) == ""


def test_a_day_is_said_as_before_in_english() -> None:
    assert "3 Dec 2020 14:00</time>" in moment(datetime(2020, 12, 3, 14, 0, tzinfo=UTC))
