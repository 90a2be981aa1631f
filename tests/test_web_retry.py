"""Another try of what failed leads back to the page whose button was pressed."""

import re
from html import unescape

import pytest
from django.test import Client

from lanes import clock
from lanes.models import Phase
from tests import browser_pages as pages
from tests import builders

pytestmark = pytest.mark.django_db
RETRY = "/lanes/demo/retry/"
NARROWED = "/?show=&q=demo"


@pytest.fixture
def client() -> Client:
    """An administrator's; the lane `demo` has failed."""
    lane, preset = builders.lane("demo"), builders.preset("qwen")
    pages.order(lane, preset)
    now = clock.database_now()
    pages.runtime(lane, preset, Phase.FAILED, reason="Boom.", ended_at=now)
    client = Client()
    client.force_login(builders.administrator())
    return client


def led_back(client: Client, shown: str) -> str:
    """Where the rendered form leads."""
    form = shown[shown.index(f'action="{RETRY}"') :].partition("</form>")[0]
    named = re.search(r'name="next" value="([^"]+)"', form)
    data = {"next": unescape(named[1])} if named else {}
    return client.post(RETRY, data)["Location"]


@pytest.mark.parametrize("page", ["/", NARROWED, "/lanes/demo/"])
def test_another_try_leads_back_to_the_page_it_was_asked_on(client: Client, page: str) -> None:
    assert led_back(client, client.get(page).content.decode()) == page


@pytest.mark.parametrize("asked", [NARROWED, "/?lane=demo"], ids=["all cards", "one card"])
def test_a_fragment_leads_back_to_the_page_it_is_on(client: Client, asked: str) -> None:
    headers = {"HX-Request": "true", "HX-Current-URL": f"http://testserver{NARROWED}"}
    assert led_back(client, client.get(asked, headers=headers).content.decode()) == NARROWED


def test_another_try_leads_to_no_other_site(client: Client) -> None:
    assert client.post(RETRY, {"next": "/bookings/7/"})["Location"] == "/bookings/7/"
    assert client.post(RETRY, {"next": "//evil.test"})["Location"] == "/lanes/demo/"
