"""Invitations: one link makes one account, once, while it is open."""

import re
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount, SocialLogin
from django.contrib.auth.models import Group, User
from django.core import mail
from django.test import Client, RequestFactory
from pytest_django import Settings
from rest_framework.test import APIClient

from lanes import clock
from lanes.refusals import Refusal
from slotserve import tasks
from slotserve.accounts import SESSION_KEY, VerifiedPeople
from slotserve.invitations import accept, find, invite, revoke
from slotserve.models import Invitation
from tests import builders

pytestmark = pytest.mark.django_db
ACCOUNT = {"username": "ada", "password": "quite a secret"}


@pytest.fixture
def chief() -> User:
    """Who invites."""
    return builders.administrator()


def made(chief: User, **changes: Any) -> tuple[Invitation, str]:
    """An invitation for a week."""
    given = {"email": "", "groups": [], "is_administrator": False, "lifetime": timedelta(days=7)}
    answer = invite(actor=chief, **{**given, **changes})
    assert not isinstance(answer, Refusal)
    return answer


def test_a_link_makes_one_account_with_groups_and_power(chief: User) -> None:
    group = Group.objects.create(name="lab")
    invitation, text = made(chief, email="ada@example.org", groups=[group], is_administrator=True)
    assert text not in str(Invitation.objects.values().get())
    ada = accept(invitation, **ACCOUNT)
    assert isinstance(ada, User)
    assert (ada.is_staff, ada.is_superuser, list(ada.groups.all())) == (True, True, [group])
    assert EmailAddress.objects.get(user=ada, verified=True).email == "ada@example.org"
    again = accept(invitation, username="bob", password=ACCOUNT["password"])
    assert isinstance(again, Refusal)
    assert not User.objects.filter(username="bob").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"expires_at": clock.database_now}, "has expired"),
        ({"revoked_at": clock.database_now}, "was withdrawn"),
        ({"used_at": clock.database_now}, "was used already"),
    ],
    ids=["expired", "revoked", "used"],
)
def test_a_link_that_opens_nothing_says_what_to_do(
    chief: User, change: dict[str, Any], words: str
) -> None:
    _, text = made(chief)
    Invitation.objects.update(**{name: value() for name, value in change.items()})
    answer = Client().get(f"/invitation/{text}/")
    assert (answer.status_code, words in answer.content.decode()) == (404, True)


def test_a_link_that_nobody_made_says_what_to_do() -> None:
    assert "not whole" in Client().get("/invitation/nonsense/").content.decode()
    assert Client().get("/invitation/").status_code == 404


@pytest.mark.parametrize(
    ("wish", "code"),
    [
        ({"email": "nonsense"}, "bad_email"),
        ({"email": f"ada@{'x' * 50}.{'y' * 50}.{'z' * 50}.{'w' * 50}.{'v' * 50}.org"}, "bad_email"),
        ({"email": "known@example.org"}, "name_taken"),
        ({"lifetime": timedelta(days=91)}, "bad_lifetime"),
        ({"lifetime": timedelta()}, "bad_lifetime"),
    ],
)
def test_what_cannot_be_is_not_invited(chief: User, wish: dict[str, Any], code: str) -> None:
    EmailAddress.objects.create(user=chief, email="Known@example.org")
    given = {"email": "", "groups": [], "is_administrator": False, "lifetime": timedelta(days=7)}
    refused = invite(actor=chief, **{**given, **wish})
    assert isinstance(refused, Refusal)
    assert refused.code == code


@pytest.mark.parametrize(
    ("account", "code"),
    [
        ({"username": "administrator"}, "name_taken"),
        ({"username": "no name"}, "bad_name"),
        ({"password": "123"}, "bad_password"),
    ],
)
def test_a_bad_name_or_password_uses_nothing_up(
    chief: User, account: dict[str, str], code: str
) -> None:
    invitation, text = made(chief)
    refused = accept(invitation, **{**ACCOUNT, **account})
    assert isinstance(refused, Refusal)
    assert refused.code == code
    assert isinstance(find(text, clock.database_now()), Invitation)


def test_members_invite_and_revoke_nobody(chief: User) -> None:
    alice = builders.person("alice")
    invitation, _ = made(chief)
    day = timedelta(days=1)
    answers = (
        invite(actor=alice, email="", groups=[], is_administrator=True, lifetime=day),
        revoke(invitation, actor=alice),
    )
    assert [isinstance(each, Refusal) and each.code for each in answers] == [
        "not_administrator"
    ] * 2


def test_without_a_mail_server_the_page_says_to_pass_the_link_on(
    chief: User, settings: Settings
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    client = Client()
    client.force_login(chief)
    assert "There are none yet." in client.get("/administration/invitations/").content.decode()
    form = {"email": "ada@example.org", "days": "7"}
    page = client.post("/administration/invitations/", form).content.decode()
    assert "This installation sends no e-mails: pass the link on yourself." in page
    assert "The link is sent to" not in page


def test_the_story_on_pages(chief: User) -> None:
    inviting, invited = Client(), Client()
    inviting.force_login(chief)
    page = inviting.post("/administration/invitations/", {"days": "7"}).content.decode()
    link = re.search(r'id="invitation-link">https?://[^/]+([^<]+)<', page)
    assert link is not None
    assert invited.get(link[1])["Location"] == "/invitation/"  # the secret leaves the address
    assert "Make your account" in invited.get("/invitation/").content.decode()
    assert invited.post("/invitation/", {**ACCOUNT, "password": "1"}).status_code == 400
    assert invited.post("/invitation/", ACCOUNT)["Location"] == "/"
    assert invited.get("/").status_code == 200
    listed = inviting.get("/administration/invitations/").content.decode()
    assert ("used" in listed, ">ada</a>" in listed) == (True, True)
    assert invited.get(link[1]).status_code == 404


def test_older_invitations_are_on_further_pages(chief: User) -> None:
    for number in range(51):
        made(chief, email=f"no{number:02}@example.org")
    client = Client()
    client.force_login(chief)
    newest = client.get("/administration/invitations/").content.decode()
    older = client.get("/administration/invitations/?page=2").content.decode()
    assert ("no50@" in newest, "no00@" in newest) == (True, False)
    assert ("no50@" in older, "no00@" in older) == (False, True)
    assert 'href="?page=2"' in newest


def test_an_open_invitation_is_withdrawn_on_the_page(chief: User) -> None:
    invitation, text = made(chief)
    client = Client()
    client.force_login(chief)
    client.post(f"/administration/invitations/{invitation.pk}/revoke/")
    assert isinstance(find(text, clock.database_now()), Refusal)


def test_the_mail_has_the_link_in_text_and_html(chief: User) -> None:
    invitation, _ = made(chief, email="ada@example.org")
    tasks.mail_invitation(invitation.pk, "https://gpu.example.org/invitation/x/", "en")
    (sent,) = mail.outbox
    assert sent.to == ["ada@example.org"]
    whole = sent.message().as_string()
    assert whole.count("https://gpu.example.org/invitation/x/") == 3  # text, and twice in HTML
    Invitation.objects.update(revoked_at=clock.database_now())
    tasks.mail_invitation(invitation.pk, "https://gpu.example.org/invitation/x/", "en")
    assert len(mail.outbox) == 1


def test_an_address_that_came_to_a_member_meanwhile_makes_no_account(chief: User) -> None:
    invitation, text = made(chief, email="ada@example.org")
    EmailAddress.objects.create(user=chief, email="ada@example.org", verified=True)
    refused = accept(invitation, **ACCOUNT)
    assert isinstance(refused, Refusal)
    assert refused.code == "name_taken"
    assert not User.objects.filter(username="ada").exists()
    assert isinstance(find(text, clock.database_now()), Invitation)


def test_rest_invites_and_withdraws(chief: User) -> None:
    Group.objects.create(name="lab")
    client, path = APIClient(), "/api/v1/invitations/"
    client.force_login(chief)
    answer = client.post(path, {"groups": ["lab"], "days": 3}, format="json")
    made = answer.json()
    assert (answer.status_code, made["groups"], made["state"]) == (201, ["lab"], "open")
    link = urlsplit(made["link"]).path
    assert Client().get(link)["Location"] == "/invitation/"
    listed = client.get(path).json()
    assert (len(listed["results"]), "link" in listed["results"][0]) == (1, False)
    assert client.post(f"{path}{made['id']}/revoke/").status_code == 204
    assert client.get(f"{path}{made['id']}/").json()["state"] == "revoked"
    assert Client().get(link).status_code == 404


@pytest.mark.parametrize("wrong", [{"day": 3}, {"days": 91}, {"groups": ["none"]}, {"email": "x"}])
def test_rest_refuses_what_it_cannot_read(chief: User, wrong: dict[str, Any]) -> None:
    client = APIClient()
    client.force_login(chief)
    refused = client.post("/api/v1/invitations/", wrong, format="json")
    assert (refused.status_code, list(refused.json()["fields"])) == (400, list(wrong))
    client.force_login(builders.person("alice"))
    assert client.post("/api/v1/invitations/", {}, format="json").status_code == 403
    assert client.get("/api/v1/invitations/").status_code == 403


# --- Single sign-on ---------------------------------------------------------------------------


def is_let_in(text: str, *, email: str, verified: bool) -> bool:
    """Whether somebody whom a provider knows may make an account with this link."""
    request = RequestFactory().get("/")
    request.session = {SESSION_KEY: text}  # type: ignore[assignment]
    address = EmailAddress(email=email, verified=verified)
    login = SocialLogin(User(), SocialAccount(provider="oidc", uid="1"), None, [address])
    return VerifiedPeople().is_open_for_signup(request, login)


def test_single_sign_on_makes_the_account_of_the_invited_address_alone(chief: User) -> None:
    _, text = made(chief, email="ada@example.org")
    assert is_let_in(text, email="Ada@Example.org", verified=True)
    assert not is_let_in(text, email="ada@example.org", verified=False)
    assert not is_let_in(text, email="eve@example.org", verified=True)
    assert not is_let_in("", email="ada@example.org", verified=True)


def test_a_link_for_anybody_takes_any_verified_address(chief: User) -> None:
    _, text = made(chief)
    assert is_let_in(text, email="eve@example.org", verified=True)
    assert not is_let_in(text, email="eve@example.org", verified=False)
