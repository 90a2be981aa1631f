"""The preset editor in a real Chromium: the command follows what is typed, and a test load runs."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect
from pytest_django.live_server_helper import LiveServer

from bookings import test_loads
from lanes import clock
from lanes.models import Host, Outcome, TestLoad
from tests import browser_pages as pages
from tests import builders
from tests.browser_pages import Windows

pytest_plugins = ["tests.browser_fixtures"]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        pages.chromium() is None, reason="NOT TESTED HERE: the preset editor (install chromium)"
    ),
]


@pytest.fixture
def windows(chromium: Browser, live_server: LiveServer) -> Iterator[Windows]:
    with pages.windows(chromium, live_server.url) as opened:
        yield opened
    assert opened.complaints == []


def test_a_preset_is_edited_with_a_test_load(windows: Windows) -> None:
    builders.lane("here")
    Host.objects.update(seen_at=clock.database_now())
    preset = builders.preset("small", arguments=["-c", "4096"])
    page = windows.open(builders.administrator())
    page.goto("/administration/presets/small/")
    command = page.get_by_label("Command", exact=True)
    expect(command).to_contain_text("-c 4096")
    page.get_by_label("Arguments").fill("-c 512 --port 1")
    expect(command).to_contain_text("-c 512")
    expect(page.get_by_text("--port was left out")).to_be_visible()
    page.get_by_role("button", name="Test it").click()
    expect(page.get_by_role("heading", name="Waiting for the lane")).to_be_visible()
    test = TestLoad.objects.get()
    assert (test.revision.arguments, test.revision.is_draft) == (["-c", "512"], True)
    expect(page.get_by_role("heading", name="Server log")).to_be_visible()
    TestLoad.objects.update(load_seconds=3.25, trial_asked_at=test.asked_at, tokens=16)
    TestLoad.objects.update(tokens_per_second=42.5, trial_ended_at=clock.database_now())
    test_loads.follow()
    expect(page.get_by_role("heading", name="Passed")).to_be_visible()
    expect(page.get_by_text("3.3 s")).to_be_visible()
    expect(page.get_by_text("42.5")).to_be_visible()
    page.get_by_role("link", name="Back to the editor").click()
    page.get_by_label("Arguments").fill("-c 512")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("small r2 is saved.")).to_be_visible()
    preset.refresh_from_db()
    assert preset.current == test.revision
    assert TestLoad.objects.get().outcome == Outcome.PASSED
