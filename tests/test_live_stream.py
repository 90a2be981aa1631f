"""The stream that pages listen to, over a real socket."""

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx
import pytest
import redis
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client
from pytest_django import Settings

from lanes import clock, notices
from lanes.events import add_event
from lanes.models import Lane, Notice, Phase
from slotserve.live import hub as hubs
from slotserve.live.reading import Look, Visitor, look
from slotserve.live.state import NOTHING
from tests import browser_pages as pages
from tests import builders, fleet
from tests.conftest import ValkeyServer
from tests.web_server import WebServer, web_server
from wire.edges import EDGES, TABLE_CHANNEL, EdgeReport, LaneCount, encode_report

pytestmark = [pytest.mark.valkey, pytest.mark.django_db(transaction=True)]


class Page:
    """An open page: what it has been told, as one state."""

    def __init__(self, answer: httpx.Response) -> None:
        self.topics: dict[str, str | None] = {}
        self.figures: dict[str, dict[str, int | None]] = {}
        self.unread: int | None = None
        self.end: dict[str, str] = {}
        self.beats = 0
        self.has_ended = False
        self._answer = answer
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def until(self, condition: Callable[["Page"], object]) -> None:
        """Wait until it has been told so."""
        fleet.until(lambda: bool(condition(self)))

    def leave(self) -> None:
        """Close the connection, under the reader's hands."""
        below = self._answer.extensions["network_stream"].get_extra_info("socket")
        with suppress(OSError):
            below.shutdown(socket.SHUT_RDWR)
        self.thread.join(60)

    def _read(self) -> None:
        name = ""
        try:
            for line in self._answer.iter_lines():
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    self._take(name, json.loads(line.removeprefix("data: ")))
            self.has_ended = True
        except (httpx.HTTPError, httpx.StreamError):
            pass  # the test has left

    def _take(self, name: str, data: dict[str, Any]) -> None:
        if name == "state":
            self.topics |= data["topics"]
            self.figures |= data["figures"]
        elif name == "you":
            self.unread = data["unread"]
        elif name == "beat":
            self.beats += 1
        else:
            self.end = data


@pytest.fixture
def lane(transactional_db: None, valkey: str) -> Lane:
    lane = builders.lane("demo", default_preset=builders.preset("small"))
    pages.order(lane, lane.default_preset)
    return lane


@pytest.fixture
def web(lane: Lane) -> Iterator[WebServer]:
    with web_server() as server:
        yield server
        fleet.until(lambda: not server.is_answering)


def cookies(user: User) -> dict[str, str]:
    client = Client()
    client.force_login(user)
    return {settings.SESSION_COOKIE_NAME: client.cookies[settings.SESSION_COOKIE_NAME].value}


@contextmanager
def page_of(web: WebServer, user: User) -> Iterator[Page]:
    with (
        httpx.Client(base_url=web.url, cookies=cookies(user), timeout=60) as client,
        client.stream("GET", "/events/") as answer,
    ):
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/event-stream"
        assert answer.headers["x-accel-buffering"] == "no"
        assert answer.headers["cache-control"] == "no-store"
        page = Page(answer)
        page.until(lambda page: page.topics)
        yield page
        page.leave()


def test_a_page_is_told_everything_and_then_what_changes(web: WebServer, lane: Lane) -> None:
    with page_of(web, builders.person()) as page:
        assert {"lanes", "notice", "bookings", "lane:demo"} <= page.topics.keys()
        before = dict(page.topics)
        assert lane.default_preset is not None
        pages.runtime(lane, lane.default_preset, Phase.READY)
        page.until(lambda page: page.topics["lane:demo"] != before["lane:demo"])
        assert page.topics["lanes"] == before["lanes"]


def test_what_a_page_carries_is_what_it_is_told(web: WebServer) -> None:
    with page_of(web, builders.person()) as page:
        shown = httpx.get(f"{web.url}/", cookies=cookies(builders.person())).text
        assert f'data-live-digest="{page.topics["lane:demo"]}"' in shown


def test_who_comes_after_everybody_has_left_is_told_what_is_so_then(
    web: WebServer, lane: Lane
) -> None:
    with page_of(web, builders.person()):
        pass
    fleet.until(lambda: not web.is_answering)
    builders.lane("other")
    with page_of(web, builders.person()) as page:
        assert "lane:other" in page.topics


def test_a_booking_and_a_lane_that_comes_are_told(web: WebServer, lane: Lane) -> None:
    with page_of(web, builders.person()) as page:
        before = dict(page.topics)
        builders.lane("other")
        page.until(lambda page: page.topics["lanes"] != before["lanes"])
        add_event(lane, clock.database_now(), "booking.moved", "moved")
        page.until(lambda page: page.topics["bookings"] != before["bookings"])
        assert page.topics["lane:demo"] != before["lane:demo"]


def test_what_edges_have_in_flight_is_told(web: WebServer, valkey: str) -> None:
    with page_of(web, builders.person()) as page, redis.Redis.from_url(valkey) as client:
        assert page.figures["demo"]["in_flight"] == 0
        now_ms = client.time()[0] * 1000
        for name, count in (("a", LaneCount(1, 2, 1)), ("b", LaneCount(1, 1))):
            report = EdgeReport(name, now_ms + 3_000, {"demo": count})
            client.hset(EDGES, name, encode_report(report))
        page.until(lambda page: page.figures["demo"]["in_flight"] == 3)
        assert page.figures["demo"]["waiting"] == 1


def test_notices_are_told_to_whom_they_are_for(web: WebServer) -> None:
    owner, other = builders.person("owner"), builders.person("other")
    with page_of(web, owner) as mine, page_of(web, other) as theirs:
        mine.until(lambda page: page.unread == 0)
        Notice.objects.create(recipient=owner, key="k", sentence="s", at=clock.database_now())
        mine.until(lambda page: page.unread == 1)
        notices.mark_read(owner, clock.database_now())
        mine.until(lambda page: page.unread == 0)
        assert theirs.unread == 0


def test_only_administrators_are_told_of_hosts(web: WebServer) -> None:
    with page_of(web, builders.person()) as member, page_of(web, builders.administrator()) as boss:
        assert "hosts" in boss.topics
        assert "hosts" not in member.topics


def test_strangers_are_not_let_in(web: WebServer) -> None:
    assert httpx.get(f"{web.url}/events/", timeout=60).status_code == 401


def test_more_than_can_be_fed_are_sent_away(
    web: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hubs, "MOST_LISTENERS", 1)
    with page_of(web, builders.person()):
        again = httpx.get(f"{web.url}/events/", cookies=cookies(builders.person()))
        assert (again.status_code, again.headers["retry-after"]) == (503, "5")


CHANGES: dict[str, dict[str, Any]] = {
    "another password": {"password": "x"},
    "inactive": {"is_active": False},
    "no administrator any more": {"is_staff": False},
}


@pytest.mark.parametrize("how", ["logged out", *CHANGES])
def test_the_stream_ends_with_the_right_to_it(
    web: WebServer, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(hubs, "CHECK_SECONDS", 0.1)
    boss, other = builders.administrator(), builders.person("other")
    with page_of(web, boss) as page, page_of(web, other) as stays:
        if how == "logged out":
            sessions = Session.objects.all()
            next(each for each in sessions if _user_of(each) == boss.pk).delete()
        else:
            User.objects.filter(pk=boss.pk).update(**CHANGES[how])
        page.until(lambda page: page.has_ended)
        assert page.end == {"why": "session"}
        assert not stays.has_ended


def test_a_server_that_stops_ends_streams_at_once(lane: Lane) -> None:
    with web_server() as server, page_of(server, builders.person()) as page:
        server.server.should_exit = True
        page.until(lambda page: page.has_ended)
        assert page.end == {"why": "stop"}


def test_a_silent_stream_says_that_it_lives(
    web: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hubs, "HEARTBEAT_SECONDS", 0.05)
    with page_of(web, builders.person()) as page:
        page.until(lambda page: page.beats > 5)


def test_a_word_from_valkey_makes_it_sooner_and_its_absence_changes_nothing(
    web: WebServer, lane: Lane, valkey_server: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hubs, "AWAY_SECONDS", 0.1)
    with page_of(web, builders.person()) as page:
        valkey_server.stop()
        page.until(lambda page: page.figures["demo"]["in_flight"] is None)
        before = dict(page.topics)
        add_event(lane, clock.database_now(), "order", "loads")
        page.until(lambda page: page.topics["lane:demo"] != before["lane:demo"])
        valkey_server.start()
        page.until(lambda page: page.figures["demo"]["in_flight"] == 0)
        monkeypatch.setattr(hubs, "LOOK_SECONDS", 60.0)
        with redis.Redis.from_url(valkey_server.url) as client:
            fleet.until(lambda: dict(client.pubsub_numsub(TABLE_CHANNEL))[TABLE_CHANNEL.encode()])
            before = dict(page.topics)
            add_event(lane, clock.database_now(), "order", "loads again")

            def told() -> bool:
                client.publish(TABLE_CHANNEL, "1")
                return page.topics["lane:demo"] != before["lane:demo"]

            fleet.until(told)


def test_a_database_that_fails_is_asked_again(
    web: WebServer, lane: Lane, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with page_of(web, builders.person()) as page:
        with monkeypatch.context() as patch:
            patch.setattr(hubs.hub, "_look", _broken)
            fleet.until(lambda: "pages are not told" in caplog.text)
        before = dict(page.topics)
        add_event(lane, clock.database_now(), "order", "loads")
        page.until(lambda page: page.topics["lane:demo"] != before["lane:demo"])


def test_listeners_keep_no_thread_and_no_connection(web: WebServer) -> None:
    others = set(threading.enumerate())  # of tests before this one
    with page_of(web, builders.person()):
        fleet.until(lambda: [name.partition("_")[0] for name in _executors(others)] == ["live"])


def _user_of(session: Session) -> int:
    return int(session.get_decoded()["_auth_user_id"])


def _executors(others: Collection[threading.Thread]) -> list[str]:
    """Threads of executors: the hub's own, and one for each request that has any."""
    names = [thread.name for thread in threading.enumerate() if thread not in others]
    return [name for name in names if name.startswith(("live", "ThreadPoolExecutor"))]


def _broken(*args: object, **kwargs: object) -> None:
    raise OSError("gone")


def test_a_look_costs_a_fixed_number_of_queries(
    lane: Lane, django_assert_num_queries: Any, settings: Settings
) -> None:
    """Lanes, cards of lanes, orders, choices, maintenance, runtimes (two), events that say nothing
    starts, claims, failures, announcements, events, bookings and who waits (three), hosts, join
    tokens, unread; and with the check sessions and users."""
    visitors = [Visitor(1, "s", "p", is_staff=False), Visitor(2, "t", "p", is_staff=True)]
    for number in range(3):
        builders.lane(f"more-{number}")
    with django_assert_num_queries(20):
        look(visitors, is_check=True)


async def test_nobody_hears_of_tables_any_more_once_the_last_page_has_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also when redis-py swallows a cancellation."""
    began, ended = asyncio.Event(), asyncio.Event()

    async def hear(_: asyncio.Event) -> None:
        began.set()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(600)
        try:
            await asyncio.sleep(600)
        finally:
            ended.set()

    monkeypatch.setattr(hubs, "_hear", hear)
    hub = hubs.Hub(lambda *_, **__: Look(NOTHING))
    stream = hub.stream(Visitor(1, "session", "password", False), None)
    await anext(stream)
    async with asyncio.timeout(30):
        await began.wait()
        await stream.aclose()  # type: ignore[attr-defined]
        await ended.wait()
