"""When a running request must end: drain, reload, another's slot, another server."""

from typing import Any

import pytest

from gateway.edge.endings import Ending, Running, broken_by_order, ending
from tests.edge_harness import MEMBER, OWNER, grant, lane, upstream

NOW, DRAIN = 1000.0, 30.0
LATER = NOW + 3600
MINE = Running(MEMBER, upstream())


def end_of(**fields: Any) -> Ending | None:
    """When the member's request at qwen's server of generation 1 ends, by this lane."""
    return ending(lane(**fields), MINE, NOW, DRAIN)


def at(found: Ending | None) -> float | None:
    return found.at if found else None


def wait(found: Ending | None) -> int | None:
    assert found is not None
    return found.refusal.retry_after


def test_a_free_lane_ends_nothing() -> None:
    assert end_of() is None


@pytest.mark.parametrize(
    "fields",
    [
        {"upstream": None},
        {"upstream": upstream("http://127.0.0.1:10")},
        {"upstream": upstream(generation=2)},
    ],
)
def test_a_server_that_is_another_ends_it_now(fields: dict[str, Any]) -> None:
    assert at(end_of(**fields)) == NOW
    assert at(ending(None, MINE, NOW, DRAIN)) == NOW


def test_a_server_under_new_names_is_the_same() -> None:
    assert end_of(upstream=upstream(names=("qwen", "other"), sealed_key="again")) is None


def test_a_drain_ends_it_at_its_deadline_with_the_rest_of_the_load() -> None:
    drain: dict[str, Any] = {"draining": True, "drain_until": NOW + 20, "generation": 2}
    found = end_of(**drain, eta=NOW + 80)
    assert (at(found), wait(found)) == (NOW + 20, 60)


def test_a_reload_ends_it_now_while_the_table_says_so() -> None:
    assert at(end_of(cut=True, draining=True, drain_until=LATER)) == NOW
    assert at(end_of(cut=True, generation=2)) == NOW
    assert end_of(cut=True) is None


def test_anothers_slot_ends_it_after_the_drain_time_with_the_rest_of_the_slot() -> None:
    found = end_of(grants=(grant(OWNER, NOW - 10, LATER),))
    assert (at(found), wait(found)) == (NOW + 20, 3580)
    found = end_of(grants=(grant(OWNER, NOW - 60, LATER),))
    assert (at(found), wait(found)) == (NOW - 30, 3600)


@pytest.mark.parametrize(
    "booking",
    [
        grant(MEMBER, NOW, LATER),  # one's own
        grant(OWNER, NOW, NOW + DRAIN),  # over before the drain time is
        grant(OWNER, NOW - 3600, NOW),  # over
    ],
)
def test_a_slot_that_asks_for_nothing_ends_nothing(booking: Any) -> None:
    assert end_of(grants=(booking,)) is None


def test_of_a_drain_and_a_slot_the_earlier_ends_it() -> None:
    drain: dict[str, Any] = {"draining": True, "generation": 2}
    slot = (grant(OWNER, NOW, LATER),)
    assert at(end_of(**drain, drain_until=NOW + 60, grants=slot)) == NOW + DRAIN
    assert at(end_of(**drain, drain_until=NOW + 9, grants=slot)) == NOW + 9


def test_a_server_broke_by_order_only_when_something_newer_was_ordered() -> None:
    assert broken_by_order(lane(generation=2), MINE, NOW) is not None
    assert broken_by_order(lane(), MINE, NOW) is None
    assert broken_by_order(None, MINE, NOW) is None


def test_a_server_whose_host_has_vanished_did_not_break_off() -> None:
    found = broken_by_order(lane(unreachable=True), MINE, NOW)
    assert found is not None
    assert (found.status, found.code, found.retry_after) == (503, "host_unreachable", 10)


def test_a_vanished_host_ends_no_request_by_itself() -> None:
    assert ending(lane(unreachable=True), MINE, NOW, DRAIN) is None
