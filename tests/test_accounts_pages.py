"""allauth's pages: in the product's looks, under the content policy, for eye and screen reader."""

import re
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.contrib.auth.models import User
from django.core import mail
from django.core.cache import cache
from django.test import Client
from pytest_django import Settings

from tests import builders

pytestmark = pytest.mark.django_db
PASSWORD = "a long password"
ENTRANCES = [
    "/accounts/login/",
    "/accounts/signup/",
    "/accounts/password/reset/",
    "/accounts/password/reset/done/",
    "/accounts/password/reset/key/1-x/",
    "/accounts/password/reset/key/done/",
    "/accounts/inactive/",
    "/accounts/confirm-email/",
    "/accounts/confirm-email/nokey/",
    "/accounts/3rdparty/login/cancelled/",
]
MANAGED = [
    "/accounts/logout/",
    "/accounts/password/change/",
    "/accounts/email/",
    "/accounts/3rdparty/",
    "/accounts/reauthenticate/",
    "/accounts/2fa/",
    "/accounts/2fa/totp/activate/",
    "/accounts/2fa/webauthn/add/",
    "/accounts/2fa/webauthn/",
]
WITH_TOTP = [
    "/accounts/2fa/",
    "/accounts/2fa/totp/deactivate/",
    "/accounts/2fa/recovery-codes/",
    "/accounts/2fa/recovery-codes/generate/",
    "/accounts/2fa/reauthenticate/",
]


@pytest.fixture(autouse=True)
def _fresh_limits() -> None:
    cache.clear()


@pytest.fixture
def alice() -> User:
    """A member with a password and a verified address."""
    user = builders.person("alice", email="alice@example.org")
    user.set_password(PASSWORD)
    user.save()
    EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)
    return user


def logged_in() -> Client:
    """alice's browser; her password was given just now."""
    client = Client()
    client.post("/accounts/login/", {"login": "alice", "password": PASSWORD})
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    return client


def with_totp(user: User) -> None:
    """A second factor and its recovery codes."""
    TOTP.activate(user, generate_totp_secret())
    RecoveryCodes.activate(user)


def control_objections(page: str) -> list[str]:
    """What is wrong with its controls."""
    found = []
    labelled = set(re.findall(r'<label[^>]* for="([^"]+)"', page))
    for control in re.findall(r"<(?:input|select|textarea)[^>]*>", page):
        own = re.search(r' id="([^"]+)"', control)
        is_hidden = 'type="hidden"' in control
        is_wrapped = 'type="checkbox"' in control or 'type="radio"' in control
        if not is_hidden and not is_wrapped and (own is None or own[1] not in labelled):
            found.append(f"no label: {control}")
        if not is_hidden and "form-" not in control:
            found.append(f"no class: {control}")
    return found


def objections(page: str) -> list[str]:
    """What is wrong with a page's markup."""
    found = []
    if page.count("<h1") != 1:
        found.append(f"{page.count('<h1')} h1")
    if "<p><label" in page or "errorlist" in page:
        found.append("a form without looks")
    if re.search(r"\sstyle=|<style|\son\w+=\"", page):
        found.append("inline style or handler")
    for script in re.findall(r"<script[^>]*>", page):
        if "src=" not in script and 'type="application/json"' not in script:
            found.append(f"inline script {script}")
    return found + control_objections(page)


@pytest.mark.parametrize("path", ENTRANCES)
def test_pages_before_logging_in_have_the_looks(path: str) -> None:
    answer = Client().get(path)
    assert answer.status_code == 200
    assert objections(answer.content.decode()) == []


def test_a_single_sign_on_that_failed_has_the_looks() -> None:
    answer = Client().get("/accounts/3rdparty/login/error/")
    assert answer.status_code == 401
    assert objections(answer.content.decode()) == []


@pytest.mark.parametrize("path", MANAGED)
def test_pages_of_an_account_have_the_looks(path: str, alice: User) -> None:
    answer = logged_in().get(path)
    assert answer.status_code == 200
    assert objections(answer.content.decode()) == []


@pytest.mark.parametrize("path", WITH_TOTP)
def test_pages_of_second_factors_have_the_looks(path: str, alice: User) -> None:
    client = logged_in()
    with_totp(alice)
    answer = client.get(path)
    assert answer.status_code == 200
    assert objections(answer.content.decode()) == []


def test_the_page_that_asks_for_the_second_factor_has_the_looks(alice: User) -> None:
    with_totp(alice)
    client = logged_in()
    answer = client.get("/accounts/2fa/authenticate/")
    assert answer.status_code == 200
    assert objections(answer.content.decode()) == []
    assert client.get("/tokens/").status_code == 302


def seen(client: Client, path: str) -> str:
    """A page that is there, with nothing wrong in its markup."""
    answer = client.get(path)
    assert (path, answer.status_code) == (path, 200)
    page = answer.content.decode()
    assert (path, objections(page)) == (path, [])
    return page


def test_pages_of_a_key_have_the_looks(alice: User) -> None:
    client = logged_in()
    data = {"name": "Master key", "credential": {}}
    key = Authenticator.objects.create(user=alice, type=Authenticator.Type.WEBAUTHN, data=data)
    for action in ("edit", "remove"):
        seen(client, f"/accounts/2fa/webauthn/keys/{key.pk}/{action}/")
    seen(client, "/accounts/2fa/webauthn/")


def test_who_has_no_password_is_asked_by_a_code_and_may_set_one() -> None:
    user = builders.person("bob", email="bob@example.org")
    EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)
    user.set_unusable_password()
    user.save()
    client = Client()
    client.force_login(user)
    seen(client, "/accounts/reauthenticate/code/")
    asked = client.post("/accounts/reauthenticate/code/", {"recipient": user.email})
    assert asked["Location"] == "/accounts/reauthenticate/code/confirm/"
    seen(client, "/accounts/reauthenticate/code/confirm/")
    code = re.search(r"^([A-Z]{4}-[A-Z]{4})$", str(mail.outbox[0].body), re.M)
    assert code is not None
    assert client.post("/accounts/reauthenticate/code/confirm/", {"code": code[1]})["Location"]
    seen(client, "/accounts/password/set/")


def test_closed_sign_up_says_how_to_get_an_account() -> None:
    page = Client().get("/accounts/signup/").content.decode()
    assert "Ask an administrator for an invitation" in page
    assert 'href="/accounts/login/"' in page


def test_open_sign_up_has_the_looks_and_makes_an_account(settings: Any) -> None:
    settings.SLOTSERVE_OPEN_SIGNUP = True
    client = Client()
    page = client.get("/accounts/signup/").content.decode()
    assert objections(page) == []
    assert "/accounts/signup/" in client.get("/accounts/login/").content.decode()
    wish = {"username": "new", "password1": "quite a secret", "password2": "quite a secret"}
    assert client.post("/accounts/signup/", wish)["Location"] == "/"


def test_a_wrong_password_is_told_at_the_form(alice: User) -> None:
    answer = Client().post("/accounts/login/", {"login": "alice", "password": "wrong"})
    page = answer.content.decode()
    assert 'class="alert alert-danger"' in page
    assert objections(page) == []


def test_who_tries_too_often_is_told_to_wait(alice: User) -> None:
    client = logged_in()
    for _ in range(30):
        answer = client.post("/accounts/password/change/", {"oldpassword": "x"})
    assert answer.status_code == 429
    assert "Wait a few minutes" in answer.content.decode()


# --- Administrators ---------------------------------------------------------------------------


def test_an_administrator_without_a_factor_is_led_to_set_one_up(settings: Any) -> None:
    settings.SLOTSERVE_MFA_FOR_ADMINISTRATORS = True
    client = Client()
    client.force_login(builders.administrator())
    for path in ("/administration/", "/", "/admin/"):
        assert client.get(path)["Location"] == "/accounts/2fa/"
    assert "need a second factor" in client.get("/accounts/2fa/").content.decode()
    refused = client.get("/api/v1/me/")
    assert (refused.status_code, refused.json()["code"]) == (403, "second_factor_needed")


def test_recovery_codes_alone_are_no_factor(settings: Any) -> None:
    settings.SLOTSERVE_MFA_FOR_ADMINISTRATORS = True
    user = builders.administrator()
    codes = Authenticator.Type.RECOVERY_CODES
    Authenticator.objects.create(user=user, type=codes, data={})
    client = Client()
    client.force_login(user)
    assert client.get("/")["Location"] == "/accounts/2fa/"


def test_an_administrator_with_a_factor_and_any_member_are_let_in(settings: Any) -> None:
    settings.SLOTSERVE_MFA_FOR_ADMINISTRATORS = True
    chief = builders.administrator()
    with_totp(chief)
    for user in (chief, builders.person("member")):
        client = Client()
        client.force_login(user)
        assert client.get("/").status_code == 200


def test_nobody_is_asked_where_the_setting_is_off() -> None:
    client = Client()
    client.force_login(builders.administrator())
    assert client.get("/administration/").status_code == 200


CONSOLE = "django.core.mail.backends.console.EmailBackend"


def test_who_forgot_the_password_is_sent_a_link(db: None) -> None:
    EmailAddress.objects.create(user=builders.person("ada"), email="ada@example.org", primary=True)
    page = Client().get("/accounts/password/reset/").content.decode()
    assert "Send the link" in page
    answer = Client().post("/accounts/password/reset/", {"email": "ada@example.org"}, follow=True)
    assert "A mail is on its way" in answer.content.decode()
    sent = mail.outbox[0]
    assert (sent.to, sent.subject) == (["ada@example.org"], "[SlotServe] Password Reset Email")
    assert str(sent.body).startswith("You're receiving this email")
    assert str(sent.body).rstrip().endswith("SlotServe, testserver")


def test_without_a_mail_server_nobody_is_told_to_wait_for_mail(
    db: None, settings: Settings
) -> None:
    settings.EMAIL_BACKEND = CONSOLE
    page = Client().get("/accounts/password/reset/").content.decode()
    assert "an administrator can give you a new password" in page
    assert "Send the link" not in page


def test_a_wrong_password_is_told_in_the_words_of_the_form(db: None) -> None:
    answer = Client().post("/accounts/login/", {"login": "ada", "password": "wrong"})
    assert "No account has this name or e-mail and this password." in answer.content.decode()
