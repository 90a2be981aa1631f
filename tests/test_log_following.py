"""A log followed over a real socket, through the web process as it runs in production."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn
from pytest_django import Settings

from gateway import tokens
from gateway.models import ApiToken, Scope
from lanes import clock, log_reading
from lanes.models import Lane, Runtime
from lanes.refusals import Refusal
from slotserve import log_following
from slotserve.asgi import application
from tests import builders, fleet, log_world

pytestmark = [pytest.mark.valkey, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def lane(settings: Settings, tmp_path: Path, transactional_db: None, valkey: str) -> Iterator[Lane]:
    settings.SLOTSERVE_DATA = tmp_path
    with log_world.asking(valkey):
        yield builders.lane("demo")


@pytest.fixture
def host(lane: Lane, valkey: str) -> Iterator[None]:
    with log_world.worker(valkey):
        yield


@pytest.fixture
def web(lane: Lane) -> Iterator[str]:
    """The web process's address."""
    config = uvicorn.Config(application, port=0, lifespan="off", log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    fleet.until(lambda: server.started)
    host, port = server.servers[0].sockets[0].getsockname()
    yield f"http://{host}:{port}"
    server.should_exit = True
    thread.join(60)


@pytest.fixture
def token(lane: Lane) -> str:
    made = tokens.create_token(
        owner=builders.administrator(), name="t", scopes=[Scope.READ], lanes=[], expires_at=None
    )
    assert not isinstance(made, Refusal)
    return made[1]


class Follower:
    """Who follows the log: the lines that have come, and whether the stream has ended."""

    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self.lines: list[str] = []
        self.has_ended = False
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def until(self, line: str) -> None:
        """Wait for the line."""
        fleet.until(lambda: line in self.lines)

    def until_end(self) -> None:
        """Wait for the end of the stream."""
        self._thread.join(60)
        assert self.has_ended

    def _read(self) -> None:
        try:
            for line in self.answer.iter_lines():
                self.lines.append(line)
            self.has_ended = True
        except (httpx.HTTPError, httpx.StreamError):
            pass  # the test has left

    def join(self) -> None:
        self._thread.join(60)


@contextmanager
def following(web: str, token: str, **query: int) -> Iterator[Follower]:
    """Somebody who follows the lane's log, and leaves at the end."""
    headers = {"Authorization": f"Bearer {token}"}
    asked: dict[str, str | int] = {"follow": "true", **query}
    address = f"{web}/api/v1/lanes/demo/log/"
    with httpx.Client(headers=headers, timeout=60) as client:
        with client.stream("GET", address, params=asked) as answer:
            assert answer.status_code == 200
            assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
            follower = Follower(answer)
            yield follower
            if not follower.has_ended:
                answer.close()
        follower.join()


def end(run: Runtime) -> None:
    run.ended_at, run.phase = clock.database_now(), "stopped"
    run.save()


@pytest.mark.usefixtures("host")
def test_lines_come_as_they_are_written_until_the_run_ends(
    lane: Lane, web: str, token: str
) -> None:
    run = log_world.run(lane)
    with log_world.log_of(run) as log:
        log.write(b"zero\none\n")
        with following(web, token, run=run.pk, lines=1) as follower:
            follower.until("one")
            log.write(b"two\nthr")
            follower.until("two")
            log.write(b"ee\nthe end")
            end(run)
            follower.until_end()
    assert follower.lines == ["one", "two", "three", "the end"]


@pytest.mark.usefixtures("host")
def test_who_follows_the_lane_is_told_of_its_next_run(lane: Lane, web: str, token: str) -> None:
    first = log_world.ended(lane)
    log_world.write(first, b"of the first\n")
    with following(web, token, offset=0) as follower:
        follower.until("of the first")
        second = log_world.run(lane)
        log_world.write(second, b"of the second\n")
        follower.until("of the second")
    heading = f"[slotserve: run {second.pk} of {second.revision.preset} begins]"
    assert follower.lines[:3] == ["of the first", heading, "of the second"]
    fleet.until(lambda: not log_following._open)


@pytest.mark.usefixtures("host")
def test_who_loses_the_right_to_read_is_cut_off(
    lane: Lane, web: str, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_following, "CHECK_SECONDS", 0.1)
    run = log_world.run(lane)
    log_world.write(run, b"words\n")
    with following(web, token) as follower:
        follower.until("words")
        tokens.revoke(ApiToken.objects.get(), actor=builders.administrator())
        follower.until_end()
    assert follower.lines[-1] == "[slotserve: this log may not be read any more]"


def test_a_host_that_is_away_is_told_once_and_waited_for(
    lane: Lane, web: str, token: str, valkey: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_reading, "WAIT_SECONDS", 0.1)
    monkeypatch.setattr(log_following, "AWAY_SECONDS", 0.1)
    run = log_world.run(lane)
    log_world.write(run, b"words\n")
    with following(web, token) as follower:
        fleet.until(lambda: len(follower.lines) == 1)
        with log_world.worker(valkey):
            follower.until("words")
    assert follower.lines[0].startswith("[slotserve: test-host does not answer")
    assert follower.lines[1] == "words"


def test_only_so_many_are_followed_at_once(
    lane: Lane, web: str, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_following, "MOST_STREAMS", 0)
    log_world.run(lane)
    headers = {"Authorization": f"Bearer {token}"}
    answer = httpx.get(f"{web}/api/v1/lanes/demo/log/?follow=true", headers=headers, timeout=60)
    assert (answer.status_code, answer.json()["code"]) == (503, "busy")
    assert "are being followed here" in answer.json()["detail"]


@pytest.mark.parametrize("name", ["owner", "administrator"])
def test_who_may_go_on_reading(lane: Lane, name: str) -> None:
    person = builders.administrator() if name == "administrator" else builders.person(name)
    may = name == "administrator"
    assert log_following.may_read(person.pk, token=None, session=None) is may
    assert not log_following.may_read(person.pk, token=987, session=None)
    assert not log_following.may_read(person.pk, token=None, session="no-such-session")
