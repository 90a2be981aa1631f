"""What the lane pages show of lanes that load, fail, fall back or fall silent."""

from collections.abc import Callable
from datetime import timedelta
from html import unescape
from typing import Any
from unittest.mock import Mock

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils.html import strip_tags
from pytest_django.fixtures import DjangoAssertNumQueries

from lanes import clock, ticks
from lanes.events import add_event
from lanes.models import Lane, Phase, Preset, PresetFailure, Runtime
from slotserve.web.notices import BROKER_AWAY, NEVER_TOLD, notice
from tests import browser_pages as pages
from tests import builders
from tests.conftest import Moment
from wire.edges import TABLE_HEAD

pytestmark = pytest.mark.django_db
Show = Callable[[], str]


@pytest.fixture
def preset() -> Preset:
    return builders.preset("qwen")


@pytest.fixture
def lane(preset: Preset) -> Lane:
    """A lane that loads its default, on a host that has just reported."""
    lane = builders.lane("demo", default_preset=preset)
    lane.host.seen_at = clock.database_now()
    lane.host.save()
    pages.order(lane, preset, "loading qwen as the lane's default")
    return lane


@pytest.fixture
def show(lane: Lane) -> Show:
    """The overview as a member reads it."""
    client = Client()
    client.force_login(builders.person("member"))
    return lambda: " ".join(unescape(strip_tags(client.get("/").content.decode())).split())


def test_a_load_shows_how_far_it_is(lane: Lane, preset: Preset, show: Show) -> None:
    pages.runtime(lane, preset, Phase.STARTING, age=5)
    text = show()
    assert "demo: loading" in text
    assert "s left" in text
    assert "loading qwen as the lane's default" in text


def test_an_overdue_load_says_so(lane: Lane, preset: Preset, show: Show) -> None:
    pages.runtime(lane, preset, Phase.STARTING, age=500)
    assert "Takes longer than the usual 16 s" in show()


def test_a_failed_server_shows_why_and_what_to_try(lane: Lane, preset: Preset, show: Show) -> None:
    now = clock.database_now()
    cause: dict[str, Any] = {
        "reason": "The GPU ran out of memory.",
        "failure_kind": "gpu_memory",
        "failure_line": "CUDA error: out of memory",
        "failure_advice": "Lower -ngl or -c.",
    }
    pages.runtime(lane, preset, Phase.FAILED, ended_at=now, **cause)
    PresetFailure.objects.create(
        lane=lane, revision=builders.revision(preset), count=9, failed_at=now, reason="older"
    )
    failed = Runtime.objects.get()
    PresetFailure.objects.create(
        lane=lane, revision=failed.revision, count=2, failed_at=now, **cause
    )
    text = show()
    assert "demo: failed" in text
    assert (
        "qwen does not run The GPU ran out of memory. What to try: Lower -ngl or -c. "
        "Failed 2 times in a row; next try at "
    ) in text


def test_what_holds_a_start_up_is_said_until_it_begins(
    lane: Lane, preset: Preset, show: Show
) -> None:
    words = "no port from 18100 to 18299 is free on 127.0.0.1"
    add_event(lane, clock.database_now(), "refused", words)
    text = show()
    assert f"qwen is not started yet Waiting: {words}. It is tried again by itself." in text
    assert not PresetFailure.objects.exists()
    pages.runtime(lane, preset, Phase.STARTING, age=1)
    assert "is not started yet" not in show()


def test_a_failure_whose_moment_has_come_is_tried_again(
    lane: Lane, preset: Preset, show: Show
) -> None:
    now = clock.database_now()
    pages.runtime(lane, preset, Phase.FAILED, reason="Boom.", ended_at=now)
    failed = Runtime.objects.get()
    PresetFailure.objects.create(
        lane=lane, revision=failed.revision, count=1, failed_at=now - timedelta(seconds=31)
    )
    assert "Failed once; it is tried again now." in show()


def test_a_fallback_shows_why_the_booked_model_does_not_run(
    lane: Lane, preset: Preset, show: Show
) -> None:
    now = clock.database_now()
    for slug, booking, reason in (("booked", 7, "No such flag: -x."), ("other", 8, "Boom.")):
        PresetFailure.objects.create(
            lane=lane,
            revision=builders.revision(builders.preset(slug)),
            count=1,
            failed_at=now,
            reason=reason,
            booking_id_for=booking,
        )
    pages.order(lane, preset, is_fallback=True, booking_id_for=7)
    pages.runtime(lane, preset, Phase.READY)
    text = show()
    assert (
        "booked, which is booked, does not run: the default serves meanwhile No such flag" in text
    )
    assert "demo: ready" in text


@pytest.mark.parametrize(("name", "is_shown"), [("administrator", True), ("member", False)])
def test_who_may_retry_finds_the_button_on_the_lane_s_page(
    lane: Lane, preset: Preset, name: str, is_shown: bool
) -> None:
    pages.runtime(lane, preset, Phase.FAILED, reason="Boom.", ended_at=clock.database_now())
    client = Client()
    client.force_login(builders.administrator() if name == "administrator" else builders.person())
    assert ("Retry now" in client.get("/lanes/demo/").content.decode()) is is_shown


@pytest.mark.parametrize("minutes", [-5, 5], ids=["in progress", "next"])
def test_whose_slot_it_is_changes_the_model_and_others_book(
    lane: Lane, preset: Preset, minutes: int
) -> None:
    pages.runtime(lane, preset, Phase.FAILED, reason="Boom.", ended_at=clock.database_now())
    start = clock.database_now() + timedelta(minutes=minutes)
    end = start + timedelta(hours=1)
    owner = builders.person("owner")
    booking = builders.booking(
        lane=lane, owner=owner, preset=preset, start=start, end=end, original_end=end
    )
    change = f'href="/bookings/{booking.pk}/#other-model">Load something else<'
    for person, is_own in ((owner, True), (builders.person("other"), False)):
        client = Client()
        client.force_login(person)
        text = client.get("/").content.decode()
        assert (change in text) is is_own
        assert ("Book another model" in text) is not is_own


def test_the_api_tells_a_failure_in_its_parts(lane: Lane, preset: Preset) -> None:
    pages.runtime(
        lane,
        preset,
        Phase.FAILED,
        ended_at=clock.database_now(),
        reason="A disk of the host is full.",
        failure_kind="disk_full",
    )
    client = Client()
    client.force_login(builders.person())
    told = client.get("/api/v1/lanes/demo/").json()["runtime"]
    assert told["failure"] == {
        "preset": "qwen",
        "kind": "disk_full",
        "sentence": "A disk of the host is full.",
        "line": "",
        "advice": "",
        "count": 0,
        "retry_at": None,
        "is_fallback": False,
    }


def test_a_failure_of_something_else_is_no_news(lane: Lane, preset: Preset, show: Show) -> None:
    other = builders.preset("other").current
    assert other is not None
    now = clock.database_now()
    PresetFailure.objects.create(lane=lane, revision=other, count=1, failed_at=now, reason="boom")
    pages.runtime(lane, preset, Phase.READY)
    assert "boom" not in show()


def test_a_drain_shows_until_when_requests_may_run(lane: Lane, preset: Preset, show: Show) -> None:
    until = clock.database_now() + timedelta(seconds=30)
    pages.runtime(lane, preset, Phase.DRAINING, drain_until=until)
    assert f"Running requests may finish until {until:%H:%M:%S}" in show()


def test_a_silent_host_is_pointed_out(lane: Lane, show: Show) -> None:
    assert "unreachable" not in show()
    lane.host.unreachable_since = lane.host.seen_at
    lane.host.save()
    text = show()
    assert "demo: unreachable" in text
    assert "test-host is unreachable No word since" in text


def test_a_host_that_never_reported_is_pointed_out(lane: Lane, show: Show) -> None:
    lane.host.seen_at = None
    lane.host.save()
    assert "test-host has not reported yet" in show()


def test_names_and_reasons_are_text_and_never_markup(lane: Lane, preset: Preset) -> None:
    lane.name = "<script>alert(1)</script>"
    lane.save()
    reason = "<img src=x>"
    pages.runtime(lane, preset, Phase.FAILED, reason=reason, ended_at=clock.database_now())
    client = Client()
    client.force_login(builders.person("member"))
    for address in ("/", "/lanes/demo/", "/book/expect/?lane=demo&what=gpu"):
        html = client.get(address).content.decode()
        assert "<script>alert" not in html
        assert "<img src=x>" not in html


def test_more_lanes_need_no_more_queries(
    lane: Lane, show: Show, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for name in ("second", "third"):
        other = builders.lane(name)
        pages.order(other, None)
        builders.booking(lane=other, start=clock.database_now())
    # Session, user, clock, lanes, GPUs, orders, choices, failures, runtimes (2), bookings (2),
    # maintenance; notices, announcements.
    with django_assert_max_num_queries(15):
        assert "third" in show()


@pytest.fixture
def confirmed(valkey: str, moment: Moment) -> Callable[[float], str]:
    """The notice when the planner confirmed the table so many seconds ago."""

    def told(seconds: float) -> str:
        cache.clear()
        at = moment.now.timestamp() - seconds
        ticks.valkey().hset(TABLE_HEAD, "confirmed_at", repr(at))
        return notice(moment.now)

    return told


@pytest.mark.valkey
def test_a_silent_planner_is_said(confirmed: Callable[[float], str]) -> None:
    assert confirmed(3) == ""
    assert confirmed(30) == ""
    assert confirmed(600).startswith("Nothing was planned since 11:50 UTC")


@pytest.mark.valkey
def test_a_gateway_that_was_told_nothing_is_said(valkey: str) -> None:
    cache.clear()
    assert notice(clock.database_now()) == NEVER_TOLD


def test_a_broker_that_is_away_is_said(lane: Lane, show: Show) -> None:
    cache.clear()
    assert BROKER_AWAY in show()


def test_valkey_is_asked_once_in_a_while(
    monkeypatch: pytest.MonkeyPatch, lane: Lane, show: Show
) -> None:
    cache.clear()
    asked = Mock(wraps=ticks.valkey)
    monkeypatch.setattr(ticks, "valkey", asked)
    show()
    show()
    assert asked.call_count == 1
