"""The reader's language: by what was chosen, else by what the browser asks for."""

import re
from pathlib import Path

import allauth
import pytest
from babel.messages.mofile import read_mo
from babel.messages.pofile import read_po
from django.test import Client

from slotserve.stack.parts import ROOT
from tests import builders

pytestmark = pytest.mark.django_db


def test_a_page_is_in_the_language_that_the_browser_asks_for(client: Client) -> None:
    page = client.get("/accounts/login/", headers={"accept-language": "de-AT,de;q=0.9,en;q=0.5"})
    assert b'<html lang="de"' in page.content
    assert page["Content-Language"] == "de"


def test_a_language_we_do_not_have_is_answered_in_english(client: Client) -> None:
    page = client.get("/accounts/login/", headers={"accept-language": "fr,nl;q=0.5"})
    assert b'<html lang="en"' in page.content


def test_the_chosen_language_wins_and_lasts(client: Client) -> None:
    chosen = client.post("/i18n/setlang/", {"language": "de", "next": "/accounts/login/"})
    assert chosen["Location"] == "/accounts/login/"
    page = client.get("/accounts/login/", headers={"accept-language": "en"})
    assert b'<html lang="de"' in page.content
    assert client.cookies["django_language"]["max-age"] == 365 * 24 * 3600


def test_choosing_a_language_leads_to_no_other_site(client: Client) -> None:
    chosen = client.post("/i18n/setlang/", {"language": "de", "next": "//evil.example/"})
    assert chosen["Location"] == "/"


@pytest.mark.parametrize("language", ["xx", "", "\0", "de\0", "../../etc"])
def test_a_language_that_is_none_changes_nothing(client: Client, language: str) -> None:
    answer = client.post("/i18n/setlang/", {"language": language, "next": "/accounts/login/"})
    assert answer.status_code == 302
    assert "django_language" not in client.cookies


def test_the_page_says_which_language_it_is_in(client: Client) -> None:
    page = client.get("/accounts/login/").content.decode()
    assert 'value="en" lang="en" aria-current="true"' in page
    assert 'value="de" lang="de">Deutsch' in page


@pytest.mark.parametrize(
    "page",
    [
        "login/", "logout/", "password/change/", "password/reset/", "email/", "2fa/",
        "2fa/webauthn/", "3rdparty/", "inactive/", "social/login/cancelled/",
    ],
)  # fmt: skip
def test_accounts_have_headings_like_all_other_pages(client: Client, page: str) -> None:
    """allauth's own English ones begin Each Word with a capital."""
    person = builders.person("ada", email="ada@example.org")
    person.set_password("Quite-long-17")
    person.save()
    if page not in ("login/", "password/reset/"):
        client.post("/accounts/login/", {"login": "ada", "password": "Quite-long-17"})
    answer = client.get(f"/accounts/{page}", follow=True)
    assert answer.status_code == 200
    text = answer.content.decode()
    words = re.findall(r"<(?:h[1-3]|button|label)[^>]*>\s*([^<]+?)\s*<", text)
    assert words
    odd = [each for each in words if re.search(r"[a-z] [A-Z][a-z]", each)]
    assert set(odd) <= {"Log in to SlotServe"}


def test_every_text_of_the_english_catalogue_is_one_of_allauth() -> None:
    with (ROOT / "locale/en/LC_MESSAGES/django.po").open("rb") as file:
        source = {m.id: m.string for m in read_po(file, locale="en") if m.id}
    with (ROOT / "locale/en/LC_MESSAGES/django.mo").open("rb") as file:
        own = read_mo(file)
    assert {m.id: m.string for m in own if m.id} == source
    with (Path(allauth.__file__).parent / "locale/de/LC_MESSAGES/django.po").open("rb") as file:
        known = {m.id for m in read_po(file, locale="de")}
    assert set(source) <= known
