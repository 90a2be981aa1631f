"""REST: a lane's server log as JSON, as text, and its runs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings
from rest_framework.test import APIClient

from lanes import log_reading
from lanes.models import Lane, Phase
from tests import builders, log_world
from tests.test_api_bookings import signed_in

pytestmark = [pytest.mark.valkey, pytest.mark.django_db(transaction=True)]
LOG, RUNS = "/api/v1/lanes/demo/log/", "/api/v1/lanes/demo/runs/"


@pytest.fixture
def lane(settings: Settings, tmp_path: Path, transactional_db: None) -> Lane:
    settings.SLOTSERVE_DATA = tmp_path
    return builders.lane("demo")


@pytest.fixture
def host(lane: Lane, valkey: str) -> Iterator[None]:
    with log_world.asking(valkey), log_world.worker(valkey):
        yield


@pytest.fixture
def administrator(lane: Lane) -> APIClient:
    return signed_in(builders.administrator())


@pytest.mark.usefixtures("host")
def test_the_last_lines_and_what_came_since(lane: Lane, administrator: APIClient) -> None:
    run = log_world.run(lane)
    with log_world.log_of(run) as log:
        log.write(b"one\ntwo\nthr")
        first = administrator.get(LOG, {"lines": 1}).data
        log.write(b"ee\n")
        run.ended_at = run.started_at
        run.save()
    rest = administrator.get(LOG, {"offset": first["next"]})
    while not rest.data["is_over"]:
        rest = administrator.get(LOG, {"offset": first["next"]})
    assert first == {
        "run": run.pk,
        "offset": 4,
        "next": 8,
        "lines": ["two"],
        "unfinished": "thr",
        "skipped": 0,
        "has_more": False,
        "is_over": False,
        "detail": "",
    }
    assert (rest.data["lines"], rest.data["next"]) == (["three"], 14)


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("how", [{"format": "text"}, {"HTTP_ACCEPT": "text/plain"}])
def test_a_log_as_plain_text(lane: Lane, administrator: APIClient, how: dict[str, Any]) -> None:
    log_world.write(log_world.ended(lane), b"\x1b[1mone\x1b[0m\n<two>\n")
    query = {name: value for name, value in how.items() if name == "format"}
    headers = {name: value for name, value in how.items() if name != "format"}
    answer = administrator.get(LOG, query, **headers)
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.content == b"one\n<two>\n"


@pytest.mark.usefixtures("host")
def test_the_log_of_an_earlier_run(lane: Lane, administrator: APIClient) -> None:
    first, second = log_world.ended(lane), log_world.ended(lane)
    log_world.write(first, b"the first\n")
    log_world.write(second, b"the second\n")
    assert administrator.get(LOG).data["lines"] == ["the second"]
    assert administrator.get(LOG, {"run": first.pk}).data["lines"] == ["the first"]


def test_the_runs_say_how_they_ended(lane: Lane, administrator: APIClient) -> None:
    builders.lane("other")
    reason = {"phase": Phase.FAILED, "reason": "out of memory", "exit_status": -9}
    runs = [log_world.ended(lane), log_world.ended(lane, **reason), log_world.run(lane)]
    told = administrator.get(RUNS).data
    assert [each["id"] for each in told] == [run.pk for run in reversed(runs)]
    assert (told[0]["phase"], told[0]["ended_at"]) == ("ready", None)
    assert {name: told[1][name] for name in reason} == reason
    assert told[1]["preset"] == runs[1].revision.preset.slug
    assert administrator.get("/api/v1/lanes/other/runs/").data == []


def test_only_as_many_runs_as_have_logs_are_told(
    lane: Lane, administrator: APIClient, settings: Settings
) -> None:
    settings.SLOTSERVE_LOG_RUNS = 2
    for _ in range(3):
        log_world.ended(lane)
    assert len(administrator.get(RUNS).data) == 2


@pytest.mark.parametrize("address", [LOG, RUNS, f"{LOG}?follow=true"])
def test_logs_are_for_administrators(lane: Lane, address: str) -> None:
    log_world.run(lane)
    answer = signed_in(builders.person("member")).get(address)
    assert (answer.status_code, answer.data["code"]) == (403, "not_administrator")


def test_a_lane_without_runs_says_so(lane: Lane, administrator: APIClient) -> None:
    told = administrator.get(LOG).data
    assert (told["run"], told["lines"]) == (None, [])
    assert told["detail"] == "No model server has run on this lane yet."
    text = administrator.get(LOG, {"format": "text"}).content.decode()
    assert text == "No model server has run on this lane yet.\n"


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ({"offset": 3, "lines": 5}, 400, "not both"),
        ({"offset": -1}, 400, "offset"),
        ({"offset": "x"}, 400, "offset"),
        ({"offset": 2**63}, 400, "offset"),
        ({"lines": 0}, 400, "lines"),
        ({"lines": 2001}, 400, "2000"),
        ({"follow": "perhaps"}, 400, "follow"),
        ({"run": 0}, 400, "run"),
        ({"run": 987654}, 404, ""),
        ({"format": "xml"}, 404, ""),
    ],
)
@pytest.mark.parametrize("text", [{}, {"HTTP_ACCEPT": "text/plain"}])
def test_a_question_that_has_no_answer_is_refused_in_words(
    lane: Lane, administrator: APIClient, query: dict[str, Any], status: int, words: str, text: Any
) -> None:
    log_world.run(lane)
    answer = administrator.get(LOG, query, **text)
    assert answer.status_code == status
    assert words in answer.content.decode()
    assert answer.content


def test_the_run_of_another_lane_is_not_found(lane: Lane, administrator: APIClient) -> None:
    other = log_world.run(builders.lane())
    log_world.run(lane)
    assert administrator.get(LOG, {"run": other.pk}).status_code == 404


@pytest.mark.parametrize("query", [{}, {"format": "text"}])
def test_a_host_that_does_not_answer_is_a_503(
    lane: Lane,
    administrator: APIClient,
    valkey: str,
    monkeypatch: pytest.MonkeyPatch,
    query: dict[str, str],
) -> None:
    monkeypatch.setattr(log_reading, "WAIT_SECONDS", 0.2)
    log_world.run(lane)
    with log_world.asking(valkey):
        answer = administrator.get(LOG, query)
    assert (answer.status_code, answer["Retry-After"]) == (503, "1")
    assert "test-host does not answer" in answer.content.decode()
