"""Many processes want the same: one gets it, the others are told so. On SQLite and PostgreSQL."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.booking_race_sizes import (
    FREED,
    GIVEN,
    LONGEST,
    PROCESSES,
    QUOTA,
    RAW_ROUNDS,
    ROUNDS,
    SERIES,
)

ROOT = Path(__file__).resolve().parent.parent
LIMIT_SECONDS = 240


class Database:
    """A migrated database, and the processes that race on it."""

    def __init__(self, url: str, folder: Path) -> None:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLOTSERVE", "DJANGO"))}
        self.environment = kept | {
            "DATABASE_URL": url,
            "SLOTSERVE_DATA": str(folder),
            "SLOTSERVE_TABLE_KEYS": "test-" + "k" * 40,
            "SLOTSERVE_SECRET_KEY": "test-secret-key",
            "SLOTSERVE_LOG_LEVEL": "ERROR",
            "REDIS_URL": f"unix://{folder}/nobody.sock?db=0",
        }
        self._python("manage.py", "migrate", "-v0", "--skip-checks")

    def race(self, scenario: str, module: str = "tests.booking_race") -> dict[str, Any]:
        """Every answer, and what the table holds in the end."""
        outcome: dict[str, Any] = json.loads(self._python("-m", module, scenario))
        return outcome

    def _python(self, *arguments: str) -> str:
        ended = subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        assert "Traceback" not in ended.stderr
        return ended.stdout


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]
)
def database(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Database]:
    folder = tmp_path_factory.mktemp("race")
    if request.param == "sqlite":
        yield Database(f"sqlite:///{folder}/race.sqlite3", folder)
        return
    server = os.environ.get("SLOTSERVE_TEST_POSTGRES")
    if not server:
        pytest.skip("NOT TESTED ON POSTGRESQL: SLOTSERVE_TEST_POSTGRES is not set")
    name = f"race_{os.getpid()}"
    with psycopg.connect(server_database(server, "postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        try:
            yield Database(server_database(server, name), folder)
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def server_database(url: str, name: str) -> str:
    """Another database of the same server."""
    return urlsplit(url)._replace(scheme="postgresql", path=f"/{name}").geturl()


def codes(outcome: dict[str, Any]) -> Counter[str]:
    return Counter(answer["code"] for answer in outcome["answers"])


def overlaps(outcome: dict[str, Any]) -> list[tuple[Any, Any]]:
    pairs = pairwise(outcome["held"])
    return [(a, b) for a, b in pairs if a[0] == b[0] and b[1] < a[2]]


def test_one_process_wins_each_slot_and_the_others_learn_who_has_it(database: Database) -> None:
    outcome = database.race("book_one_slot")
    assert codes(outcome) == {"": ROUNDS, "slot_taken": ROUNDS * (PROCESSES - 1)}
    winners = {a["round"]: a["booking"] for a in outcome["answers"] if not a["code"]}
    losers = [a for a in outcome["answers"] if a["code"]]
    assert all(a["conflicts"] == [winners[a["round"]]] for a in losers)
    assert len(outcome["held"]) == ROUNDS


def test_random_changes_never_overlap_and_never_fail(database: Database) -> None:
    outcome = database.race("book_at_random")
    assert set(codes(outcome)) <= {"", "slot_taken", "wrong_state", "not_later"}
    assert overlaps(outcome) == []
    assert len(outcome["held"]) > PROCESSES
    assert codes(outcome)["slot_taken"] > PROCESSES


def test_moves_in_opposite_directions_lock_nobody_out(database: Database) -> None:
    outcome = database.race("move_crosswise")
    assert codes(outcome) == {"": PROCESSES * ROUNDS}
    assert overlaps(outcome) == []


def test_one_booking_moved_by_all_is_moved_by_one_at_a_time(database: Database) -> None:
    outcome = database.race("move_the_same")
    assert set(codes(outcome)) <= {"", "busy"}
    # A move is refused only for another's success during it, so each success refuses at most one
    # move of every other process.
    assert codes(outcome)[""] >= ROUNDS
    assert len(outcome["held"]) == 1


def test_a_quota_holds_for_a_member_who_books_everywhere_at_once(database: Database) -> None:
    outcome = database.race("book_up_to_a_quota")
    assert codes(outcome) == {"": QUOTA, "rules_broken": PROCESSES * ROUNDS - QUOTA}
    assert len(outcome["held"]) == QUOTA


def test_no_race_of_pieces_gets_round_the_longest_slot(database: Database) -> None:
    outcome = database.race("book_in_pieces")
    assert set(codes(outcome)) == {"", "rules_broken"}
    lengths, ends = [0.0], 0.0
    for _, start, end in outcome["held"]:
        lengths = [*lengths[:-1], lengths[-1] + end - start] if start == ends else [*lengths, 3600]
        ends = end
    assert len(outcome["held"]) >= ROUNDS * LONGEST
    assert max(lengths) <= LONGEST * 3600


def test_a_group_that_is_deleted_while_rules_are_made_for_it_loses_none(
    database: Database,
) -> None:
    answers = database.race("rule_for_a_deleted_group")["answers"]
    assert {each["code"] for each in answers} <= {"", "in_use", "exists", "not_found"}
    for turn in range(ROUNDS):
        of_turn = [each for each in answers if each["turn"] == turn]
        assert len({(each["rules"], each["is_there"]) for each in of_turn}) == 1
        assert of_turn[0]["rules"] == of_turn[0]["is_there"]  # both, or neither
        assert sum(each["code"] == "" for each in of_turn) == 1
        other = {"exists", "in_use"} if of_turn[0]["is_there"] else {"not_found"}
        assert {each["code"] for each in of_turn} == {"", *other}


def test_a_series_is_booked_whole_by_one_and_by_no_other(database: Database) -> None:
    outcome = database.race("book_series_at_once")
    assert codes(outcome) == {"": ROUNDS, "series_clash": ROUNDS * (PROCESSES - 1)}
    assert len(outcome["held"]) == ROUNDS * SERIES
    assert overlaps(outcome) == []


def test_what_everybody_gives_away_and_cancels_is_one_persons_in_the_end(
    database: Database,
) -> None:
    outcome = database.race("give_around")
    expected = {"", "busy", "is_owner", "exists", "not_found", "wrong_state", "not_yours"}
    assert set(codes(outcome)) <= expected
    assert codes(outcome)[""] > 0
    assert len(outcome["held"]) <= 1


def test_an_heirs_quota_holds_however_many_give_to_her_at_once(database: Database) -> None:
    outcome = database.race("give_to_one")
    assert codes(outcome) == {"": GIVEN - 1, "rules_broken": PROCESSES - GIVEN}
    assert len(outcome["held"]) == PROCESSES


def test_freed_time_is_held_once_and_for_those_who_waited_longest(database: Database) -> None:
    outcome = database.race("free_for_those_who_wait")
    held = {answer["member"] for answer in outcome["answers"] if answer["code"] == "held"}
    assert held == set(range(FREED))
    assert overlaps(outcome) == []
    assert len(outcome["held"]) == FREED


def test_past_the_service_the_database_alone_lets_one_through(database: Database) -> None:
    outcome = database.race("insert_past_the_service")
    assert codes(outcome)[""] == RAW_ROUNDS
    assert set(codes(outcome)) <= {"", "OVERLAP", "BUSY"}
    assert len(outcome["held"]) == RAW_ROUNDS
