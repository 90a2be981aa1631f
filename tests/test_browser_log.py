"""The log page in a real Chromium: it follows while the server writes, and stops when told to."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from lanes import clock
from lanes.models import Lane, Phase, Runtime
from tests import browser_pages as pages
from tests import builders, log_world
from tests.browser_pages import PHONE, Windows

pytest_plugins = ["tests.browser_fixtures"]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.valkey,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        pages.chromium() is None, reason="NOT TESTED HERE: the log page (install chromium)"
    ),
]


@pytest.fixture
def lane(
    live_server: LiveServer, settings: Settings, tmp_path: Path, valkey: str
) -> Iterator[Lane]:
    settings.SLOTSERVE_DATA = tmp_path
    with log_world.asking(valkey):
        yield builders.lane("demo")


@pytest.fixture
def windows(chromium: Browser, lane: Lane, live_server: LiveServer) -> Iterator[Windows]:
    with pages.windows(chromium, live_server.url) as opened:
        yield opened
    assert opened.complaints == []


@pytest.fixture
def host(lane: Lane, valkey: str) -> Iterator[None]:
    with log_world.worker(valkey):
        yield


def end(run: Runtime, **fields: str) -> None:
    Runtime.objects.filter(pk=run.pk).update(ended_at=clock.database_now(), **fields)


@pytest.mark.usefixtures("host")
def test_the_page_follows_the_server_into_its_next_run(windows: Windows, lane: Lane) -> None:
    run = log_world.run(lane)
    page = windows.open(builders.administrator())
    log, status = page.get_by_role("log"), page.get_by_role("main").get_by_role("status").last
    with log_world.log_of(run) as written:
        written.write(b"<b>first</b> \x1b[31mred\x1b[0m\nloading 10%\rloading 20%")
        page.goto("/lanes/demo/log/")
        expect(log).to_have_text("<b>first</b> red")
        expect(page.get_by_text("loading 20%")).to_be_visible()
        written.write(b"\rloading 100%\nlisten\xff\n")
        expect(log).to_have_text("<b>first</b> red\nloading 100%\nlisten\N{REPLACEMENT CHARACTER}")
        expect(page.get_by_text("loading 20%")).to_have_count(0)
        written.write(b"error: no memory\n")
    end(run, phase=Phase.FAILED, reason="out of memory")
    expect(status).to_contain_text("This run has ended. Failed: out of memory")
    following = log_world.run(lane)
    log_world.write(following, b"once more\n")
    heading = f"run {following.pk} of {following.revision.preset.slug}"
    expect(log).to_contain_text(f"error: no memory\n── {heading} ──\nonce more")
    expect(page.get_by_role("heading", name=f"Run {following.pk}")).to_be_visible()
    expect(log.get_by_text("once more")).to_have_count(1)


@pytest.mark.usefixtures("host")
def test_it_stays_where_its_reader_is_and_stops_when_told_to(windows: Windows, lane: Lane) -> None:
    run = log_world.run(lane)
    page = windows.open(builders.administrator(), width=PHONE)
    log, follow = page.get_by_role("log"), page.get_by_role("button", name="Follow")
    with log_world.log_of(run) as written:
        written.write(b"".join(f"line {number}\n".encode() for number in range(200)))
        page.goto("/lanes/demo/log/")
        written.write(b"at the end\n")
        expect(log.get_by_text("at the end")).to_be_in_viewport()
        log.evaluate("log => { log.scrollTop = 0 }")
        written.write(b"out of sight\n")
        expect(log).to_contain_text("out of sight")
        assert log.evaluate("log => log.scrollTop") == 0
        follow.press("Enter")
        expect(follow).to_have_attribute("aria-pressed", "false")
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.evaluate("htmx.trigger('#log-more', 'now')")
        assert asked == []
        written.write(b"meanwhile\n")
        follow.press("Enter")
        expect(log.get_by_text("meanwhile")).to_be_in_viewport()
    assert page.evaluate("document.scrollingElement.scrollWidth") == PHONE


def test_a_host_that_is_away_is_told_and_its_log_shown_when_it_is_back(
    windows: Windows, lane: Lane, valkey: str
) -> None:
    run = log_world.run(lane)
    log_world.write(run, b"words\n")
    page = windows.open(builders.administrator())
    page.goto("/lanes/demo/log/")
    expect(page.get_by_text("test-host does not answer")).to_be_visible()
    with log_world.worker(valkey):
        expect(page.get_by_role("log")).to_have_text("words")
        expect(page.get_by_text("test-host does not answer")).to_have_count(0)


@pytest.mark.usefixtures("host")
def test_an_earlier_run_is_shown_and_asked_for_no_more(windows: Windows, lane: Lane) -> None:
    first = log_world.ended(lane, phase=Phase.FAILED, reason="out of memory", exit_status=1)
    log_world.write(first, b"the first\n")
    log_world.write(log_world.run(lane), b"the second\n")
    page = windows.open(builders.administrator())
    page.goto("/lanes/demo/log/")
    expect(page.get_by_role("log")).to_have_text("the second")
    page.get_by_role("link", name=f"Run {first.pk}").click()
    expect(page.get_by_role("log")).to_have_text("the first")
    expect(page.get_by_role("link", name="As text")).to_have_attribute(
        "href", f"/api/v1/lanes/demo/log/?format=text&lines=2000&run={first.pk}"
    )
    with page.expect_response(lambda answer: "offset=" in answer.url) as last:
        pass
    assert last.value.status == 286
