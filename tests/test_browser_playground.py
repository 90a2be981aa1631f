"""The playground in a real Chromium, before a gateway that answers as told."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from gateway.models import ApiToken
from lanes.models import Host, Lane
from tests import browser_pages as pages
from tests import builders
from tests.browser_pages import PHONE, Windows
from tests.fake_gateway import FakeGateway, Refusal, Stream, fake_gateway
from tests.test_accessibility import LOOKS, found_now

pytest_plugins = ["tests.browser_fixtures"]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        pages.chromium() is None, reason="NOT TESTED HERE: pages in a browser (install chromium)"
    ),
]


@pytest.fixture
def gateway(settings: Settings) -> Iterator[FakeGateway]:
    """The gateway that pages name and their policy lets them call."""
    with fake_gateway() as fake:
        settings.SLOTSERVE_GATEWAY_URL = fake.url
        yield fake


@pytest.fixture
def lanes(live_server: LiveServer) -> list[Lane]:
    """Two of them, each with something loaded."""
    made = []
    for name in ("demo", "second"):
        preset = builders.preset(f"model-{name}")
        lane = builders.lane(name, default_preset=preset)
        pages.order(lane, preset)
        made.append(lane)
    Host.objects.update(seen_at=timezone.now())
    return made


@pytest.fixture
def windows(
    chromium: Browser, gateway: FakeGateway, lanes: list[Lane], live_server: LiveServer
) -> Iterator[Windows]:
    """Windows on the live server; at the end the browser must not have complained."""
    with pages.windows(chromium, live_server.url) as opened:
        yield opened
    assert opened.complaints == []


@pytest.fixture
def page(windows: Windows) -> Page:
    """Alice's playground."""
    page = windows.open(builders.person("alice"))
    page.goto("/playground/?lane=demo")
    return page


def ask(page: Page, text: str) -> None:
    """By keyboard alone."""
    page.get_by_label("Your message").fill(text)
    page.keyboard.press("Enter")


def test_an_answer_streams_with_its_figures_and_is_remembered(
    page: Page, gateway: FakeGateway
) -> None:
    page.get_by_label("System prompt").fill("Be short.")
    page.get_by_label("Temperature").fill("0.2")
    page.get_by_label("Most tokens").fill("99")
    ask(page, "Hi")
    talk = page.get_by_role("group", name="demo")
    expect(talk).to_contain_text("Hello there.")
    expect(page.locator(".pane-figures")).to_contain_text("42 tokens")
    expect(page.locator(".pane-figures")).to_contain_text("first token after")
    expect(page.get_by_role("status").filter(has_text="demo has answered.")).to_be_attached()
    ask(page, "And?")
    expect(talk.locator(".turn-assistant")).to_have_count(2)
    expect(talk.locator(".turn-coming")).to_have_count(0)
    assert gateway.paths == ["/lanes/demo/v1/chat/completions"] * 2
    sent = gateway.bodies[1]
    assert [(each["role"], each["content"]) for each in sent["messages"]] == [
        ("system", "Be short."),
        ("user", "Hi"),
        ("assistant", "Hello there."),
        ("user", "And?"),
    ]
    assert (sent["temperature"], sent["max_tokens"], sent["model"]) == (0.2, 99, "auto")
    token = ApiToken.objects.get()
    assert set(gateway.keys) == {gateway.keys[0]}
    assert gateway.keys[0].startswith(f"Bearer {token.prefix}")
    assert page.evaluate("JSON.stringify([localStorage, sessionStorage])").count("ss_") == 0


def test_stop_closes_the_stream_and_keeps_what_came(page: Page, gateway: FakeGateway) -> None:
    gateway.script = [Stream(("Once upon",), is_held=True), Stream(("Again",), is_held=True)]
    ask(page, "Tell")
    talk = page.get_by_role("group", name="demo")
    expect(talk).to_contain_text("Once upon")
    page.keyboard.press("Escape")
    expect(talk).to_contain_text("Stopped.")
    assert gateway.left.wait(60)
    gateway.left.clear()
    ask(page, "More")
    expect(talk).to_contain_text("Again")
    page.get_by_role("button", name="Stop").click()
    assert gateway.left.wait(60)
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    assert gateway.bodies[1]["messages"][1] == {"role": "assistant", "content": "Once upon"}


def test_shift_and_enter_is_a_new_line(page: Page, gateway: FakeGateway) -> None:
    box = page.get_by_label("Your message")
    box.fill("one")
    box.press("Shift+Enter")
    box.press_sequentially("two")
    assert gateway.bodies == []
    box.press("Enter")
    expect(page.locator(".turn-assistant")).to_contain_text("Hello there.")
    assert gateway.bodies[0]["messages"][0]["content"] == "one\ntwo"


def test_two_lanes_are_asked_the_same(page: Page, gateway: FakeGateway) -> None:
    page.get_by_label("Beside it").select_option("second")
    ask(page, "Hi")
    for name in ("demo", "second"):
        expect(page.get_by_role("group", name=name)).to_contain_text("Hello there.")
    assert sorted(gateway.paths) == [
        "/lanes/demo/v1/chat/completions",
        "/lanes/second/v1/chat/completions",
    ]
    page.get_by_role("button", name="Clear conversation").click()
    expect(page.locator(".turn")).to_have_count(0)


def test_markdown_is_shown_and_nothing_else_gets_through(page: Page, gateway: FakeGateway) -> None:
    evil = (
        "# Title\n\n**bold** `code` [safe](https://example.org/a) [bad](javascript:alert(1))\n\n"
        "![pixel](https://evil.example/p.png) <img src=https://evil.example/q.png onerror=alert(1)>"
        "<script>alert(1)</script><iframe src=https://evil.example></iframe>"
        '<p style="position:fixed" onclick="alert(1)" class="btn" id="send">odd</p>'
        "<form action=/x><input name=a></form><style>body{display:none}</style><svg><a/></svg>\n\n"
        "| a | b |\n|---|---|\n| 1 | 2 |\n\n```\npre <b>\n```\n"
    )
    gateway.script = [Stream((evil,))]
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    ask(page, "Hi")
    shown = page.locator(".markdown")
    expect(shown.locator("h1")).to_have_text("Title")
    expect(shown.locator("table td")).to_have_count(2)
    expect(shown.locator("pre")).to_contain_text("pre <b>")
    link = shown.get_by_role("link", name="safe")
    expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")
    assert shown.locator("a[href]").count() == 1
    expect(shown).to_contain_text("pixel <img src=https://evil.example/q.png onerror=alert(1)>")
    forbidden = "img, script, iframe, form, input, style, svg, [style], [onclick], [class], [id]"
    assert shown.locator(forbidden).count() == 0
    assert not any("evil.example" in url for url in asked)


def test_a_reserved_lane_says_who_and_until_when(
    page: Page, gateway: FakeGateway, lanes: list[Lane], windows: Windows
) -> None:
    now = timezone.now()
    builders.booking(
        lane=lanes[0],
        owner=builders.person("bob"),
        start=now - timedelta(minutes=5),
        end=now + timedelta(minutes=30),
    )
    gateway.script = [Refusal(403, "gpu_reserved", retry_after=1800)]
    ask(page, "Hi")
    box = page.locator(".turn-refusal")
    expect(box).to_contain_text("bob has booked this lane until")
    expect(box).to_contain_text("Ask again in")
    expect(box.get_by_role("link", name="Book a slot")).to_have_attribute(
        "href", "/book/?lane=demo"
    )
    box.get_by_role("button", name="Try again").click()
    expect(page.locator(".turn-assistant")).to_contain_text("Hello there.")
    assert gateway.bodies[0] == gateway.bodies[1]
    windows.forgive("403")


def test_a_loading_model_is_waited_for(page: Page, gateway: FakeGateway, windows: Windows) -> None:
    gateway.script = [Refusal(503, "model_loading", retry_after=1)] * 2
    ask(page, "Hi")
    talk = page.get_by_role("group", name="demo")
    expect(talk).to_contain_text("The model is being loaded. Trying again in 1 s.")
    expect(talk).to_contain_text("Hello there.")
    assert len(gateway.bodies) == 3
    windows.forgive("503")


def test_a_refused_lane_keeps_its_question_while_the_other_still_answers(
    page: Page, gateway: FakeGateway, windows: Windows
) -> None:
    gateway.script = [Refusal(429, "rate_limited", retry_after=1), Stream(("Once",), is_held=True)]
    page.get_by_label("Beside it").select_option("second")
    ask(page, "Hi")
    box = page.locator(".turn-refusal")
    expect(page.locator(".turn-text").filter(has_text="Once")).to_be_visible()
    box.get_by_role("button", name="Try again").click()
    expect(box).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    box.get_by_role("button", name="Try again").click()
    expect(page.locator(".turn-text").filter(has_text="Hello there.")).to_be_visible()
    expect(box).to_have_count(0)
    windows.forgive("429")


def test_the_pane_names_the_model_that_answered(page: Page, gateway: FakeGateway) -> None:
    badge = page.get_by_role("region", name="demo").locator(".badge")
    expect(badge).to_have_text("model-demo")
    gateway.script = [Stream(("Hi",), model="another")]
    ask(page, "Hi")
    expect(badge).to_have_text("another")


def test_waiting_for_a_load_can_be_stopped(
    page: Page, gateway: FakeGateway, windows: Windows
) -> None:
    gateway.script = [Refusal(503, "model_switching", retry_after=900)]
    ask(page, "Hi")
    talk = page.get_by_role("group", name="demo")
    expect(talk).to_contain_text("The lane is changing its model.")
    page.keyboard.press("Escape")
    expect(talk).to_contain_text("Stopped.")
    assert len(gateway.bodies) == 1
    windows.forgive("503")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Refusal(429, "rate_limited", "SlotServe: too many.", 30), "SlotServe: too many."),
        (Refusal(503, "no_model_loaded", "SlotServe: nothing runs.", 5), "nothing runs."),
    ],
)
def test_other_refusals_are_shown_in_the_gateways_words(
    page: Page, gateway: FakeGateway, windows: Windows, answer: Refusal, words: str
) -> None:
    gateway.script = [answer]
    ask(page, "Hi")
    expect(page.locator(".turn-refusal")).to_contain_text(words)
    expect(page.locator(".turn-refusal")).to_contain_text("Ask again in")
    windows.forgive(str(answer.status))


def test_an_answer_that_breaks_off_says_so(page: Page, gateway: FakeGateway) -> None:
    gateway.script = [Stream(("Half a",), is_cut=True)]
    ask(page, "Hi")
    expect(page.locator(".turn-assistant")).to_contain_text("Half a")
    expect(page.locator(".turn-refusal")).to_contain_text("The answer broke off.")


def test_a_token_that_the_gateway_does_not_know_yet_is_shown_again(
    page: Page, gateway: FakeGateway, windows: Windows
) -> None:
    gateway.script = [Refusal(401, "invalid_api_key")] * 2
    ask(page, "Hi")
    expect(page.locator(".turn-assistant")).to_contain_text("Hello there.")
    assert len(set(gateway.keys)) == 1
    windows.forgive("401")


def test_a_gateway_that_is_away_is_named(
    page: Page, gateway: FakeGateway, windows: Windows
) -> None:
    page.evaluate(
        "document.getElementById('words').dataset.gateway = location.origin.replace(/\\d+$/, '9')"
    )
    ask(page, "Hi")
    expect(page.locator(".turn-refusal")).to_contain_text("does not answer this page")
    windows.forgive("Content Security Policy")  # it may call that one gateway alone


def test_the_conversation_is_shown_as_code(page: Page, gateway: FakeGateway) -> None:
    ask(page, "It's me")
    expect(page.locator(".turn-assistant")).to_contain_text("Hello there.")
    page.get_by_role("button", name="View code").click()
    code = page.get_by_role("tabpanel")
    expect(code).to_contain_text(f"curl -N {gateway.url}/lanes/demo/v1/chat/completions")
    expect(code).to_contain_text("It'\\''s me")
    for tab, words in (
        ("Python, OpenAI", "from openai import OpenAI"),
        ("Python, Anthropic", "from anthropic import Anthropic"),
        ("Environment", "export ANTHROPIC_BASE_URL="),
    ):
        page.get_by_role("tab", name=tab).click()
        expect(code).to_contain_text(words)
    assert "ss_" not in page.locator("#code-text-curl").inner_text()


def test_on_a_phone_nothing_is_wider_than_the_screen(
    windows: Windows, gateway: FakeGateway
) -> None:
    gateway.script = [Stream(("```\n" + "x" * 300 + "\n```\n" + "y" * 300,))]
    page = windows.open(builders.person("alice"), width=PHONE, scheme="dark")
    page.goto("/playground/")
    ask(page, "z" * 300)
    expect(page.locator(".turn-coming")).to_have_count(0)
    page.get_by_role("button", name="View code").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE


def test_a_conversation_is_accessible_in_both_themes(
    page: Page, gateway: FakeGateway, windows: Windows
) -> None:
    gateway.script = [Stream(("- **one** `two`\n\n> [three](https://example.org)",))]
    gateway.script += [Refusal(429, "rate_limited", "SlotServe: too many.", 30)] * 2
    page.get_by_label("Beside it").select_option("second")
    ask(page, "Hi")
    expect(page.locator(".turn-refusal")).to_have_count(1)
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    page.get_by_role("button", name="View code").click()
    assert found_now(page, LOOKS) == set()
    windows.forgive("429")
