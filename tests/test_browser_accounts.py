"""Logging in with second factors and passkeys, in a real Chromium."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import User
from django.core.cache import cache
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from tests import browser_pages as pages
from tests import builders
from tests.browser_pages import Windows
from tests.oidc_provider import oidc_provider

pytest_plugins = ["tests.browser_fixtures"]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        pages.chromium() is None, reason="NOT TESTED HERE: pages in a browser (install chromium)"
    ),
]
PASSWORD = "a long password"


@pytest.fixture
def windows(chromium: Browser, live_server: LiveServer) -> Iterator[Windows]:
    """Windows on the live server; at the end the browser must not have complained."""
    cache.clear()
    address = live_server.url.replace("127.0.0.1", "localhost")  # passkeys need a name
    with pages.windows(chromium, address) as opened:
        yield opened
    assert opened.complaints == []


@pytest.fixture
def alice(live_server: LiveServer) -> User:
    """A member with a password."""
    user = builders.person("alice", email="alice@example.org")
    user.set_password(PASSWORD)
    user.save()
    return user


def log_in(page: Page) -> None:
    """By name and password."""
    page.goto("/accounts/login/")
    page.get_by_label("User name").fill("alice")
    page.get_by_label("Password").fill(PASSWORD)
    with page.expect_navigation():
        page.get_by_role("button", name="Log in", exact=True).click()


def confirm(page: Page) -> None:
    """The password once more, before something that matters."""
    page.get_by_label("Password").fill(PASSWORD)
    with page.expect_navigation():
        page.get_by_role("button", name="Confirm").click()


def is_in(page: Page) -> None:
    """The page is a member's."""
    expect(page.locator(".own-menu summary")).to_be_visible()


def log_out(page: Page) -> None:
    """From the menu under one's name."""
    page.locator(".own-menu summary").click()
    with page.expect_navigation():
        page.get_by_role("button", name="Log out").click()


def code_of(secret: str, steps: int = 0) -> str:
    """What an authenticator app shows, some half minutes on."""
    return str(format_hotp_value(hotp_value(secret, int(time.time()) // 30 + steps)))


def with_authenticator(page: Page) -> None:
    """The window has a security key that knows its owner and answers at once."""
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    session.send("WebAuthn.addVirtualAuthenticator", {"options": options})


def test_an_authenticator_app_is_set_up_and_asked_for(windows: Windows, alice: User) -> None:
    page = windows.open()
    log_in(page)
    page.goto("/accounts/2fa/totp/activate/")
    confirm(page)
    secret = page.get_by_label("Authenticator secret").input_value()
    page.get_by_label("Authenticator code").fill(code_of(secret))  # good for two half minutes
    page.get_by_role("button", name="Activate").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Recovery codes")
    codes = page.get_by_label("Unused codes").input_value().split()

    other = windows.open(width=pages.PHONE)
    log_in(other)
    other.get_by_label("Code").fill("000000")
    other.get_by_role("button", name="Log in").click()
    expect(other.get_by_role("alert").first).to_contain_text("Incorrect code")
    other.get_by_label("Code").fill(code_of(secret, 1))  # the first has been used
    other.get_by_role("button", name="Log in").click()
    is_in(other)

    third = windows.open()
    log_in(third)
    third.get_by_label("Code").fill(codes[0])
    third.get_by_role("button", name="Log in").click()
    is_in(third)


def test_a_passkey_logs_in_without_a_name(windows: Windows, alice: User) -> None:
    page = windows.open()
    with_authenticator(page)
    log_in(page)
    page.goto("/accounts/2fa/webauthn/add/")
    confirm(page)
    page.get_by_label("Name").fill("my phone")
    page.get_by_label("Passwordless").check()
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Recovery codes")
    page.wait_for_load_state()
    page.goto("/accounts/2fa/webauthn/")
    expect(page.get_by_role("row", name="my phone")).to_contain_text("Passkey")

    log_out(page)
    page.goto("/accounts/login/")
    page.get_by_role("button", name="Log in with a passkey").click()
    is_in(page)
    assert Authenticator.objects.filter(user=alice, last_used_at__isnull=False).exists()


def test_a_key_is_the_second_factor_and_is_renamed_and_removed(
    windows: Windows, alice: User
) -> None:
    page = windows.open()
    with_authenticator(page)
    log_in(page)
    page.goto("/accounts/2fa/webauthn/add/")
    confirm(page)
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Recovery codes")
    page.wait_for_load_state()
    log_out(page)
    log_in(page)
    page.get_by_role("button", name="Use a security key").click()
    is_in(page)
    page.wait_for_load_state()
    page.goto("/accounts/2fa/webauthn/")
    page.get_by_role("link", name="Edit").click()
    if page.get_by_role("button", name="Confirm").count():
        confirm(page)
    page.get_by_label("Name").fill("blue key")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("row", name="blue key")).to_be_visible()
    page.get_by_role("link", name="Remove").click()
    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("No security keys have been added")).to_be_visible()


def test_a_passkey_that_is_not_there_is_told_in_words(windows: Windows, alice: User) -> None:
    page = windows.open()
    page.goto("/accounts/login/")
    page.evaluate("() => { navigator.credentials.get = () => Promise.reject(Error('none')) }")
    page.get_by_role("button", name="Log in with a passkey").click()
    expect(page.get_by_role("alert")).to_have_text(
        "The passkey did not work. Try again, or use another way."
    )


def test_no_passkey_is_asked_for_at_a_bare_address(
    windows: Windows, live_server: LiveServer
) -> None:
    page = windows.open()
    page.goto(f"{live_server.url}/accounts/login/")
    expect(page.get_by_role("button", name="Log in", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Log in with a passkey")).to_be_hidden()


def test_the_button_that_was_pressed_is_told(windows: Windows, alice: User) -> None:
    page = windows.open()
    log_in(page)
    page.goto("/accounts/email/")
    page.get_by_label("Email", exact=True).fill("other@example.org")
    page.get_by_role("button", name="Add Email").click()
    expect(page.get_by_text("other@example.org").first).to_be_visible()


def test_the_time_a_token_expires_at_is_asked_when_it_is_needed(
    windows: Windows, alice: User
) -> None:
    page = windows.open(alice, width=pages.PHONE)
    page.goto("/tokens/")
    time_field = page.locator("#id_expires_at")
    expect(time_field).to_be_hidden()
    page.get_by_label("Expires").select_option("time")
    expect(time_field).to_be_visible()
    page.get_by_label("Name").fill("laptop")
    page.get_by_role("button", name="Make token").click()
    expect(page.get_by_text("Say when it expires")).to_be_visible()
    windows.forgive("400 (Bad Request)")
    time_field.fill("2091-01-01T12:00")
    page.get_by_role("button", name="Make token").click()
    expect(page.locator("#token")).to_contain_text("ss_")
    expect(time_field).to_be_hidden()


def test_the_single_sign_on_logs_in_and_confirms(
    windows: Windows, alice: User, settings: Any
) -> None:
    alice.set_unusable_password()
    alice.save()
    SocialAccount.objects.create(user=alice, provider="oidc", uid="1")
    page = windows.open()
    with oidc_provider() as provider:
        settings.SOCIALACCOUNT_PROVIDERS = provider.apps()
        page.goto("/accounts/login/")
        page.get_by_role("link", name="Log in with Provider").click()
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_role("heading", name="Lanes", level=1)).to_be_visible()
        page.goto("/accounts/2fa/totp/activate/")
        page.get_by_role("button", name="Confirm with Provider").click()
        expect(page.get_by_label("Authenticator code")).to_be_visible()
