"""Two deeds that know nothing of each other, at once: one is done, the other is told so."""

from collections import Counter
from typing import Any

from tests.booking_race_sizes import FREED, PROCESSES, QUOTA, ROUNDS, SERIES
from tests.test_booking_race import Database, codes, database, overlaps

__all__ = ["database"]  # the fixture
MODULE = "tests.booking_race_pairs"


def race(database: Database, scenario: str) -> dict[str, Any]:
    outcome = database.race(scenario, MODULE)
    assert overlaps(outcome) == []
    return outcome


def of_turn(outcome: dict[str, Any], turn: int) -> list[dict[str, Any]]:
    return [each for each in outcome["answers"] if each.get("turn") == turn]


def of_series(outcome: dict[str, Any]) -> list[int]:
    return [each["count"] for each in outcome["answers"] if each["code"] == "of series"]


def test_series_and_single_bookings_share_no_time_and_no_series_is_half_one(
    database: Database,
) -> None:
    outcome = race(database, "series_against_singles")
    assert set(codes(outcome)) <= {"", "slot_taken", "series_clash", "of series"}
    assert set(of_series(outcome)) <= {SERIES}
    done = [each for each in outcome["answers"] if each["code"] == ""]
    count = Counter(each["is_series"] for each in done)
    assert count[True] == len(of_series(outcome))
    assert len(outcome["held"]) == count[True] * SERIES + count[False]
    for turn in range(ROUNDS):  # whoever came first, somebody was served
        assert any(each["code"] == "" for each in of_turn(outcome, turn))


def test_series_and_single_bookings_of_one_member_keep_to_her_quota(database: Database) -> None:
    outcome = race(database, "series_against_a_quota")
    assert set(codes(outcome)) <= {"", "rules_broken", "series_clash", "of series"}
    assert set(of_series(outcome)) <= {SERIES}
    assert len(outcome["held"]) == QUOTA  # single ones fill what a series leaves


def test_what_is_approved_cancelled_and_rejected_at_once_is_one_of_them_in_the_end(
    database: Database,
) -> None:
    outcome = race(database, "approve_against_cancel")
    assert set(codes(outcome)) == {"", "wrong_state"}
    for turn in range(ROUNDS):
        answers = of_turn(outcome, turn)
        done = Counter(each["deed"] for each in answers if each["code"] == "")
        (state,) = {each["state"] for each in answers}
        # Approved, then cancelled, are two; whatever gives it up is the last.
        assert done in (
            Counter({"approve": 1, "cancel": 1}),
            Counter({"cancel": 1}),
            Counter({"reject": 1}),
        )
        assert state == ("rejected" if done["reject"] else "cancelled")


def test_an_hour_is_held_for_who_waits_or_booked_by_another(database: Database) -> None:
    outcome = race(database, "hold_against_booking")
    assert set(codes(outcome)) <= {"", "slot_taken"}
    assert len(outcome["held"]) == FREED


def test_a_hold_counts_for_the_quota_of_who_books_at_that_moment(database: Database) -> None:
    outcome = race(database, "hold_against_a_quota")
    assert set(codes(outcome)) <= {"", "rules_broken"}
    assert len(outcome["held"]) == 1


def test_a_slot_is_given_away_or_released(database: Database) -> None:
    outcome = race(database, "transfer_against_release")
    assert set(codes(outcome)) <= {"", "not_yours", "too_late", "busy"}
    for turn in range(ROUNDS):
        answers = of_turn(outcome, turn)
        (done,) = [each for each in answers if each["code"] == ""]
        assert done["is_given"] == (done["deed"] == "transfer")
        assert done["is_over"] == (done["deed"] == "release")


def test_who_is_removed_while_she_books_keeps_nothing(database: Database) -> None:
    outcome = race(database, "remove_against_booking")
    left = [each for each in outcome["answers"] if each["code"] == "left"]
    assert len(left) == PROCESSES
    kept = {(each["bookings"], each["waits"], each["tokens"]) for each in left}
    assert kept == {(0, 0, 0)}


def test_rules_that_come_meanwhile_hold_for_all_who_ask_later(database: Database) -> None:
    outcome = race(database, "rules_against_booking")
    middle = ROUNDS // 2
    for turn in range(ROUNDS):
        found = {each["code"] for each in of_turn(outcome, turn)}
        expected = {""} if turn < middle else {"rules_broken"}
        assert found <= ({"", "rules_broken"} if turn == middle else expected)
