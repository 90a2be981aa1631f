"""A booking's page in a real Chromium: release early, share by keyboard, counting down, a phone."""

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from bookings import services
from bookings.models import Booking
from lanes import clock
from lanes.models import Lane, Phase
from tests import browser_pages as pages
from tests import builders
from tests.browser_pages import PHONE, Windows
from tests.usage_cast import record

pytest_plugins = ["tests.browser_fixtures"]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        pages.chromium() is None, reason="NOT TESTED HERE: pages in a browser (install chromium)"
    ),
]


@pytest.fixture
def windows(chromium: Browser, live_server: LiveServer) -> Iterator[Windows]:
    with pages.windows(chromium, live_server.url) as opened:
        yield opened
    assert opened.complaints == []


@pytest.fixture
def lane() -> Lane:
    """Its default, qwen, is loading."""
    preset = builders.preset("qwen", arguments=["-c", "4096", "-ngl", "99"])
    made = builders.lane("demo", default_preset=preset)
    pages.order(made, preset, "loading qwen for the slot until 14:00: load ≈ 95 s")
    pages.runtime(made, preset, Phase.READY)
    return made


def booked(lane: Lane, minutes: float, length: float = 60) -> Booking:
    start = clock.database_now() + timedelta(minutes=minutes)
    assert lane.default_preset is not None
    return builders.booking(
        lane=lane,
        owner=builders.person("alice"),
        preset=lane.default_preset,
        pinned_revision=lane.default_preset.current,
        start=start,
        end=start + timedelta(minutes=length),
    )


def opened(windows: Windows, booking: Booking, **how: object) -> Page:
    page = windows.open(booking.owner, **how)  # type: ignore[arg-type]
    page.goto(f"/bookings/{booking.pk}/")
    return page


def test_a_slot_is_released_early_and_leaves_its_receipt(windows: Windows, lane: Lane) -> None:
    running = booked(lane, -20)
    record(running, prompt_tokens=12, completion_tokens=340)
    page = opened(windows, running)
    expect(page.get_by_role("heading", name="In progress")).to_be_visible()
    expect(page.get_by_role("timer")).to_have_text(re.compile(r"Ends in (39|40) min( \d+ s)?$"))
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Release").click()
    expect(page.get_by_role("heading", name="Released early")).to_be_visible()
    expect(page.get_by_role("heading", name="Receipt")).to_be_visible()
    expect(page.get_by_text("12 of prompts, 340 of answers")).to_be_visible()
    expect(page.get_by_text("alice released the booking")).to_be_visible()
    expect(page.get_by_role("timer")).to_have_count(0)
    running.refresh_from_db()
    assert running.released_at is not None


def test_it_is_shared_and_made_longer_with_the_keyboard_alone(windows: Windows, lane: Lane) -> None:
    builders.person("bob")
    coming = booked(lane, 90)
    page = opened(windows, coming)
    page.get_by_label("Share with").focus()
    page.keyboard.type("bob")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Shared with bob.")).to_be_visible()
    page.get_by_role("button", name="+ 30 min").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("The end is changed.")).to_be_visible()
    assert coming.shares.get().member.username == "bob"


def test_what_others_do_to_it_is_shown_without_a_reload(windows: Windows, lane: Lane) -> None:
    coming = booked(lane, 90)
    page = opened(windows, coming)
    expect(page.get_by_role("timer")).to_contain_text("Starts in 1 h 29 min")
    services.cancel(coming, actor=builders.administrator())
    expect(page.get_by_role("heading", name="Cancelled")).to_be_visible()


def test_its_state_is_asked_for_when_it_begins(windows: Windows, lane: Lane) -> None:
    soon = booked(lane, 0.1)
    page = opened(windows, soon)
    expect(page.get_by_role("heading", name="Upcoming")).to_be_visible()
    expect(page.get_by_role("heading", name="In progress")).to_be_visible(timeout=30_000)


def test_on_a_phone_nothing_is_wider_than_it(windows: Windows, lane: Lane) -> None:
    running = booked(lane, -20)
    for name in ("bob", "somebody-with-a-name-as-long-as-names-are"):
        services.share(running, actor=running.owner, member=builders.person(name))
    record(running)
    page = opened(windows, running, width=PHONE)
    expect(page.get_by_role("heading", name="So far")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE
