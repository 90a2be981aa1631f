"""What people are told of a booking: tables of the pure decision."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from notices.deciding import Facts, Was, due, freed, still_holds
from tests.builders import at

LONG_AGO = at(-24 * 60)


def facts(**fields: Any) -> Facts:
    """A confirmed slot from noon for an hour, told of as it is."""
    base = Facts(
        booking=7, lane=1, preset=2, start=at(0), end=at(60), state="confirmed",
        confirmed_at=LONG_AGO,
    )  # fmt: skip
    made = replace(base, **{name: value for name, value in fields.items() if name != "was"})
    return replace(made, was=fields["was"] if "was" in fields else was())


def was(**fields: Any) -> Was:
    return replace(Was(1, 2, at(0), at(60), "confirmed", 3), **fields)


# what is so, minutes after noon -> what is told
CASES: list[tuple[dict[str, Any], float, list[str]]] = [
    ({}, -60, []),
    ({"was": None}, -60, ["confirmed"]),
    ({"was": None, "state": "pending", "confirmed_at": None}, -60, ["decision_needed"]),
    ({"was": None, "state": "cancelled"}, -60, []),
    ({"was": was(state="pending"), "is_decided": True}, -60, ["approved"]),
    # Decided before anybody looked.
    ({"was": None, "is_decided": True}, -60, ["approved"]),
    ({"was": was(state="held"), "is_decided": True}, -60, ["approved"]),
    ({"was": None, "state": "rejected", "is_decided": True}, -60, ["rejected"]),
    ({"was": was(state="held"), "state": "rejected", "is_decided": True}, -60, ["rejected"]),
    ({"was": was(state="rejected"), "state": "rejected", "is_decided": True}, -60, []),
    ({"was": was(state="pending")}, -60, ["confirmed"]),
    ({"was": was(state="cancelled"), "is_decided": True}, -60, ["confirmed"]),
    ({"was": was(state="pending"), "state": "rejected"}, -60, ["rejected"]),
    ({"was": was(state="pending"), "state": "expired"}, -60, ["expired"]),
    ({"was": None, "state": "held", "confirmed_at": None}, -60, ["offered"]),
    ({"was": was(state="held")}, -60, ["confirmed"]),
    ({"was": was(state="held"), "state": "pending"}, -60, ["decision_needed"]),
    ({"was": was(state="held"), "state": "expired"}, -60, []),
    ({"was": was(state="held"), "state": "cancelled"}, -60, []),
    ({"state": "cancelled"}, -60, ["cancelled"]),
    ({"was": was(state="rejected"), "state": "cancelled"}, -60, []),
    ({"start": at(5)}, -60, ["changed"]),
    ({"lane": 9}, -60, ["changed"]),
    ({"preset": 9}, -60, ["changed"]),
    ({"state": "pending", "start": at(5)}, -60, ["decision_needed", "changed"]),
    (
        {"was": was(state="pending"), "state": "pending", "end": at(5)},
        -60,
        ["decision_needed", "changed"],
    ),
    (
        {"was": was(state="pending", owner=1), "state": "pending", "owner": 2},
        -60,
        ["decision_needed"],
    ),
    ({"end": at(30), "released_at": at(30)}, 30, ["released"]),
    ({"end": at(30), "released_at": at(30)}, 46, []),
    ({}, -10.1, []),
    ({}, -10, ["starting"]),
    ({}, -0.1, ["starting"]),
    ({}, 0, []),
    ({"reminder": timedelta(minutes=30)}, -30, ["starting"]),
    ({"confirmed_at": at(-5)}, -4, []),  # who has just booked knows
    ({"state": "pending", "was": was(state="pending")}, -5, []),
    ({}, 49.9, []),
    ({}, 50, ["ending"]),
    ({}, 59.9, ["ending"]),
    ({}, 60, []),
    ({"goes_on": True}, 55, []),
    ({"reminder": timedelta(minutes=60)}, 5, []),  # shorter than its reminder
    ({"is_warm": True}, -30, ["warm"]),
    ({"is_warm": True}, 61, []),
    ({"is_warm": True, "was": None}, -3, ["confirmed", "starting", "warm"]),
    ({"was": None}, 76, []),  # over for long: no news
]


@pytest.mark.parametrize(("so", "minutes", "told"), CASES)
def test_what_is_due_follows_from_what_is_so(
    so: dict[str, Any], minutes: float, told: list[str]
) -> None:
    assert [each.event for each in due(facts(**so), at(minutes))] == told


def test_a_change_is_told_anew_with_a_sequence_of_its_own() -> None:
    (first,) = due(facts(start=at(5)), at(-60))
    (second,) = due(facts(start=at(9), was=was(start=at(5), sequence=4)), at(-60))
    assert [first.key, second.key] == ["changed:7:4", "changed:7:5"]


def test_an_extension_reminds_of_the_end_again_and_not_of_the_start() -> None:
    (before,) = due(facts(), at(-5))
    (after,) = due(facts(end=at(90), was=was(end=at(90))), at(-5))
    assert before.key == after.key
    (end,) = due(facts(), at(55))
    (later,) = due(facts(end=at(90), was=was(end=at(90))), at(85))
    assert end.key != later.key


HELD: list[tuple[str, str, dict[str, Any], float, bool]] = [
    ("starting", "starting:7:20300115T120000", {}, -5, True),
    ("starting", "starting:7:20300115T120000", {}, 1, False),
    ("starting", "starting:7:20300115T120000", {"start": at(5)}, -3, False),
    ("ending", "ending:7:20300115T130000", {}, 55, True),
    ("ending", "ending:7:20300115T130000", {"goes_on": True}, 55, False),
    ("warm", "warm:7:20300115T120000", {"is_warm": True}, 1, True),
    ("warm", "warm:7:20300115T120000", {}, 1, False),
    ("confirmed", "confirmed:7:3", {}, 1, True),
    ("confirmed", "confirmed:7:2", {}, 1, False),
    ("confirmed", "confirmed:7:3", {"state": "cancelled"}, 1, False),
    ("decision_needed", "decision_needed:7:3", {}, 1, False),
    ("changed", "changed:7:3", {"state": "pending", "was": was(state="pending")}, 1, True),
    ("failure", "failure:1:2", {}, 1, True),
]


@pytest.mark.parametrize(("event", "key", "so", "minutes", "holds"), HELD)
def test_what_is_no_longer_so_is_not_sent(
    event: str, key: str, so: dict[str, Any], minutes: float, holds: bool
) -> None:
    assert still_holds(event, key, facts(**so), at(minutes)) is holds


FREED: list[tuple[dict[str, Any], float, tuple[float, float] | None]] = [
    ({}, -60, None),
    ({"state": "cancelled"}, -60, (0, 60)),
    ({"state": "cancelled"}, 20, (20, 60)),
    ({"state": "cancelled"}, 60, None),
    ({"end": at(30), "released_at": at(30)}, 30, (30, 60)),
    ({"start": at(10), "end": at(20)}, -60, (20, 60)),
    ({"start": at(45)}, -60, (0, 45)),
    ({"end": at(90)}, -60, None),
    ({"lane": 9}, -60, (0, 60)),
    ({"was": None}, -60, None),
    ({"was": was(state="cancelled")}, -60, None),
]


@pytest.mark.parametrize(("so", "minutes", "piece"), FREED)
def test_what_a_change_gives_back(
    so: dict[str, Any], minutes: float, piece: tuple[float, float] | None
) -> None:
    wanted = None if piece is None else (1, at(piece[0]), at(piece[1]))
    assert freed(facts(**so), at(minutes)) == wanted


def test_what_is_told_of_a_booking_no_longer_holds_for_who_has_given_it_away() -> None:
    told = ("confirmed", "confirmed:1:0")
    hers = facts(owner=2, was=None)
    assert not still_holds(*told, hers, at(0), 1)
    assert still_holds("decision_needed", "x", facts(owner=2), at(0), 1) is False  # it is decided
    assert still_holds("transferred", "x", hers, at(0), 1)


@pytest.mark.parametrize(("event", "minutes"), [("starting", -5), ("ending", 55), ("warm", -5)])
def test_reminders_are_for_whoever_has_it_when_they_are_sent(event: str, minutes: float) -> None:
    given = facts(owner=2, is_warm=event == "warm", was=was(owner=2))
    (key,) = [each.key for each in due(given, at(minutes)) if each.event == event]
    holds = [still_holds(event, key, given, at(minutes), reader) for reader in (1, 2)]
    assert holds == [False, True]
