"""The calendar in a real Chromium: dragging, undoing, the keyboard, a phone."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, FloatRect, Locator, Page, expect
from pytest_django.live_server_helper import LiveServer

from bookings.models import Booking, Policy
from lanes import clock
from lanes.models import Lane
from tests import browser_pages as pages
from tests import builders
from tests.browser_pages import PHONE, Windows

pytest_plugins = ["tests.browser_fixtures"]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        pages.chromium() is None, reason="NOT TESTED HERE: pages in a browser (install chromium)"
    ),
]
HOUR = timedelta(hours=1)


@pytest.fixture
def day() -> datetime:
    """Midnight of a day in a week, on the clocks of the windows."""
    now = clock.database_now().astimezone(ZoneInfo(pages.ZONE)) + timedelta(days=7)
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


@pytest.fixture
def lanes(live_server: LiveServer) -> list[Lane]:
    return [builders.lane("one"), builders.lane("two")]


@pytest.fixture
def alice(lanes: list[Lane]) -> User:
    return builders.person("alice")


@pytest.fixture
def booking(lanes: list[Lane], alice: User, day: datetime) -> Booking:
    """Alice's, from 9 to 11 on lane one."""
    return booked(lanes[0], alice, day, 9, 11)


@pytest.fixture
def windows(chromium: Browser, lanes: list[Lane], live_server: LiveServer) -> Iterator[Windows]:
    """Windows on the live server; at the end the browser must not have complained."""
    with pages.windows(chromium, live_server.url) as opened:
        yield opened
    assert opened.complaints == []


def booked(lane: Lane, owner: User, day: datetime, start: float, end: float) -> Booking:
    return builders.booking(
        lane=lane,
        owner=owner,
        kind="gpu",
        start=day + start * HOUR,
        end=day + end * HOUR,
        created_at=clock.database_now() - HOUR,
    )


def look(windows: Windows, user: User, day: datetime, view: str = "day") -> Page:
    page = windows.open(user)
    page.goto(f"/calendar/?view={view}&date={day:%Y-%m-%d}")
    expect(page.locator(".tl-body")).to_be_visible()
    return page


def drag(page: Page, what: Locator, *, hours: float = 0, rows: float = 0, at: float = 0.5) -> None:
    """Drag a booking by so many hours (88 pixels) and rows; `at`: 0 its left edge, 1 its right."""
    box = place(page, what)
    x, y = box["x"] + 2 + at * (box["width"] - 4), box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + hours * 88, y + rows * (box["height"] + 5), steps=8)
    page.mouse.up()


def place(page: Page, what: Locator) -> FloatRect:
    """Where it is, once the page has read what it shows anew."""
    page.wait_for_load_state("networkidle")
    for _ in range(5):  # it may be drawn anew between the two
        what.hover()
        box = what.bounding_box()
        if box is not None:
            return box
    raise AssertionError("it is nowhere to be seen")


def hours(booking: Booking, day: datetime) -> tuple[float, float]:
    booking.refresh_from_db()
    return (booking.start - day) / HOUR, (booking.end - day) / HOUR


def mine(page: Page) -> Locator:
    found = page.locator(".tl-event.mine")
    expect(found).to_have_count(1)
    return found


def test_a_booking_is_dragged_and_the_move_undone(
    windows: Windows, alice: User, booking: Booking, day: datetime
) -> None:
    page = look(windows, alice, day)
    drag(page, mine(page), hours=2)
    undo = page.get_by_role("button", name="Undo")
    expect(undo).to_be_visible()
    assert hours(booking, day) == (11, 13)
    expect(mine(page)).to_have_accessible_name(
        f"You · whole GPU, one, {spoken(day)} 11:00 \u2013 13:00"
    )
    undo.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Back where it was:")).to_be_visible()
    assert hours(booking, day) == (9, 11)


def test_an_edge_is_dragged_alone(
    windows: Windows, alice: User, booking: Booking, day: datetime
) -> None:
    page = look(windows, alice, day)
    drag(page, mine(page), hours=1, rows=1, at=1)
    expect(page.get_by_text("Moved to one,")).to_be_visible()
    assert hours(booking, day) == (9, 12)
    assert booking.lane.slug == "one"


def test_another_lane_is_asked_about(
    windows: Windows, alice: User, booking: Booking, day: datetime
) -> None:
    page = look(windows, alice, day)
    drag(page, mine(page), rows=1)
    page.get_by_role("button", name="Leave it").click()
    drag(page, mine(page), rows=1)
    page.get_by_role("button", name="Move it: two").click()
    expect(page.get_by_text("Moved to two,")).to_be_visible()
    booking.refresh_from_db()
    assert booking.lane.slug == "two"


def test_a_move_that_loses_an_approval_is_asked_about(
    windows: Windows, alice: User, booking: Booking, day: datetime
) -> None:
    Policy.objects.create(approval="always")
    page = look(windows, alice, day)
    drag(page, mine(page), hours=2)
    expect(page.get_by_role("dialog", name="Changed so, it waits for")).to_be_visible()
    page.get_by_role("button", name="Leave it").click()
    windows.forgive("409")
    expect(mine(page)).to_have_accessible_name(
        f"You · whole GPU, one, {spoken(day)} 09:00 \u2013 11:00"
    )
    drag(page, mine(page), hours=2)
    page.get_by_role("button", name="Change it all the same").click()
    windows.forgive("409")
    expect(page.get_by_text("It waits for an administrator's approval.")).to_be_visible()
    assert hours(booking, day) == (11, 13)


def test_a_refused_move_snaps_back_and_offers_another(
    windows: Windows, lanes: list[Lane], alice: User, booking: Booking, day: datetime
) -> None:
    booked(lanes[0], builders.person("bob"), day, 12, 14)
    page = look(windows, alice, day)
    drag(page, mine(page), hours=2)
    offer = page.get_by_role("button", name="14:00 \u2013 16:00")
    expect(offer).to_be_visible()
    windows.forgive("409")
    expect(mine(page)).to_have_accessible_name(
        f"You · whole GPU, one, {spoken(day)} 09:00 \u2013 11:00"
    )
    assert hours(booking, day) == (9, 11)
    offer.click()
    expect(page.get_by_text("Moved to one,")).to_be_visible()
    assert hours(booking, day) == (14, 16)


def test_dragging_across_a_lane_leads_to_the_form(
    windows: Windows, alice: User, booking: Booking, day: datetime
) -> None:
    page = look(windows, alice, day)
    box = place(page, mine(page))
    x, y = box["x"] + box["width"] + 88, box["y"] + box["height"] / 2
    page.mouse.move(x + 5, y)
    page.mouse.down()
    page.mouse.move(x + 88 + 5, y, steps=8)
    page.mouse.up()
    form = page.get_by_role("dialog", name="Book a slot")
    expect(form.get_by_label("Lane")).to_have_value("one")
    expect(form.get_by_label("Start at")).to_have_value(f"{day:%Y-%m-%d}T12:00")
    expect(form.get_by_label("End")).to_have_value(f"{day:%Y-%m-%d}T13:15")


def test_a_click_on_a_free_hour_leads_to_the_form(
    windows: Windows, alice: User, booking: Booking, day: datetime
) -> None:
    page = look(windows, alice, day)
    box = place(page, mine(page))
    page.mouse.click(box["x"] + box["width"] + 88 + 5, box["y"] + box["height"] / 2)
    form = page.get_by_role("dialog", name="Book a slot")
    expect(form.get_by_label("Lane")).to_have_value("one")
    expect(form.get_by_label("Start at")).to_have_value(f"{day:%Y-%m-%d}T12:00")
    expect(form.get_by_label("End")).to_have_value(f"{day:%Y-%m-%d}T13:00")


def test_a_click_on_a_booking_opens_it(
    windows: Windows, alice: User, booking: Booking, day: datetime
) -> None:
    page = look(windows, alice, day)
    place(page, mine(page))
    mine(page).click()
    dialog = page.get_by_role("dialog", name="Booking")
    expect(dialog).to_contain_text("09:00 \u2013 11:00")
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_be_hidden()
    mine(page).click()
    dialog.get_by_role("link", name="All about this booking").click()
    page.wait_for_url(f"**/bookings/{booking.pk}/")


def test_a_booking_of_somebody_else_says_what_all_may_know(
    windows: Windows, alice: User, booking: Booking, day: datetime
) -> None:
    page = look(windows, builders.person("bob"), day)
    page.locator(".tl-event.other").click()
    dialog = page.get_by_role("dialog", name="Booking")
    expect(dialog).to_contain_text("alice")
    expect(dialog.get_by_role("link", name="All about this booking")).to_have_count(0)


def test_bookings_are_reached_opened_and_moved_by_keys_alone(
    windows: Windows, lanes: list[Lane], alice: User, booking: Booking, day: datetime
) -> None:
    booked(lanes[1], alice, day, 10, 12)
    page = look(windows, alice, day)
    first = page.get_by_role("button", name="one,")
    expect(first).to_have_attribute("tabindex", "0")
    first.focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("button", name="two,")).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(first).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_role("link", name="Move").focus()
    page.keyboard.press("Enter")
    page.get_by_label("End").fill(f"{day:%Y-%m-%d}T11:30")
    page.get_by_role("button", name="Move").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Moved: one,")).to_be_visible()
    assert hours(booking, day) == (9, 11.5)


def test_a_month_leads_to_the_day_by_keys(
    windows: Windows, alice: User, booking: Booking, day: datetime
) -> None:
    page = look(windows, alice, day)
    page.get_by_role("link", name="Month").click()
    page.wait_for_url("**view=month**")
    cell = page.get_by_role("link", name=f"one, {day.day} {day:%B}: 1 booking")
    page.locator("#calendar-month td a[tabindex='0']").focus()
    page.keyboard.press("Home")
    for _ in range(day.day - 1):
        page.keyboard.press("ArrowRight")
    expect(cell).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("link", name=f"two, {day.day} {day:%B}: free")).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_url("**view=day**#one")
    expect(mine(page)).to_be_visible()


def test_a_hosts_lanes_can_be_hidden(
    windows: Windows, lanes: list[Lane], alice: User, booking: Booking, day: datetime
) -> None:
    booked(builders.lane("three", host=builders.host("zebra")), alice, day, 9, 11)
    page = look(windows, alice, day)
    page.get_by_role("button", name="Hide this host's lanes").first.click()
    expect(page.get_by_role("button", name="one,")).to_have_count(0)
    expect(page.get_by_role("button", name="three,")).to_be_visible()
    page.get_by_role("button", name="Show this host's lanes").click()
    expect(page.get_by_role("button", name="one,")).to_be_visible()


def test_the_address_says_what_is_shown(
    windows: Windows, alice: User, booking: Booking, day: datetime
) -> None:
    page = look(windows, alice, day)
    page.get_by_role("link", name="Week").click()
    page.wait_for_url("**view=week**")
    page.get_by_role("link", name="Later").click()
    expect(page.locator(".tl-event.mine")).to_have_count(0)
    page.go_back()
    expect(mine(page)).to_be_visible()
    page.go_back()
    expect(page.get_by_role("link", name="Day", exact=True)).to_have_attribute(
        "aria-current", "true"
    )


def test_a_phone_shows_the_list(
    windows: Windows, alice: User, booking: Booking, day: datetime
) -> None:
    page = windows.open(alice, width=PHONE)
    page.goto(f"/calendar/?date={day:%Y-%m-%d}")
    expect(page.get_by_role("row", name="one")).to_be_visible()
    expect(page.locator("#timeline")).to_be_hidden()
    for address in (page.url, f"/calendar/?view=week&date={day:%Y-%m-%d}&as=picture"):
        page.goto(address)
        assert page.evaluate("document.scrollingElement.scrollWidth") == PHONE


def test_an_hour_that_comes_twice_is_asked(
    windows: Windows, lanes: list[Lane], alice: User
) -> None:
    now = clock.database_now().astimezone(ZoneInfo(pages.ZONE))
    year = now.year + (now.month > 9)
    last = max(day for day in range(25, 32) if datetime(year, 10, day).weekday() == 6)  # noqa: DTZ001
    day = datetime(year, 10, last, tzinfo=ZoneInfo(pages.ZONE))
    night = booked(lanes[0], alice, day, 0, 1)
    page = look(windows, alice, day)
    expect(page.get_by_role("note")).to_contain_text("clocks go back")
    page.locator(".tl").evaluate("(main) => { main.scrollLeft = 0; }")
    drag(page, mine(page), hours=2.5)
    page.get_by_role("button", name="02:30 CET").click()
    windows.forgive("409")
    expect(page.get_by_text("Moved to one,")).to_be_visible()
    night.refresh_from_db()
    assert f"{night.start:%H:%M}" == "01:30"


def spoken(day: datetime) -> str:
    return f"{day.day} {day:%b}"


def test_only_rows_near_what_is_in_sight_are_drawn(
    windows: Windows, lanes: list[Lane], alice: User, day: datetime
) -> None:
    for number in range(60):
        booked(builders.lane(f"z{number:02}"), alice, day, 9, 11)
    page = look(windows, alice, day)
    expect(page.get_by_role("button", name="z00,")).to_be_visible()
    assert page.locator("[data-booking]").count() < 40
    page.locator("#timeline").evaluate("(place) => { place.scrollTop = place.scrollHeight; }")
    expect(page.get_by_role("button", name="z59,")).to_be_visible()
    page.get_by_role("button", name="z59,").focus()
    page.keyboard.press("Home")
    expect(page.get_by_role("button", name="z00,")).to_be_focused()


def test_paper_has_every_row_in_dark_ink(
    windows: Windows, alice: User, lanes: list[Lane], day: datetime
) -> None:
    """Also those that are out of sight, which are drawn on the way to paper."""
    for number in range(60):
        booked(builders.lane(f"row-{number}"), alice, day, 9, 11)
    page = windows.open(alice, scheme="dark")
    page.goto(f"/calendar/?view=day&date={day:%Y-%m-%d}&as=picture")
    expect(page.locator(".tl-event").first).to_be_visible()
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    expect(page.locator(".tl-event")).to_have_count(60)
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(24, 36, 51)"
    expect(page.get_by_role("link", name="Book a slot")).to_be_hidden()
    place = page.locator("#timeline")
    assert place.evaluate("it => it.scrollHeight - it.clientHeight") <= 1


def test_escape_lets_go_of_what_is_dragged(
    windows: Windows, alice: User, booking: Booking, day: datetime
) -> None:
    page = look(windows, alice, day)
    box = place(page, mine(page))
    page.mouse.move(box["x"] + 60, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + 200, box["y"] + 10, steps=4)
    expect(page.locator(".tl-preview")).to_have_text("10:30 \u2013 12:30")
    page.keyboard.press("Escape")
    expect(page.locator(".tl-preview")).to_have_count(0)
    page.mouse.up()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert hours(booking, day) == (9, 11)


def test_what_cannot_be_booked_says_why(
    windows: Windows, lanes: list[Lane], alice: User, day: datetime
) -> None:
    Lane.objects.filter(slug="two").update(enabled=False)
    page = look(windows, alice, day - timedelta(days=14))
    page.locator("[data-lane=one]").click()
    expect(page.get_by_role("status")).to_contain_text("This time is past")
    page.locator("[data-lane=two]").click()
    expect(page.get_by_role("status")).to_contain_text("This lane is disabled")


def test_another_view_keeps_the_date(
    windows: Windows, alice: User, booking: Booking, day: datetime
) -> None:
    page = look(windows, alice, day)
    for view in ("Week", "Hours", "Month"):
        page.get_by_role("link", name=view).click()
        page.wait_for_url(f"**view={view.lower()}&date={day:%Y-%m-%d}**")
    page.get_by_role("link", name="Week").click()
    page.wait_for_url(f"**view=week&date={day:%Y-%m-%d}**")
    expect(mine(page)).to_be_in_viewport()
