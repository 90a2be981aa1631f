"""Single sign-on with a provider on a real socket: who is let in, and as whom."""

from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client

from lanes.refusals import Refusal
from slotserve.invitations import invite
from tests import builders
from tests.oidc_provider import Provider, oidc_provider

pytestmark = pytest.mark.django_db
LOGIN = "/accounts/oidc/oidc/login/"
ADDRESS = "ada@example.org"


@pytest.fixture(autouse=True)
def _fresh_limits() -> None:
    cache.clear()


def come_back(client: Client, provider: Provider, settings: Any) -> Any:
    """The answer to somebody who goes to the provider and returns."""
    settings.SOCIALACCOUNT_PROVIDERS = provider.apps()
    away = client.post(LOGIN)
    assert away["Location"].startswith(f"{provider.url}/authorize?"), away["Location"]
    state = parse_qs(urlsplit(away["Location"]).query)["state"][0]
    return client.get(f"{LOGIN}callback/", {"code": "c", "state": state})


def who(client: Client) -> str | None:
    """The user's name of the session."""
    pk = client.session.get("_auth_user_id")
    return User.objects.get(pk=pk).username if pk else None


def member() -> User:
    """Somebody whose address is verified here."""
    person = builders.person("alice", email=ADDRESS)
    EmailAddress.objects.create(user=person, email=ADDRESS, verified=True, primary=True)
    return person


@pytest.mark.parametrize(("verified", "found"), [(True, "alice"), (False, None)])
def test_an_address_that_the_provider_verified_is_its_member(
    settings: Any, client: Client, verified: bool, found: str | None
) -> None:
    member()
    with oidc_provider(email=ADDRESS, email_verified=verified) as provider:
        answer = come_back(client, provider, settings)
    assert (answer.status_code, who(client)) == (302 if found else 200, found)
    assert User.objects.count() == 1
    assert provider.asked[0]["code_verifier"]


def test_a_stranger_makes_no_account_without_an_invitation(settings: Any, client: Client) -> None:
    with oidc_provider(email=ADDRESS, email_verified=True) as provider:
        answer = come_back(client, provider, settings)
    assert "closed" in answer.content.decode()
    assert (who(client), User.objects.count()) == (None, 0)


@pytest.mark.parametrize(("verified", "is_let_in"), [(True, True), (False, False)])
def test_who_was_invited_makes_one_with_an_address_that_is_verified(
    settings: Any, client: Client, verified: bool, is_let_in: bool
) -> None:
    chief = builders.administrator()
    week = timedelta(days=7)
    made = invite(actor=chief, email=ADDRESS, groups=[], is_administrator=True, lifetime=week)
    assert not isinstance(made, Refusal)
    client.get(f"/invitation/{made[1]}/")
    wish = {"email": ADDRESS, "email_verified": verified, "preferred_username": "ada"}
    with oidc_provider(**wish) as provider:
        come_back(client, provider, settings)
    assert (who(client) == "ada") is is_let_in
    assert User.objects.filter(username="ada", is_staff=True).exists() is is_let_in


def test_a_provider_that_is_away_is_told_in_words(settings: Any, client: Client) -> None:
    with oidc_provider() as provider:
        settings.SOCIALACCOUNT_PROVIDERS = provider.apps()
    page = client.post(LOGIN, follow=True).content.decode()
    assert "The single sign-on does not answer" in page
