"""What pages say to paste works as it stands, against the real gateway and the demo model."""

import json
import re
import sys

import pytest
from playwright.sync_api import Locator, Page, expect

from tests import browser_pages as pages
from tests.story_people import ADMIN, MODEL_MS, OWNER, People, Stage, outcome

pytest_plugins = ["tests.browser_fixtures", "tests.story_fixtures"]
pytestmark = [
    pytest.mark.story,
    pytest.mark.process,
    pytest.mark.skipif(
        pages.chromium() is None, reason="NOT TESTED HERE: pages in a browser (install chromium)"
    ),
]
# Both clients find address and token in the environment alone.
CLIENTS = """
python3 - <<'END'
import os
from anthropic import Anthropic
from openai import OpenAI
asked = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 8}
model = os.environ.get("OPENAI_MODEL", "auto")
print(OpenAI().chat.completions.create(model=model, **asked).choices[0].message.content)
print(Anthropic().messages.create(model=model, **asked).content[0].text)
END
""".replace("python3", sys.executable)


def deltas(stream: str) -> str:
    """The text of a streamed chat as curl prints it."""
    told = [line.removeprefix("data: ") for line in stream.splitlines() if line.startswith("data:")]
    assert told[-1] == "[DONE]", stream
    chunks = [json.loads(each) for each in told[:-1]]
    found = [each["choices"][0]["delta"].get("content") for each in chunks if each["choices"]]
    return "".join(text or "" for text in found)


def snippets_of(place: Locator) -> dict[str, str]:
    """The programs that a part of a page shows, by the part of their ids that tells them."""
    found = place.locator("pre.curl")
    return {
        re.sub(r"^(use|code-text)-", "", each.get_attribute("id") or ""): each.inner_text()
        if each.is_visible()
        else each.text_content() or ""
        for each in found.all()
    }


def all_work(programs: dict[str, str], token: str) -> None:
    """Each answers with words of the model."""
    assert {"curl", "environment"} < set(programs), programs
    for name, program in programs.items():
        if name == "environment":
            said = outcome(program.replace("ss_…", token) + CLIENTS, token, is_python=False)
        else:
            said = outcome(program, token, is_python="import " in program)
        words = deltas(said) if "curl -N" in program else said
        assert re.search(r"\w{2}", words), f"{name}: {program}\n{said}"


def test_those_of_a_lane(people: People, stage: Stage) -> None:
    page = people.open(OWNER)
    page.get_by_role("link", name="Use Demo").click()
    told = page.get_by_role("dialog", name="Use Demo")
    expect(told).to_be_visible()
    programs = snippets_of(told)
    assert len(programs) == 4
    assert all(stage.gateway + "/lanes/demo" in program for program in programs.values())
    assert all("smollm2" in program for program in programs.values())
    all_work(programs, stage.tokens[OWNER])


def test_those_of_a_preset(people: People, stage: Stage) -> None:
    page = people.open(OWNER, "/models/presets/smollm2/")
    programs = snippets_of(page.locator("main"))
    assert len(programs) == 4
    all_work(programs, stage.tokens[OWNER])


def test_those_of_a_new_token(people: People, stage: Stage) -> None:
    page = people.open(ADMIN, "/tokens/")
    page.get_by_label("Name").fill("pasted")
    page.get_by_role("button", name="Make token").click()
    text = page.locator("#token").inner_text()
    programs = snippets_of(page.get_by_role("region", name="Your new token"))
    assert all(text in program for program in programs.values())
    all_work(programs, "")


def test_the_playgrounds_code(people: People, stage: Stage) -> None:
    page = people.open(OWNER, "/playground/")
    page.get_by_label("System prompt").fill('You\'re brief, and say "yes".')
    page.get_by_label("Most tokens").fill("12")
    page.get_by_label("Your message").fill("Hello")
    page.keyboard.press("Enter")
    answered(page)
    page.get_by_label("Your message").fill("It's true \\ isn't it?")
    page.get_by_role("button", name="View code").click()
    all_work(snippets_of(page.locator("#code")), stage.tokens[OWNER])


def answered(page: Page) -> None:
    """Until the model has said all that it may."""
    expect(page.locator(".pane-figures")).to_contain_text("tokens", timeout=MODEL_MS)
