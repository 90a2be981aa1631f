"""What the calendar says of days and times."""

from datetime import UTC, timedelta

from django.utils import translation

from slotserve.calendar import words
from tests.builders import NOON


def test_a_day_is_said_in_the_language_in_force_each_time() -> None:
    for _ in range(2):
        for language, said in (("en", "15 Jan"), ("de", "15. Jan")):
            with translation.override(language):
                assert words.day_words(NOON.date()) == said


def test_the_last_day_is_said_where_it_is_another() -> None:
    night = NOON + timedelta(hours=13)
    assert words.clocks(NOON, night, UTC) == f"12:00 {words.DASH} 16 Jan 01:00"
    assert words.clocks(NOON, NOON + timedelta(hours=1), UTC) == f"12:00 {words.DASH} 13:00"
