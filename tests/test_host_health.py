"""When a host counts as unreachable, and what is wrong with one: the pure half."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from django.utils import timezone, translation
from hypothesis import given
from hypothesis import strategies as st

from lanes.host_health import MARGIN, HostFacts, Report, is_unreachable, troubles, unreachable_since
from lanes.telling import tell
from tests.builders import NOON

SILENT = timedelta(seconds=20)
GIB = 2**30
WELL = Report(NOON, "1", clock_skew=0.1, disk_free_bytes=50 * GIB, disk_total_bytes=100 * GIB)
HOST = HostFacts("gpu1", "10.0.0.5", seen_at=NOON, has_cards=True, report=WELL)


def ago(seconds: float | None) -> datetime | None:
    return None if seconds is None else NOON - timedelta(seconds=seconds)


# seconds since the last look, since it was asked in vain -> whether it is unreachable
SILENCES: list[tuple[float | None, float | None, bool]] = [
    (1, None, False),
    (19, 9, False),
    (21, 11, True),
    (21, 9, False),  # asked for less than half the time
    (21, None, False),  # nobody could ask
    (3600, 3700, False),  # asked before it looked last: the beat was away since
    (3600, 2, False),  # the beat is just back
    (3600, 10, True),
    (None, None, False),
    (None, 5, False),
    (None, 10, True),
    (-30, 60, False),  # the database's clock was set back
]


@pytest.mark.parametrize(("seen", "asked", "is_gone"), SILENCES)
def test_who_is_unreachable(seen: float | None, asked: float | None, is_gone: bool) -> None:
    facts = replace(HOST, seen_at=ago(seen), asked_at=ago(asked))
    assert is_unreachable(facts, NOON, SILENT) == is_gone


def test_unreachable_counts_from_the_last_look_and_lasts_until_the_next() -> None:
    gone = replace(HOST, seen_at=ago(21), asked_at=ago(11))
    since = unreachable_since(gone, NOON, SILENT)
    assert since == ago(21)
    marked = replace(gone, unreachable_since=since, asked_at=None)
    assert unreachable_since(marked, NOON, SILENT) == since
    assert unreachable_since(replace(marked, seen_at=ago(1)), NOON, SILENT) is None


def test_since_when_it_is_silent_is_told_in_the_reader_s_language_and_zone() -> None:
    (trouble,) = troubles(replace(HOST, unreachable_since=NOON), "1")
    assert trouble.words == "gpu1 has not answered since Tue 15 Jan 2030, 12:00 UTC"
    with timezone.override("Europe/Berlin"), translation.override("de"):
        told = tell(trouble.words)
    assert told == "gpu1 hat seit Di, 15. Jan 2030, 13:00 CET nicht geantwortet"


moments = st.none() | st.integers(-100, 100).map(lambda n: NOON + timedelta(seconds=n))


@given(moments, moments, moments)
def test_who_has_just_looked_is_there(
    asked: datetime | None, since: datetime | None, seen: datetime | None
) -> None:
    facts = replace(HOST, seen_at=seen, asked_at=asked, unreachable_since=since)
    after = unreachable_since(facts, NOON, SILENT)
    if seen is not None and seen >= NOON - SILENT:
        assert after is None
    if after is None and since is not None:
        assert seen is not None
        assert seen >= NOON - SILENT


TROUBLES: list[tuple[HostFacts, list[str]]] = [
    (HOST, []),
    (replace(HOST, report=None), []),
    (replace(HOST, unreachable_since=NOON), ["unreachable"]),
    (replace(HOST, seen_at=None, unreachable_since=NOON), ["never_seen"]),
    (replace(HOST, address="8.8.8.8"), ["public_address"]),
    (replace(HOST, address="gpu1.local"), ["bad_address"]),
    (replace(HOST, report=replace(WELL, clock_skew=2.5)), ["clock_skew"]),
    (replace(HOST, report=replace(WELL, clock_skew=-2.5)), ["clock_skew"]),
    (replace(HOST, report=replace(WELL, version="0")), ["other_version"]),
    (replace(HOST, report=replace(WELL, disk_free_bytes=GIB)), ["disk_full"]),
    (replace(HOST, report=replace(WELL, disk_total_bytes=2000 * GIB)), ["disk_full"]),
    (replace(HOST, report=replace(WELL, disk_free_bytes=GIB, disk_total_bytes=GIB)), []),
    (replace(HOST, report=replace(WELL, is_driver_failing=True)), ["driver_failing"]),
    (replace(HOST, has_cards=False, report=replace(WELL, is_driver_failing=True)), []),
    (replace(HOST, report=replace(WELL, is_user_shared=True)), ["shared_user"]),
    (replace(HOST, address="127.0.0.1", report=replace(WELL, is_user_shared=True)), []),
    (replace(HOST, address="::1", report=replace(WELL, is_user_shared=True)), []),
]


@pytest.mark.parametrize(("facts", "codes"), TROUBLES)
def test_what_is_wrong_with_a_host(facts: HostFacts, codes: list[str]) -> None:
    found = troubles(facts, "1")
    assert [each.code for each in found] == codes
    assert all(each.hint.endswith(".") and "gpu1" in each.words for each in found)


# What is right by less than the margin: the alarm of it is not over yet.
UNCLEAR: list[tuple[Report, list[str]]] = [
    (WELL, []),
    (replace(WELL, clock_skew=1.5), []),
    (replace(WELL, clock_skew=-1.7), ["clock_skew"]),
    (replace(WELL, disk_free_bytes=int(3.5 * GIB)), ["disk_full"]),  # the limit is 3 GiB
    (replace(WELL, disk_free_bytes=4 * GIB), []),
    (replace(WELL, disk_free_bytes=GIB, disk_total_bytes=GIB), []),
]


@pytest.mark.parametrize(("report", "codes"), UNCLEAR)
def test_what_is_right_but_not_clearly(report: Report, codes: list[str]) -> None:
    facts = replace(HOST, report=report)
    assert troubles(facts, "1") == []
    assert [each.code for each in troubles(facts, "1", margin=MARGIN)] == codes
