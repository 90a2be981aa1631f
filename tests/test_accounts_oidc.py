"""Single sign-on with a provider on a real socket: who is let in, and as whom."""

from datetime import timedelta
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client

from lanes.refusals import Refusal
from slotserve.invitations import invite
from slotserve.single_sign_on import WANTED, why_unfit
from tests import builders
from tests.oidc_provider import TOKEN, Provider, led_to, oidc_provider

pytestmark = pytest.mark.django_db
LOGIN = "/accounts/oidc/oidc/login/"
ADDRESS = "ada@example.org"


@pytest.fixture(autouse=True)
def _fresh_limits() -> None:
    cache.clear()


def come_back(client: Client, provider: Provider, settings: Any) -> Any:
    """The answer to somebody who goes to the provider and returns."""
    settings.SOCIALACCOUNT_PROVIDERS = provider.apps()
    address, asked = led_to(client.post(LOGIN))
    assert address.startswith(f"{provider.url}/authorize?"), address
    return client.get(f"{LOGIN}callback/", {"code": "c", "state": asked["state"]})


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
    assert "Ask an administrator for an invitation" in answer.content.decode()
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


UNFIT = "gave an answer that cannot be used"
SILENT = "The single sign-on does not answer"


@pytest.mark.parametrize(
    ("lie", "words"),
    [
        ({"body": b""}, UNFIT),
        ({"body": b"<!doctype html><title>Log in to the guests' network</title>"}, UNFIT),
        ({"body": b"[]"}, UNFIT),
        ({"body": b'"text"'}, UNFIT),
        ({"body": b"{}"}, UNFIT),
        ({"body": b"[" * 100_000}, UNFIT),
        ({"body": b'{"x": "' + b"y" * 2**21 + b'"}'}, UNFIT),
        ({"moved_to": "/.well-known/openid-configuration"}, SILENT),
        ({"moved_to": "http://[broken"}, UNFIT),
        ({"description": {"issuer": "https://evil.example"}}, UNFIT),
        ({"description": {"issuer": None}}, UNFIT),
        ({"description": {"authorization_endpoint": None}}, UNFIT),
        ({"description": {"authorization_endpoint": "javascript:alert(1)"}}, UNFIT),
        ({"description": {"authorization_endpoint": "http://[broken"}}, UNFIT),
        ({"description": {"token_endpoint": 7}}, UNFIT),
        ({"description": {"userinfo_endpoint": ["x"]}}, UNFIT),
        ({"description": {"jwks_uri": "file:///etc/passwd"}}, UNFIT),
    ],
)
def test_whatever_a_description_says_is_told_in_words(
    settings: Any, client: Client, lie: dict[str, Any], words: str
) -> None:
    with oidc_provider() as provider:
        settings.SOCIALACCOUNT_PROVIDERS = provider.apps()
        for name, value in lie.items():
            setattr(provider, name, value)
        page = client.post(LOGIN, follow=True)
    assert page.status_code == 200
    assert words in page.content.decode()


def test_the_log_says_how_to_set_an_issuer_that_is_another() -> None:
    common = "https://login.example/common/v2.0"
    ends = {name: f"{common}/{name}" for name in WANTED}
    why = why_unfit({**ends, "issuer": "https://login.example/{tenantid}/v2.0"}, common)
    assert why.startswith("SLOTSERVE_OIDC_URL must be the provider's issuer")
    assert f"'{common}'" in why
    assert "'https://login.example/{tenantid}/v2.0'" in why
    assert why_unfit({**ends, "issuer": f"{common}/"}, common) == ""


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"<html>"])
def test_a_description_that_changes_while_somebody_is_away(
    settings: Any, client: Client, body: bytes
) -> None:
    with oidc_provider(email=ADDRESS, email_verified=True) as provider:
        settings.SOCIALACCOUNT_PROVIDERS = provider.apps()
        state = led_to(client.post(LOGIN))[1]["state"]
        provider.body = body
        page = client.get(f"{LOGIN}callback/", {"code": "c", "state": state}, follow=True)
    assert page.status_code == 200
    assert "single sign-on" in page.content.decode()
    assert who(client) is None


@pytest.mark.parametrize(
    "token",
    [None, 7, [], ["access_token"], "access_token", {}, {"access_token": 7},
     {"access_token": TOKEN, "id_token": "x.y.z"}, {"access_token": TOKEN, "id_token": 7}],
)  # fmt: skip
def test_whatever_it_gives_as_a_token(settings: Any, client: Client, token: object) -> None:
    member()
    with oidc_provider(email=ADDRESS, email_verified=True) as provider:
        provider.token = token
        answer = come_back(client, provider, settings)
    assert answer.status_code == 302
    assert "single sign-on" in client.get(answer["Location"]).content.decode()
    assert who(client) is None


@pytest.mark.parametrize(
    "person",
    [None, [], "text", 7, {}, {"sub": None}, {"sub": []}, {"sub": ""}, {"sub": "x" * 300},
     {"sub": "\0"}],
)  # fmt: skip
def test_whatever_it_says_of_somebody(settings: Any, client: Client, person: object) -> None:
    member()
    with oidc_provider() as provider:
        provider.person = person
        answer = come_back(client, provider, settings)
    assert answer.status_code == 302
    assert UNFIT in client.get(answer["Location"]).content.decode()
    assert who(client) is None


@pytest.mark.parametrize("value", [None, 7, [], {"a": 1}, "x" * 5000, "a\0b"])
@pytest.mark.parametrize("claim", ["email", "preferred_username", "name", "given_name"])
def test_a_claim_that_is_none_is_left_out(
    settings: Any, client: Client, claim: str, value: object
) -> None:
    settings.SLOTSERVE_OPEN_SIGNUP = True
    with oidc_provider(**{"email": ADDRESS, "email_verified": True, claim: value}) as provider:
        answer = come_back(client, provider, settings)
    assert answer.status_code in (200, 302)
    assert User.objects.count() <= 1


def test_who_comes_back_without_having_left_is_told_to_begin_anew(
    settings: Any, client: Client
) -> None:
    assert client.get(f"{LOGIN}callback/", {"code": "c", "state": "s"}).status_code == 404
    with oidc_provider() as provider:
        settings.SOCIALACCOUNT_PROVIDERS = provider.apps()
        page = client.get(f"{LOGIN}callback/", {"code": "c", "state": "s"}, follow=True)
    assert "begin anew" in page.content.decode()
