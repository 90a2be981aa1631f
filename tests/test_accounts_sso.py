"""Whom a single sign-on's word makes a member."""

from typing import Any

import pytest
from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount, SocialLogin
from django.contrib.auth.models import User

from slotserve.accounts import VerifiedPeople
from slotserve.checks import check_single_sign_on
from tests import builders

pytestmark = pytest.mark.django_db
ADDRESS = "alice@example.org"


class Anyone(VerifiedPeople):
    """Every provider may say who somebody is."""

    def can_authenticate_by_email(self, login: SocialLogin, email: str) -> bool:
        """Without a provider to ask."""
        return True


def told(*, verified: bool) -> SocialLogin:
    """What a provider says of somebody."""
    address = EmailAddress(email="Alice@Example.org", verified=verified)
    return SocialLogin(User(), SocialAccount(provider="oidc", uid="1"), None, [address])


def known(*, verified: bool) -> User:
    """A member with this address."""
    alice = builders.person("alice")
    EmailAddress.objects.create(user=alice, email=ADDRESS, verified=verified, primary=True)
    return alice


def test_an_address_that_both_sides_verified_is_its_member() -> None:
    alice = known(verified=True)
    found = Anyone().authenticate_by_email(told(verified=True))
    assert found == (alice, "Alice@Example.org")


@pytest.mark.parametrize(("here", "there"), [(True, False), (False, True), (False, False)])
def test_an_address_that_one_side_did_not_verify_is_nobodys(here: bool, there: bool) -> None:
    known(verified=here)
    assert Anyone().authenticate_by_email(told(verified=there)) is None


def test_an_address_that_nobody_has_is_nobodys() -> None:
    assert Anyone().authenticate_by_email(told(verified=True)) is None


@pytest.mark.parametrize(
    ("providers", "found"),
    [
        ({}, []),
        ({"openid_connect": {"APPS": [{"client_id": "slotserve"}]}}, []),
        ({"openid_connect": {"APPS": [{"client_id": ""}]}}, ["slotserve.E030"]),
    ],
)
def test_a_provider_without_a_client_id_is_found(
    settings: Any, providers: dict[str, Any], found: list[str]
) -> None:
    settings.SOCIALACCOUNT_PROVIDERS = providers
    assert [each.id for each in check_single_sign_on(None)] == found
