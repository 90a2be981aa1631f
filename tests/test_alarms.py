"""When an alarm of a host begins and is over: the pure half."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes.alarms import STEADY, Alarm, step
from tests.builders import at

# minutes -> w(rong), u(nclear), r(ight); the minute at which the alarm begins, and is over
COURSES: list[tuple[str, str, int | None, int | None]] = [
    ("disk_full", "rrrrr", None, None),
    ("disk_full", "uuuuu", None, None),  # what was never wrong is no alarm
    ("disk_full", "rw" + 10 * "r", 1, None),
    ("disk_full", "rw" + 11 * "r", 1, 12),
    ("disk_full", "wrwrwrwrwr" + 11 * "r", 0, 19),  # it hovers: one alarm
    ("disk_full", "w" + 9 * "r" + "u" + 11 * "r", 0, 21),  # right, but not clearly
    ("driver_failing", 6 * "wrrrrrrrrr" + 2 * "r", 0, 61),  # fails now and then
    ("unreachable", "wwrr", 0, None),
    ("unreachable", "wwrrr", 0, 4),
    ("unreachable", "wrwrwrrr", 0, 7),
    ("bad_address", "wr", 0, 1),  # was mended by somebody
]


@pytest.mark.parametrize(("code", "course", "begins", "ends"), COURSES)
def test_the_course_of_an_alarm(
    code: str, course: str, begins: int | None, ends: int | None
) -> None:
    alarms: dict[str, Alarm] = {}
    began, ended = [], []
    for minute, sign in enumerate(course):
        before = alarms
        wrong, unclear = {code} if sign == "w" else set(), {code} if sign in "wu" else set()
        alarms = step(alarms, wrong, unclear, at(minute))
        began += [minute] if code in alarms and code not in before else []
        ended += [minute] if code in before and code not in alarms else []
    assert began == ([] if begins is None else [begins])
    assert ended == ([] if ends is None else [ends])


looks = st.lists(st.tuples(st.integers(1, 900), st.sampled_from("wur")), max_size=20)


@given(st.sampled_from(sorted(STEADY)), looks)
def test_no_alarm_is_over_sooner_than_it_was_clearly_right_for_long(
    code: str, course: list[tuple[int, str]]
) -> None:
    alarms: dict[str, Alarm] = {}
    now, last_bad = at(0), at(0)
    for seconds, sign in course:
        now, had = now + timedelta(seconds=seconds), code in alarms
        last_bad = now if sign != "r" else last_bad
        alarms = step(
            alarms, {code} if sign == "w" else set(), {code} if sign == "u" else set(), now
        )
        if sign == "w":
            assert code in alarms
        if had and code not in alarms:
            assert now - last_bad >= STEADY[code]


def test_an_alarm_keeps_its_beginning() -> None:
    def since(now: datetime) -> datetime:
        return step({"disk_full": Alarm(at(0))}, {"disk_full"}, set(), now)["disk_full"].since

    assert since(at(5)) == since(at(50)) == at(0)
