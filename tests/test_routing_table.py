"""The table of who may call, row by row, and the order of refusals."""

from dataclasses import replace
from typing import Any

import pytest

from gateway.edge.refusals import EdgeRefusal
from gateway.edge.routing import Asked, Caller, Route, choose
from gateway.edge.table import LaneRoute, Table, digest_of
from tests.edge_harness import MEMBER, OWNER, STRANGER, grant, key_of, lane, table, tokens, upstream

NOW = 1000.0
LATER = 4000.0


def caller(owner: int = OWNER) -> Caller:
    return Caller(digest_of(key_of(owner).encode()))


def ask(
    *lanes: LaneRoute, owner: int = OWNER, now: float = NOW, model: str | None = None, **asked: Any
) -> Route | EdgeRefusal:
    return choose(table(*lanes), caller(owner), Asked(model, **asked), now)


def code(answer: Route | EdgeRefusal) -> str:
    return answer.code if isinstance(answer, EdgeRefusal) else "served"


def wait(answer: Route | EdgeRefusal) -> int | None:
    assert isinstance(answer, EdgeRefusal)
    return answer.retry_after


STARTING: dict[str, Any] = {"phase": "starting", "upstream": None, "eta": NOW + 42.5}
DRAINING: dict[str, Any] = {
    "draining": True,
    "drain_until": NOW + 12,
    "target": "smol",
    "eta": NOW + 30.2,
}
FAILED: dict[str, Any] = {
    "phase": "failed",
    "upstream": None,
    "failure": "out of memory",
    "retry_at": NOW + 60,
}
EMPTY: dict[str, Any] = {"phase": "stopped", "upstream": None, "target": None}
OTHER: dict[str, Any] = {"upstream": upstream(preset="smol"), "target": "smol"}
GIVING_WAY: dict[str, Any] = OTHER | DRAINING | {"is_fallback": True}
STOPPING: dict[str, Any] = {"phase": "stopping", "upstream": None}
GOING_OFF, OLDER = STOPPING | {"target": None}, {"upstream": upstream(names=("qwen", "old"))}
GONE: dict[str, Any] = {"unreachable": True, "eta": None}
MINE, WHOLE = grant(OWNER, 0, LATER), grant(OWNER, 0, LATER, preset=None)

# what the lane is, its booking in progress, what is asked -> the owner's answer, the other's
ROWS: list[tuple[str, dict[str, Any], Any, str | None, str, str]] = [
    ("free and ready", {}, None, None, "served", "served"),
    ("free and ready, named", {}, None, "qwen", "served", "served"),
    ("free and ready, by alias", {}, None, "big", "served", "served"),
    ("free and ready, auto", {}, None, "auto", "served", "served"),
    ("free and ready, empty name", {}, None, "", "served", "served"),
    ("booked and ready", {}, MINE, None, "served", "gpu_reserved"),
    ("booked and ready, named", {}, MINE, "qwen", "served", "gpu_reserved"),
    ("booked and starting", STARTING, MINE, None, "model_loading", "gpu_reserved"),
    ("booked, another still there", OTHER, MINE, None, "model_loading", "gpu_reserved"),
    ("booked, another named", OTHER, MINE, "smol", "model_loading", "gpu_reserved"),
    ("booked, the other draining", OTHER | DRAINING, MINE, "qwen", "model_loading", "gpu_reserved"),
    ("booked, its own draining", DRAINING, MINE, "qwen", "model_switching", "gpu_reserved"),
    ("booked, fallback draining", GIVING_WAY, MINE, "qwen", "model_loading", "gpu_reserved"),
    ("booked and failed", FAILED, MINE, "qwen", "model_failed", "gpu_reserved"),
    ("booked, nothing yet", EMPTY, MINE, "qwen", "model_loading", "gpu_reserved"),
    ("booked, unknown named", {}, MINE, "nope", "model_not_found", "gpu_reserved"),
    ("booked, other known named", {}, MINE, "coder", "model_not_loaded", "gpu_reserved"),
    ("booked, ready, host gone", GONE, MINE, "qwen", "served", "gpu_reserved"),
    ("booked, starting, gone", STARTING | GONE, MINE, None, "host_unreachable", "gpu_reserved"),
    ("booked, failed, gone", FAILED | GONE, MINE, None, "host_unreachable", "gpu_reserved"),
    ("booked, draining, gone", DRAINING | GONE, MINE, None, "host_unreachable", "gpu_reserved"),
    ("booked, stopping, gone", STOPPING | GONE, MINE, None, "host_unreachable", "gpu_reserved"),
    ("booked, other there, gone", OTHER | GONE, MINE, None, "host_unreachable", "gpu_reserved"),
    ("booked, unknown, gone", EMPTY | GONE, MINE, "nope", "model_not_found", "gpu_reserved"),
    ("free and empty, host gone", EMPTY | GONE, None, None, "host_unreachable", "host_unreachable"),
    ("whole GPU, host gone", EMPTY | GONE, WHOLE, None, "gpu_exclusive", "gpu_reserved"),
    ("whole GPU", EMPTY, WHOLE, None, "gpu_exclusive", "gpu_reserved"),
    ("whole GPU, unknown named", EMPTY, WHOLE, "nope", "gpu_exclusive", "gpu_reserved"),
    ("whole GPU, server still there", {}, WHOLE, "qwen", "gpu_exclusive", "gpu_reserved"),
    ("free, unknown", {}, None, "nope", "model_not_found", "model_not_found"),
    ("free and draining, unknown", DRAINING, None, "nope", "model_not_found", "model_not_found"),
    ("free and draining", DRAINING, None, "qwen", "model_switching", "model_switching"),
    ("free and draining, other", DRAINING, None, "coder", "model_switching", "model_switching"),
    ("free and loading", STARTING, None, None, "model_loading", "model_loading"),
    ("free and loading, other", STARTING, None, "coder", "model_loading", "model_loading"),
    ("free and stopping", STOPPING, None, "qwen", "model_switching", "model_switching"),
    ("free and going off", GOING_OFF, None, "qwen", "no_model_loaded", "no_model_loaded"),
    ("free and failed", FAILED, None, "qwen", "model_failed", "model_failed"),
    ("free and empty", EMPTY, None, "qwen", "no_model_loaded", "no_model_loaded"),
    ("free and empty, auto", EMPTY, None, "auto", "no_model_loaded", "no_model_loaded"),
    ("free, other known", {}, None, "coder", "model_not_loaded", "model_not_loaded"),
    ("free, by an older revision's alias", OLDER, None, "old", "served", "served"),
    (
        "disabled and failed",
        FAILED | {"enabled": False},
        None,
        None,
        "model_failed",
        "model_failed",
    ),
    ("disabled", {"enabled": False}, None, None, "no_model_loaded", "no_model_loaded"),
]


@pytest.mark.parametrize("lane_slug", [None, "main"], ids=["any lane", "named lane"])
@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_each_row_of_the_table(row: tuple[Any, ...], lane_slug: str | None) -> None:
    _, state, booking, model, for_owner, for_other = row
    here = lane(**state, grants=(booking,) if booking else ())
    answers = {who: ask(here, owner=who, model=model, lane=lane_slug) for who in (OWNER, MEMBER)}
    assert (code(answers[OWNER]), code(answers[MEMBER])) == (for_owner, for_other)
    for answer in answers.values():
        if isinstance(answer, EdgeRefusal):
            assert answer.words.startswith("SlotServe gateway: ")
            assert (answer.retry_after is not None) == (answer.status in {403, 429, 503})
            assert answer.retry_after is None or answer.retry_after >= 1


@pytest.mark.parametrize(
    ("now", "for_owner", "for_other"),
    [
        (99.999, "served", "served"),
        (100.0, "served", "gpu_reserved"),
        (199.999, "served", "gpu_reserved"),
        (200.0, "served", "served"),
    ],
)
def test_a_slot_holds_from_its_start_until_just_before_its_end(
    now: float, for_owner: str, for_other: str
) -> None:
    here = lane(grants=(grant(OWNER, 100, 200),))
    found = table(here, confirmed_at=now)
    answers = [code(choose(found, caller(who), Asked(), now)) for who in (OWNER, MEMBER)]
    assert answers == [for_owner, for_other]


def test_slots_that_touch_hand_over_at_the_moment() -> None:
    slots = (grant(MEMBER, NOW, LATER), grant(OWNER, 0, NOW))
    here = lane(grants=slots)
    assert code(ask(here, owner=OWNER, now=NOW - 0.001)) == "served"
    assert code(ask(here, owner=OWNER, now=NOW)) == "gpu_reserved"
    assert code(ask(here, owner=MEMBER, now=NOW)) == "served"


def test_retry_after_tells_the_rest_of_the_booking_the_load_and_the_drain() -> None:
    assert wait(ask(lane(grants=(MINE,)), owner=MEMBER)) == 3000
    assert wait(ask(lane(**STARTING))) == 43
    assert wait(ask(lane(**DRAINING))) == 31
    assert wait(ask(lane(**DRAINING | {"eta": None}))) == 12
    assert wait(ask(lane(**FAILED))) == 60
    assert wait(ask(lane(**STARTING | {"eta": NOW - 5}))) == 1
    assert (wait(ask(lane(**STARTING | {"eta": None}))), wait(ask(lane(**EMPTY)))) == (10, 60)


def test_the_fallback_serves_the_owner_under_the_booked_name_and_says_so() -> None:
    here = lane(**OTHER, is_fallback=True, grants=(MINE,))
    for name in ("qwen", "big", "smol", "auto", None):
        route = ask(here, model=name)
        assert isinstance(route, Route), name
        assert (route.upstream.preset, route.fallback) == ("smol", "smol")
    assert code(ask(here, model="coder")) == "model_not_loaded"
    assert code(ask(here, owner=MEMBER)) == "gpu_reserved"


def test_a_fallback_that_is_still_starting_is_loading() -> None:
    here = lane(**OTHER | STARTING, is_fallback=True, grants=(MINE,))
    assert code(ask(here)) == "model_loading"


def test_a_fallback_before_the_slot_does_not_answer_to_the_booked_name() -> None:
    here = lane(**OTHER, is_fallback=True, grants=(grant(OWNER, NOW + 60, LATER),))
    assert code(ask(here, model="qwen")) == "model_not_loaded"


def test_not_loaded_says_what_is_and_when_the_named_one_is_booked_next() -> None:
    other = lane("other", grants=(grant(MEMBER, 1700000000, 1700003600, preset="coder"),))
    answer = ask(lane(), other, model="coder")
    assert isinstance(answer, EdgeRefusal)
    assert "runs qwen" in answer.words
    assert "2023-11-14 22:13:20 UTC on lane 'other'" in answer.words


def test_the_next_booking_of_an_alias_is_the_soonest_that_is_not_over() -> None:
    slots = [(NOW - 9, NOW - 1), (NOW + 900, LATER), (NOW + 60, NOW + 600)]
    booked = [lane(f"l{at:.0f}", grants=(grant(MEMBER, at, end),)) for at, end in slots]
    answer = ask(lane("free", **OTHER), *booked, model="big", lane="free")
    assert isinstance(answer, EdgeRefusal)
    assert f"booked at 1970-01-01 00:17:40 UTC on lane 'l{NOW + 60:.0f}'" in answer.words


def test_without_a_table_nobody_is_told_that_a_key_is_wrong() -> None:
    for digest in (None, "unknown"):
        assert code(choose(None, Caller(digest), Asked(), NOW)) == "gateway_starting"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"expires_at": NOW}, "invalid_api_key"),
        ({"expires_at": NOW + 1}, "served"),
        ({"scopes": ("bookings", "read")}, "invalid_api_key"),
        ({"scopes": ("admin",)}, "served"),
        ({"lanes": ("main",)}, "served"),
        ({"lanes": ("other",)}, "no_model_loaded"),
    ],
)
def test_what_a_token_is_good_for(changes: dict[str, Any], expected: str) -> None:
    found = replace(table(lane()), tokens=tokens(**changes))
    assert code(choose(found, caller(), Asked(), NOW)) == expected


def test_no_key_and_an_unknown_key_are_401_even_on_a_lane_that_is_not_there() -> None:
    for who in (Caller(None), caller(STRANGER)):
        answer = choose(table(lane()), who, Asked(lane="nowhere"), NOW)
        assert isinstance(answer, EdgeRefusal)
        assert (answer.status, answer.code) == (401, "invalid_api_key")


def test_a_lane_that_is_not_there_or_not_for_this_key_is_not_found() -> None:
    assert code(ask(lane(), lane="nowhere")) == "lane_not_found"
    limited = replace(table(lane(), lane("other")), tokens=tokens(lanes=("other",)))
    assert code(choose(limited, caller(), Asked(lane="main"), NOW)) == "lane_not_found"


def _stale(*lanes: LaneRoute) -> Table:
    return table(*lanes, confirmed_at=NOW - 301)


def test_a_stale_table_serves_owners_of_bookings_in_progress_and_nobody_else() -> None:
    held = _stale(lane(grants=(MINE,)), lane("free"))
    assert code(choose(held, caller(OWNER), Asked(), NOW)) == "served"
    assert code(choose(held, caller(OWNER), Asked(lane="free"), NOW)) == "gateway_stale"
    assert code(choose(held, caller(MEMBER), Asked(), NOW)) == "gateway_stale"
    assert code(choose(held, caller(STRANGER), Asked(), NOW)) == "gateway_stale"
    assert code(choose(held, Caller(None), Asked(), NOW)) == "invalid_api_key"
    assert code(choose(held, caller(MEMBER), Asked(), NOW, max_age=301)) == "served"


def slug(answer: Route | EdgeRefusal) -> str:
    assert isinstance(answer, Route), answer
    return answer.lane.slug


def test_the_callers_own_booking_comes_before_free_lanes() -> None:
    assert slug(ask(lane("free"), lane("mine", grants=(MINE,)))) == "mine"
    assert slug(ask(lane("free"), lane("mine", grants=(MINE,)), lane="free")) == "free"


def test_of_several_own_bookings_the_one_for_the_named_preset_serves() -> None:
    smol = lane("b", **OTHER, grants=(grant(OWNER, 0, LATER, preset="smol"),))
    mine = lane("a", grants=(MINE,))
    assert slug(ask(mine, smol, model="smol")) == "b"
    assert slug(ask(mine, smol, model="big")) == "a"
    assert code(ask(mine, smol, model="coder")) == "model_not_loaded"


def test_a_booking_for_the_named_preset_comes_before_a_fallback_to_it() -> None:
    booked = lane("booked", **OTHER, grants=(grant(OWNER, 0, LATER, preset="smol"),))
    fallback = lane("fallback", **OTHER, is_fallback=True, grants=(MINE,))
    busy = {"booked": 3}
    found = choose(table(fallback, booked), caller(), Asked("smol"), NOW, in_flight=busy)
    assert slug(found) == "booked"


def test_a_free_lane_with_the_named_model_and_fewest_in_flight_serves() -> None:
    lanes = (lane("a"), lane("b"), lane("c", **OTHER), lane("d", grants=(MINE,)))
    found = table(*lanes)
    busy = {"a": 2, "b": 1}
    asked = Asked("qwen")
    assert slug(choose(found, caller(MEMBER), asked, NOW, in_flight=busy)) == "b"
    assert slug(choose(found, caller(MEMBER), Asked("auto"), NOW, in_flight=busy)) == "c"
    assert slug(choose(found, caller(MEMBER), Asked("smol"), NOW)) == "c"


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("qwen", "gpu_reserved"),  # the reserved lane runs it: that one comes free again
        ("smol", "model_loading"),  # the other lane is loading it
        ("coder", "model_loading"),  # nothing has to do with it
        ("nope", "model_not_found"),
        (None, "model_loading"),
    ],
)
def test_of_several_refusals_the_most_helpful_is_given(model: str | None, expected: str) -> None:
    reserved = lane("a", grants=(grant(OWNER, 0, LATER),))
    loading = lane("b", **STARTING | {"target": "smol"})
    assert code(ask(reserved, loading, owner=MEMBER, model=model)) == expected


def test_not_loaded_says_more_than_what_other_lanes_are_busy_with() -> None:
    assert code(ask(lane("a", **STARTING), lane("b"), model="coder")) == "model_not_loaded"


def test_of_lanes_alike_the_one_that_is_free_first_is_told_of() -> None:
    ends = {"a": NOW + 600, "b": NOW + 60}
    reserved = [lane(name, grants=(grant(OWNER, 0, end),)) for name, end in ends.items()]
    assert wait(ask(*reserved, owner=MEMBER, model="qwen")) == 60


def test_no_lane_at_all_is_no_model_loaded() -> None:
    assert code(ask()) == "no_model_loaded"
