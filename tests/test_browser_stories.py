"""Stories in real browsers of people who share the whole product with its real demo model."""

import re
from datetime import datetime, timedelta

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests import browser_pages as pages
from tests.running import eventually
from tests.story_people import (
    ADMIN,
    MODEL_MS,
    MODEL_SECONDS,
    OPEN_STATES,
    OTHER,
    OWNER,
    People,
    Stage,
    mark,
    streams_of,
)

pytest_plugins = ["tests.browser_fixtures", "tests.story_fixtures"]
pytestmark = [
    pytest.mark.story,
    pytest.mark.process,
    pytest.mark.skipif(
        pages.chromium() is None, reason="NOT TESTED HERE: pages in a browser (install chromium)"
    ),
]
LONG = "SmolLM2 135M, long context"
LOADING = re.compile(r"(\d+) %, about \d+ s left · ready at .*\d\d:\d\d")
WATCH = """(card) => {
  window.seen = [];
  const look = () => {
    const words = card.innerText;
    if (words !== window.seen.at(-1)) window.seen.push(words);
  };
  new MutationObserver(look).observe(card.parentElement.parentElement,
    { childList: true, subtree: true, characterData: true, attributes: true });
  look();
}"""


def card(page: Page) -> Locator:
    """The demo lane's on the overview."""
    return page.get_by_role("article", name="Demo")


def book(page: Page, what: str = LONG, *, length: str = "1 h") -> Locator:
    """Wish for a slot from now on, in the dialog over the overview."""
    card(page).get_by_role("link", name="Book").click()
    form = page.get_by_role("dialog", name="Book a slot")
    form.get_by_label("Load", exact=True).select_option(label=what)
    form.get_by_text(length, exact=True).click()
    form.get_by_role("button", name="Book", exact=True).click()
    return form


def release(page: Page) -> None:
    """Give one's slot back on the page of one's bookings."""
    page.once("dialog", lambda dialog: dialog.accept())
    page.goto("/bookings/")
    page.get_by_role("button", name="Release").click()
    expect(page.get_by_text("Given back")).to_be_visible()


def test_another_window_follows_a_real_load(people: People) -> None:
    owner, watcher = people.open(OWNER), people.open(OTHER)
    streams = streams_of(watcher)
    watcher.goto("/")
    expect(card(watcher)).to_contain_text("Free for everyone")
    is_same = mark(watcher)
    card(watcher).evaluate(WATCH)

    book(owner)
    expect(owner.get_by_text("Demo is yours until")).to_be_visible()
    shown = card(watcher)
    expect(shown).to_contain_text(re.compile(r"Now\s*owner until .*\d\d:\d\d"))
    expect(shown.get_by_role("status")).to_contain_text("ready", timeout=MODEL_MS)
    expect(shown.get_by_text(LONG, exact=True)).to_be_visible(timeout=MODEL_MS)
    expect(shown).to_contain_text("running smollm2-long for the slot until")

    seen = watcher.evaluate("window.seen")
    percents = [int(told[1]) for words in seen if (told := LOADING.search(words))]
    assert percents, seen
    assert percents == sorted(percents)
    assert is_same()
    assert len(streams) == 1

    release(owner)
    expect(shown).to_contain_text("Free for everyone")
    assert is_same()
    assert len(streams) == 1


def test_pages_come_back_after_the_web_process_has_ended(people: People, stage: Stage) -> None:
    owner, watcher = people.open(OWNER), people.open(OTHER)
    expect(card(watcher)).to_contain_text("Free for everyone")
    is_same = mark(watcher)
    with watcher.expect_response(lambda answer: answer.url.endswith("/events/") and answer.ok):
        stage.up.part("web").kill()
    expect(watcher.locator("#connection")).to_have_text("")
    eventually(lambda: stage.runs("smollm2"), "the pages are there", MODEL_SECONDS)
    book(owner)
    expect(owner.get_by_text("Demo is yours until")).to_be_visible()
    expect(card(watcher)).to_contain_text("owner until")
    assert is_same()
    for each in ("net::", "htmx:"):  # how often they tried meanwhile is left to chance
        kept = [words for words in people.windows.complaints if each not in words]
        people.windows.complaints = kept


def test_a_connection_that_falls_silent_without_a_word_is_given_up(
    people: People, stage: Stage
) -> None:
    watcher = people.open(OTHER)
    watcher.clock.install()
    watcher.reload()
    expect(card(watcher)).to_be_visible()
    web = stage.up.part("web")
    web.suspend()
    try:
        watcher.clock.fast_forward(45_000)
        watcher.clock.fast_forward(10_000)
        note = watcher.locator("#connection")
        expect(note).to_contain_text("Connection lost, trying again")
    finally:
        web.resume()
    expect(note).to_have_text("")


def test_what_is_asked_for_is_approved_in_another_window(people: People, stage: Stage) -> None:
    stage.rest.patch("lanes/demo/", json={"needs_approval": True}).raise_for_status()
    try:
        admin, owner = people.open(ADMIN, "/administration/approvals/"), people.open(OWNER)
        expect(admin.get_by_text("Nothing waits for you")).to_be_visible()
        is_same = mark(admin)
        book(owner)
        expect(owner.get_by_text("waits for approval").first).to_be_visible()
        owner.goto("/bookings/")
        owner.get_by_role("link", name="Demo").first.click()
        state = owner.get_by_role("heading", name="Waiting for approval")
        expect(state).to_be_visible()
        is_still = mark(owner)

        expect(admin.get_by_text("1 booking waits")).to_be_visible()
        assert is_same()
        admin.get_by_label("Comment (optional)").fill("Enjoy it.")
        admin.get_by_label("owner · Demo").check()
        admin.get_by_role("button", name="Approve ticked").click()
        expect(admin.get_by_text("Nothing waits for you")).to_be_visible()

        expect(owner.get_by_text("Enjoy it.").first).to_be_visible()
        expect(state).to_have_count(0)
        bell = owner.get_by_role("link", name=re.compile(r"Notices, \d+ unread"))
        expect(bell).to_be_visible(timeout=MODEL_MS)  # notices are told by and by
        assert is_still()
        bell.click()
        expect(owner.get_by_role("article").filter(has_text="approved").first).to_be_visible()
    finally:
        stage.rest.patch("lanes/demo/", json={"needs_approval": False}).raise_for_status()


def test_a_token_is_made_used_and_revoked(people: People, stage: Stage) -> None:
    page = people.open(OWNER, "/tokens/")
    page.get_by_label("Name").fill("laptop")
    page.get_by_label("See and change bookings").uncheck()
    page.get_by_label("Demo").check()
    page.get_by_label("Expires").select_option("1")
    page.get_by_role("button", name="Make token").click()
    text = page.locator("#token").inner_text()
    row = page.get_by_role("listitem").filter(has_text="laptop")
    expect(row).to_contain_text(re.compile(r"on Demo\s+· never used.*expires ", re.DOTALL))
    page.reload()
    expect(page.get_by_text(text)).to_have_count(0)

    with httpx.Client(headers={"Authorization": f"Bearer {text}"}, timeout=60) as client:
        url = f"{stage.gateway}/lanes/demo/v1/chat/completions"
        asked = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4}
        eventually(lambda: client.post(url, json=asked).status_code == 200, "it is known")
        assert client.get(f"{stage.web}/api/v1/bookings/").status_code == 403

        def is_used() -> bool:
            page.reload()
            return "last used" in row.inner_text()

        eventually(is_used, "its use is shown")
        page.once("dialog", lambda dialog: dialog.accept())
        row.get_by_role("button", name="Revoke").click()
        expect(page.get_by_text("laptop is revoked")).to_be_visible()
        expect(row).to_contain_text("revoked")
        eventually(lambda: client.post(url, json=asked).status_code == 401, "it is refused")


def test_time_that_is_given_back_is_offered_and_taken(people: People, stage: Stage) -> None:
    owner, other = people.open(OWNER), people.open(OTHER)
    book(owner, length="2 h")
    expect(owner.get_by_text("Demo is yours until")).to_be_visible()
    booked = stage.ask("bookings/?limit=100")["results"]
    ends = max(each["end"] for each in booked if each["state"] in OPEN_STATES)
    later = (datetime.fromisoformat(ends) + timedelta(days=1)).isoformat()
    all_else = {"lane": "demo", "kind": "gpu", "start": ends, "end": later}
    stage.rest.post("bookings/", json=all_else).raise_for_status()
    refused = book(other).get_by_role("alert")
    expect(refused).to_contain_text(re.compile("demo is taken from", re.IGNORECASE))
    people.windows.forgive("409")
    refused.get_by_role("button", name="Wait for any time within a day").click()
    expect(other.get_by_text("You wait for it")).to_be_visible()
    expect(other.get_by_role("heading", name="You wait for")).to_be_visible()
    bell = other.get_by_role("link", name="Notices", exact=False)
    before = bell.get_attribute("aria-label")

    release(owner)
    expect(bell).not_to_have_attribute("aria-label", before or "", timeout=MODEL_MS)
    bell.click()
    offer = other.get_by_role("article").filter(has_text="is held for you").first
    offer.get_by_role("link", name="Booking").click()
    expect(other.get_by_role("heading", name="Held for whoever waited")).to_be_visible()
    other.get_by_role("button", name="Take it").click()
    expect(other.get_by_role("button", name="Release")).to_be_visible()
    owner.goto("/")
    expect(card(owner)).to_contain_text("other until")


def test_a_preset_is_edited_and_really_loaded(people: People, stage: Stage) -> None:
    page = people.open(ADMIN, "/administration/presets/smollm2-long/")
    page.get_by_label("Arguments").fill("-c 2048 -np 1 --port 1")
    expect(page.get_by_text("--port was left out")).to_be_visible()
    expect(page.get_by_label("Command", exact=True)).to_contain_text("-c 2048")
    page.get_by_role("button", name="Test it").click()
    is_same = mark(page)
    expect(page.get_by_role("heading", name="Passed")).to_be_visible(timeout=MODEL_MS)
    assert is_same()
    measured = page.get_by_role("region", name="Passed")
    expect(measured).to_contain_text(re.compile(r"Load\s*\d+\.\d s"))
    expect(measured).to_contain_text(re.compile(r"Tokens/s\s*\d+\.\d over \d+ tokens"))
    page.get_by_role("link", name="Back to the editor").click()
    expect(page.get_by_label("Arguments")).to_have_value("-c 2048 -np 1")  # nothing is lost
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("smollm2-long r2 is saved.")).to_be_visible()
    page.get_by_role("link", name="Its page").click()
    expect(page.locator("main")).to_contain_text("-c 2048")
