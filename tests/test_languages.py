"""The reader's language: by what was chosen, else by what the browser asks for."""

import pytest
from django.test import Client

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
