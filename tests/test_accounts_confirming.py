"""Members without a password confirm who they are by the single sign-on."""

from typing import Any
from urllib.parse import urlsplit

import pytest
from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client

from tests import builders
from tests.oidc_provider import Provider, led_to, oidc_provider

pytestmark = pytest.mark.django_db
ASKS = "/accounts/2fa/totp/activate/"
CONFIRM = "/accounts/oidc/oidc/confirm/"
CALLBACK = "/accounts/oidc/oidc/login/callback/"


@pytest.fixture(autouse=True)
def _fresh_limits() -> None:
    cache.clear()


@pytest.fixture
def alice(client: Client) -> User:
    """Somebody who has the single sign-on alone."""
    person = builders.person("alice")
    person.set_unusable_password()
    person.save()
    SocialAccount.objects.create(user=person, provider="oidc", uid="1")
    client.force_login(person)
    return person


def confirm(client: Client, address: str) -> Any:
    """The answer to her when she is back from the provider."""
    _, asked = led_to(client.post(address))
    assert asked["prompt"] == "login"
    return client.get(CALLBACK, {"code": "c", "state": asked["state"]}, follow=True)


def asked_at(client: Client, provider: Provider, settings: Any) -> str:
    """Where a page that asks who she is leads her."""
    settings.SOCIALACCOUNT_PROVIDERS = provider.apps()
    address: str = client.get(ASKS)["Location"]
    return address


@pytest.mark.usefixtures("alice")
def test_who_has_the_single_sign_on_alone_confirms_by_it(settings: Any, client: Client) -> None:
    with oidc_provider() as provider:
        address = asked_at(client, provider, settings)
        assert urlsplit(address).path == CONFIRM
        assert "Confirm with Provider" in client.get(address).content.decode()
        page = confirm(client, address)
    assert page.redirect_chain[-1][0] == ASKS
    assert page.status_code == 200
    assert client.get(ASKS).status_code == 200


@pytest.mark.usefixtures("alice")
def test_somebody_else_at_the_provider_confirms_nothing(settings: Any, client: Client) -> None:
    with oidc_provider() as provider:
        address = asked_at(client, provider, settings)
        provider.person = {"sub": "2"}
        page = confirm(client, address)
    assert "another account" in page.content.decode()
    assert client.get(ASKS).status_code == 302


def test_an_address_that_matches_confirms_nothing(
    settings: Any, client: Client, alice: User
) -> None:
    EmailAddress.objects.create(user=alice, email="a@example.org", verified=True, primary=True)
    with oidc_provider() as provider:
        address = asked_at(client, provider, settings)
        provider.person = {"sub": "2", "email": "a@example.org", "email_verified": True}
        confirm(client, address)
    assert client.get(ASKS).status_code == 302


@pytest.mark.usefixtures("alice")
def test_logging_in_by_it_is_no_confirmation(settings: Any, client: Client) -> None:
    with oidc_provider() as provider:
        settings.SOCIALACCOUNT_PROVIDERS = provider.apps()
        state = led_to(client.post("/accounts/oidc/oidc/login/?process=redirect"))[1]["state"]
        client.get(CALLBACK, {"code": "c", "state": state})
        assert client.get(ASKS).status_code == 302


def test_it_is_for_those_it_is_connected_to(settings: Any, client: Client) -> None:
    client.force_login(builders.person("bob"))
    with oidc_provider() as provider:
        settings.SOCIALACCOUNT_PROVIDERS = provider.apps()
        assert client.get(CONFIRM).status_code == 404
        assert client.post(CONFIRM).status_code == 404


@pytest.mark.usefixtures("alice")
def test_a_provider_that_is_away_is_told_in_words(settings: Any, client: Client) -> None:
    with oidc_provider() as provider:
        address = asked_at(client, provider, settings)
    page = client.post(address, follow=True)
    assert "The single sign-on does not answer" in page.content.decode()


def test_a_password_is_asked_first(settings: Any, client: Client, alice: User) -> None:
    alice.set_password("a long password")
    alice.save()
    client.force_login(alice)
    with oidc_provider() as provider:
        address = asked_at(client, provider, settings)
    page = client.get(address).content.decode()
    assert urlsplit(address).path == "/accounts/reauthenticate/"
    assert "Use Provider" in page
    assert CONFIRM in page
