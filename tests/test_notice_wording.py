"""Times in notices: in the reader's zone with its name, also in nights in which clocks change."""

from datetime import UTC, datetime

import pytest
from django.utils import timezone, translation

from lanes.telling import day, slot
from notices.models import Preference
from notices.preferences import in_words_of

# zone, start and end in UTC -> words
SLOTS = [
    ("Europe/Berlin", "2031-03-30T00:30", "2031-03-30T01:30",
     "Sun 30 Mar 2031, 01:30 CET - 03:30 CEST"),
    ("Europe/Berlin", "2031-10-26T00:30", "2031-10-26T01:30",
     "Sun 26 Oct 2031, 02:30 CEST - 02:30 CET"),
    ("America/New_York", "2031-11-02T05:30", "2031-11-02T06:30",
     "Sun 2 Nov 2031, 01:30 EDT - 01:30 EST"),
    ("America/New_York", "2031-07-01T10:00", "2031-07-01T11:00",
     "Tue 1 Jul 2031, 06:00 - 07:00 EDT"),
    ("Australia/Lord_Howe", "2031-04-05T14:30", "2031-04-05T15:30",
     "Sun 6 Apr 2031, 01:30 Lord Howe UTC+11:00 - 02:00 Lord Howe UTC+10:30"),
    ("UTC", "2031-01-01T23:00", "2031-01-02T01:00",
     "Wed 1 Jan 2031, 23:00 - Thu 2 Jan 2031, 01:00 UTC"),
]  # fmt: skip


@pytest.mark.parametrize(("zone", "start", "end", "words"), SLOTS)
def test_a_slot_says_its_zone_and_both_when_clocks_change(
    zone: str, start: str, end: str, words: str
) -> None:
    times = [datetime.fromisoformat(each).replace(tzinfo=UTC) for each in (start, end)]
    with translation.override("en"), timezone.override(zone):
        assert slot(*times) == words.replace(" - ", " \N{EN DASH} ")


def test_words_are_in_the_reader_s_language() -> None:
    with in_words_of(Preference(zone="Europe/Berlin", language="de")):
        assert day(datetime(2031, 7, 1, 10, tzinfo=UTC)).startswith("Di")
        assert day(datetime(2031, 7, 1, 10, tzinfo=UTC)).endswith("12:00 CEST")
