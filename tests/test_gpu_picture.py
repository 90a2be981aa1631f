"""The picture of a day: paths and words."""

import re
from datetime import UTC, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from slotserve.gpus import Minute
from slotserve.web.gpu_picture import HEIGHT, OF_A_DAY, OF_A_WEEK, draw
from tests.builders import NOON, at

GIB = 2**30
NUMBER = re.compile(r"-?[\d.]+")


def minute(ago: int, used: int = 12, outside: int = 0, use: float | None = 50.0) -> Minute:
    """A minute so long ago; memory in GiB."""
    return Minute(at(-ago), used * GIB, outside * GIB, use, power_watts=None, samples=1)


def paths(*minutes: Minute) -> tuple[str, str, str]:
    """Memory, outsiders, use."""
    picture = draw(minutes, 24 * GIB, NOON, UTC)
    return picture.used, picture.outside, picture.use


def test_a_minute_is_one_wide_and_as_high_as_its_share() -> None:
    used, outside, use = paths(minute(0, used=6, outside=3, use=75))
    assert used == "M1439 75L1440 75L1440 100L1439 100Z"
    assert outside == "M1439 87.5L1440 87.5L1440 100L1439 100Z"
    assert use == "M1439 25L1440 25"


def test_level_stretches_have_two_points_and_gaps_break_the_path() -> None:
    used, _, use = paths(*[minute(n) for n in (20, 19, 18, 17, 3, 2)])
    assert use == "M1419 50L1422 50L1423 50M1436 50L1437 50L1438 50"
    assert used.count("Z") == 2


def test_what_is_not_known_is_not_drawn() -> None:
    used, outside, use = paths(minute(5, use=None))
    assert used
    assert (outside, use) == ("", "")


def test_nothing_is_said_to_be_nothing() -> None:
    picture = draw([], 24 * GIB, NOON, UTC)
    assert picture.words == "Nothing was read in this time."
    assert (picture.used, picture.outside, picture.use) == ("", "", "")


def test_the_words_tell_the_most_with_its_time_in_the_reader_s_zone() -> None:
    zone = timezone(timedelta(hours=2))
    words = draw([minute(60, used=20), minute(1, outside=2, use=10)], 24 * GIB, NOON, zone).words
    assert words == (
        "At most 20.0 GiB of 24.0 GiB in use, at 13:00; 30 % busy on average; "
        "up to 2.0 GiB held by processes of no lane."
    )


samples = st.lists(
    st.tuples(st.integers(0, 1439), st.integers(0, 40), st.none() | st.floats(0, 100)),
    unique_by=lambda sample: sample[0],
    max_size=50,
)


@given(samples)
def test_every_point_is_inside_the_picture(found: list[tuple[int, int, float | None]]) -> None:
    ordered = sorted(found, key=lambda sample: -sample[0])
    minutes = [minute(ago, used, min(used, 2), use) for ago, used, use in ordered]
    for path in paths(*minutes):
        numbers = [float(text) for text in NUMBER.findall(path)]
        assert all(0 <= x <= OF_A_DAY.width for x in numbers[::2])
        assert all(0 <= y <= HEIGHT for y in numbers[1::2])


def test_a_week_is_drawn_by_five_minutes_and_names_the_day() -> None:
    week = [minute(5 * n, used=6) for n in (2, 1, 0)]
    picture = draw(week, 24 * GIB, NOON, UTC, OF_A_WEEK)
    assert picture.used == "M2013 75L2015 75L2016 75L2016 100L2013 100Z"
    assert "at Tue 11:50" in picture.words
    assert OF_A_WEEK.grid.count("V100") == 6
    assert OF_A_DAY.grid == ("M0 0H1440M0 50H1440M0 100H1440M360 0V100M720 0V100M1080 0V100")
