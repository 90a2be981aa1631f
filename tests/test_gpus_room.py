"""Whether a model has room, and the sentence that says who is in its way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes.gpus.outsiders import Verdict
from lanes.gpus.readings import Holder
from lanes.gpus.room import (
    CONTEXT_BYTES,
    Finding,
    Room,
    Space,
    find_room,
    has_room_without_lane,
    need,
    size,
)

GIB = 2**30
BOB = Holder(4711, 99, "bob", "python train.py", 11 * GIB)
CALM = Verdict(clean=2)


def space(used: int, *outsiders: Holder, unseen: int = 0, is_settled: bool = True) -> Space:
    """A card of 24 GiB."""
    return Space(24 * GIB, used, Verdict(outsiders, unseen, clean=2 if is_settled else 0))


@pytest.mark.parametrize(
    ("measured", "file_bytes", "arguments", "needed"),
    [
        ([], 10 * GIB, [], 10 * GIB + CONTEXT_BYTES),
        ([9 * GIB, 12 * GIB], 10 * GIB, [], 12 * GIB),
        ([9 * GIB], 10 * GIB, ["-ngl", "10"], 9 * GIB),
        ([], 10 * GIB, ["-ngl", "10"], None),
        ([], 10 * GIB, ["--n-gpu-layers=10"], None),
        ([], 10 * GIB, ["-c", "4096", "--cpu-moe"], None),
        ([], 0, [], None),
    ],
)
def test_the_need_is_what_was_measured_else_the_file_unless_only_a_part_is_loaded(
    measured: list[int], file_bytes: int, arguments: list[str], needed: int | None
) -> None:
    assert need(measured, file_bytes, arguments) == needed


@pytest.mark.parametrize(
    ("needed", "spaces", "room"),
    [
        (14 * GIB, [space(10 * GIB)], Room.ENOUGH),
        (14 * GIB, [space(15 * GIB, BOB)], Room.TOO_LITTLE),
        (14 * GIB, [space(15 * GIB, BOB, is_settled=False)], Room.UNCLEAR),
        (13 * GIB, [space(15 * GIB, BOB)], Room.ENOUGH),  # the rest is no outsider's
        (14 * GIB, [space(15 * GIB)], Room.ENOUGH),
        (14 * GIB, [space(15 * GIB, unseen=15 * GIB)], Room.TOO_LITTLE),
        (14 * GIB, [space(15 * GIB, BOB), space(0)], Room.ENOUGH),
        (40 * GIB, [space(15 * GIB, BOB), space(0)], Room.TOO_LITTLE),
        (30 * GIB, [space(15 * GIB, BOB)], Room.ENOUGH),  # larger than the card: not ours to judge
        (None, [space(24 * GIB, BOB)], Room.ENOUGH),
        (14 * GIB, [], Room.ENOUGH),
    ],
)
def test_only_what_outsiders_hold_makes_it_too_little(
    needed: int | None, spaces: list[Space], room: Room
) -> None:
    finding = find_room(needed, spaces)
    assert finding.room is room
    assert bool(finding.words) is (room is Room.TOO_LITTLE)


def test_the_sentence_names_need_rest_and_who_holds_it() -> None:
    assert find_room(14 * GIB, [space(15 * GIB, BOB)]) == Finding(
        Room.TOO_LITTLE,
        "Needs 14.0 GiB of GPU memory, 9.0 GiB free: "
        "a python train.py process of bob (pid 4711) holds 11.0 GiB",
    )


def test_the_largest_are_named_and_the_others_counted() -> None:
    small = [Holder(n, n, "eve", "x", n * GIB) for n in (1, 2, 3)]
    words = find_room(14 * GIB, [space(17 * GIB, *small, BOB)]).words
    assert words.endswith(
        "(pid 4711) holds 11.0 GiB; a x process of eve (pid 3) holds 3.0 GiB; 2 more"
    )


def test_a_process_on_two_cards_is_named_once_with_all_it_holds() -> None:
    words = find_room(40 * GIB, [space(11 * GIB, BOB), space(11 * GIB, BOB)]).words
    assert words.endswith("a python train.py process of bob (pid 4711) holds 22.0 GiB")


def test_what_nobody_is_seen_to_hold_is_said_to_be_so() -> None:
    words = find_room(14 * GIB, [space(12 * GIB, unseen=12 * GIB)]).words
    assert words.endswith("12.0 GiB is held by processes that cannot be seen from here")


def test_room_without_the_lane_s_own_server_counts_outsiders_alone() -> None:
    assert has_room_without_lane(14 * GIB, [space(20 * GIB)])
    assert not has_room_without_lane(14 * GIB, [space(20 * GIB, BOB)])
    assert not has_room_without_lane(14 * GIB, [space(20 * GIB, is_settled=False)])
    assert has_room_without_lane(None, [space(24 * GIB, BOB)])


def test_sizes_are_for_people() -> None:
    assert [size(n) for n in (0, 300 * 2**20, GIB, 24 * GIB)] == [
        "0 MiB",
        "300 MiB",
        "1.0 GiB",
        "24.0 GiB",
    ]


amounts = st.integers(0, 24 * GIB)
spaces = st.builds(
    Space,
    total_bytes=st.just(24 * GIB),
    used_bytes=amounts,
    verdict=st.builds(Verdict, unseen_bytes=amounts, clean=st.sampled_from([0, 2])),
)


@given(st.none() | st.integers(1, 100 * GIB), st.lists(spaces, max_size=4))
def test_a_load_is_never_refused_when_that_much_is_free(
    needed: int | None, cards: list[Space]
) -> None:
    free = sum(card.total_bytes - card.used_bytes for card in cards)
    if find_room(needed, cards).room is Room.TOO_LITTLE:
        assert needed is not None
        assert needed > free
        assert not has_room_without_lane(needed, cards)
