"""The pages in a real Chromium: one slot's story, and what only a browser can show."""

from collections.abc import Iterator

import pytest
from django.contrib.sessions.models import Session
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from bookings.models import Booking
from gateway.models import ApiToken
from lanes.models import Host, Lane, ManualChoice, Phase, Preset
from slotserve.live import hub
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
MEMBER_PAGES = [
    "/",
    "/lanes/demo/",
    "/book/",
    "/bookings/",
    "/tokens/",
    "/playground/",
    "/usage/",
    "/api/v1/docs/",
]
STAFF_PAGES = [
    "/administration/",
    "/administration/lanes/new/",
    "/administration/lanes/demo/",
    "/administration/presets/small/",
    "/administration/models/",
    "/administration/models/new/",
    "/administration/models/folders/new/",
    "/administration/hosts/",
    "/administration/hosts/add/",
    "/lanes/demo/log/",
]


@pytest.fixture
def lane(live_server: LiveServer) -> Lane:
    """A lane whose default is loaded, and a second preset on its host."""
    small = builders.preset("small")
    builders.preset("large")
    lane = builders.lane("demo", default_preset=small)
    Host.objects.update(seen_at=timezone.now())
    pages.order(lane, small, "running small as the lane's default")
    pages.runtime(lane, small, Phase.READY)
    return lane


@pytest.fixture
def windows(chromium: Browser, lane: Lane, live_server: LiveServer) -> Iterator[Windows]:
    """Windows on the live server; at the end the browser must not have complained."""
    with pages.windows(chromium, live_server.url) as opened:
        yield opened
    assert opened.complaints == []


def book(page: Page, what: str, end: str) -> None:
    """Fill in the form for now and send it."""
    page.goto("/book/?lane=demo")
    page.get_by_label("Load").select_option(label=what)
    page.get_by_label("Until …").check()
    page.get_by_label("End").fill(end)
    page.get_by_role("button", name="Book").click()


def test_a_member_logs_in_and_sees_what_lanes_do(windows: Windows) -> None:
    alice = builders.person("alice")
    alice.set_password("a long password")
    alice.save()
    page = windows.open()
    page.goto("/")
    page.get_by_label("User name").fill("alice")
    page.get_by_label("Password").fill("a long password")
    page.get_by_role("button", name="Log in", exact=True).click()
    card = page.get_by_role("article", name="demo")
    expect(card).to_contain_text("running small as the lane's default")
    expect(card.get_by_role("status")).to_contain_text("ready")
    expect(card).to_contain_text("Free for everyone")


def test_a_slot_is_booked_refused_to_another_and_given_back(windows: Windows) -> None:
    alice, bob = windows.open(builders.person("alice")), windows.open(builders.person("bob"))
    end, earlier = pages.picked(60), pages.picked(30)
    book(alice, "large", end)
    expect(alice.get_by_text("demo is yours until")).to_be_visible()
    alice.goto("/")
    expect(alice.get_by_role("article", name="demo")).to_contain_text("Yours until")

    book(bob, "small", earlier)
    refusal = bob.get_by_role("alert")
    expect(refusal).to_contain_text("demo is taken from")
    expect(refusal).to_be_focused()
    windows.forgive("409")
    refusal.get_by_role("link", name="Take").first.click()
    expect(bob.get_by_label("Later")).to_be_checked()
    expect(bob.get_by_label("Start at")).to_have_value(end)
    expect(bob.get_by_label("Load")).to_have_value("preset:small")
    bob.get_by_role("button", name="Book").click()
    expect(bob.get_by_text("demo is yours from")).to_be_visible()

    alice.goto("/bookings/")
    alice.on("dialog", lambda dialog: dialog.accept())
    alice.get_by_role("button", name="Release").click()
    expect(alice.get_by_text("Given back")).to_be_visible()
    expect(alice.get_by_role("row", name="demo")).to_contain_text("Released early")


def test_a_token_is_shown_once(windows: Windows) -> None:
    page = windows.open(builders.person("alice"))
    page.goto("/tokens/")
    page.get_by_label("Name").fill("laptop")
    page.get_by_role("button", name="Make token").click()
    text = page.locator("#token").inner_text()
    assert text.startswith("ss_")
    page.reload()  # would send the form again, had the page not said that it is done
    expect(page.get_by_role("button", name="Revoke laptop")).to_be_visible()
    expect(page.get_by_text(text)).to_have_count(0)
    assert ApiToken.objects.count() == 1


def test_an_administrator_unloads_ends_that_and_reloads(windows: Windows, lane: Lane) -> None:
    page = windows.open(builders.administrator())
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto("/lanes/demo/")
    page.get_by_label("Load", exact=True).select_option("")
    page.get_by_role("button", name="Choose until then").click()
    expect(page.get_by_role("status").filter(has_text="Chosen: nothing")).to_be_visible()
    page.get_by_role("button", name="End this choice").click()
    expect(page.get_by_text("The choice has ended.")).to_be_visible()
    page.get_by_role("button", name="Reload model").click()
    expect(page.get_by_text("The model server is restarted.")).to_be_visible()
    assert ManualChoice.objects.filter(ended_at=None).count() == 0
    lane.refresh_from_db()
    assert lane.reload_request.asked_by == builders.administrator()


def test_an_edited_preset_says_which_flag_was_left_out(windows: Windows) -> None:
    page = windows.open(builders.administrator())
    page.goto("/administration/presets/small/")
    page.get_by_label("Arguments").fill("-c 4096 --port 99")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").filter(has_text="--port")).to_be_visible()
    current = Preset.objects.get(slug="small").current
    assert current is not None
    assert current.arguments == ["-c", "4096"]


def test_an_administrator_cancels_anothers_booking_on_the_lane(windows: Windows) -> None:
    lane = Lane.objects.get()
    booking = builders.booking(lane=lane, owner=builders.person("alice"), kind="gpu")
    page = windows.open(builders.administrator())
    page.goto("/lanes/demo/")
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.get_by_role("button", name="Cancel").click()
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("Cancelled.")).to_be_visible()
    assert page.url.endswith("/lanes/demo/")
    booking.refresh_from_db()
    assert booking.state == "cancelled"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_scrolls_sideways_on_a_phone(windows: Windows, scheme: str) -> None:
    failing = builders.lane("failing", default_preset=Preset.objects.get(slug="large"))
    pages.order(failing, failing.default_preset, "w" * 300)
    reason = "cudaMalloc failed: " + "x" * 400
    pages.runtime(failing, Preset.objects.get(slug="large"), Phase.FAILED, reason=reason)
    builders.booking(lane=failing, owner=builders.administrator(), kind="gpu", purpose="y" * 200)
    page = windows.open(builders.administrator(), width=PHONE, scheme=scheme)
    for address in [*MEMBER_PAGES, *STAFF_PAGES, "/lanes/failing/", "/nowhere/"]:
        page.goto(address)
        assert page.evaluate("document.documentElement.dataset.bsTheme") == scheme
        assert page.evaluate("document.scrollingElement.scrollWidth") == PHONE, address
    windows.forgive("404")


def test_a_load_is_shown_as_it_goes_on_and_takes_no_focus(windows: Windows, lane: Lane) -> None:
    builders.booking(lane=lane, owner=builders.administrator(), kind="gpu")
    page = windows.open(builders.administrator())
    page.goto("/lanes/demo/")
    cancel = page.get_by_role("button", name="Cancel")
    cancel.focus()
    page.evaluate("document.activeElement.isTheSame = true")
    large = Preset.objects.get(slug="large")
    pages.order(lane, large, "loading large for the slot")
    pages.runtime(lane, large, Phase.STARTING, age=8)
    live = page.locator("#live")
    expect(live.get_by_role("progressbar", name="Load of large")).to_be_visible()
    expect(live).to_contain_text("s left")
    expect(live).to_contain_text("loading large for the slot")
    expect(cancel).to_be_focused()
    assert page.evaluate("document.activeElement.isTheSame")  # changed in place, not replaced


def test_a_page_whose_session_has_ended_leads_to_log_in(
    windows: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "CHECK_SECONDS", 0.1)
    page = windows.open(builders.person("alice"))
    with page.expect_response("**/events/"):
        page.goto("/lanes/demo/")
    Session.objects.all().delete()
    page.wait_for_url("**/accounts/login/?next=/lanes/demo/")
    expect(page.get_by_role("navigation", name="Main")).to_have_count(0)


def test_a_server_that_is_away_is_said_until_it_is_back(windows: Windows) -> None:
    page = windows.open(builders.person("alice"))
    page.goto("/lanes/demo/")
    note = page.get_by_text("Connection lost, trying again")
    page.context.set_offline(True)
    expect(note).to_be_visible()
    expect(page.locator("#live")).to_contain_text("running small")
    page.context.set_offline(False)
    expect(note).to_have_count(0)
    # How often it tried meanwhile is left to chance.
    windows.complaints = [each for each in windows.complaints if "DISCONNECTED" not in each]


def test_a_form_is_sent_once_and_again_after_going_back(windows: Windows) -> None:
    page = windows.open(builders.person("alice"))
    page.goto("/book/")
    page.get_by_label("What for").fill("twice")
    page.evaluate("for (let i = 0; i < 3; i++) document.forms.book.requestSubmit()")
    expect(page.get_by_text("demo is yours until")).to_be_visible()
    assert Booking.objects.count() == 1
    page.go_back()
    expect(page.get_by_label("What for")).to_have_value("twice")
    expect(page.get_by_role("button", name="Book")).to_be_enabled()


def test_the_form_offers_what_the_lane_can_load(windows: Windows) -> None:
    far = builders.host("far")
    builders.lane("elsewhere", host=far)
    builders.preset("distant", model_file=builders.model_file(host=far))
    page = windows.open(builders.person("alice"))
    page.goto("/book/?lane=demo")
    offered = page.get_by_label("Load").locator("option")
    expect(offered).to_have_text(["large", "small", "The whole GPU, without a model server"])
    page.get_by_label("Lane").select_option("elsewhere")
    expect(offered).to_have_text(["distant", "The whole GPU, without a model server"])


def test_the_form_says_what_to_expect_of_a_slot(windows: Windows, lane: Lane) -> None:
    page = windows.open(builders.person("alice"))
    page.goto("/book/?lane=demo&what=preset:small")
    said = page.locator("#expect")
    expect(said).to_contain_text("No reload: it is loaded by then.")
    page.get_by_label("Load").select_option(label="large")
    expect(said).to_contain_text("of your slot are loading, which starts at once")
    expect(page.get_by_role("region", name="Booked on demo")).to_contain_text("the lane is free")


def test_the_browser_would_complain_of_inline_script(windows: Windows) -> None:
    page = windows.open(builders.person("alice"))
    page.goto("/")
    page.evaluate("document.body.append(document.createElement('script'))")
    page.evaluate("document.querySelector('body > script').textContent = 'document.title = 1'")
    assert page.title() == "Lanes · SlotServe"
    windows.forgive("Content Security Policy")


def test_pages_work_with_the_keyboard_alone(windows: Windows) -> None:
    page = windows.open(builders.person("alice"))
    page.goto("/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="demo", exact=True)).to_be_focused()
