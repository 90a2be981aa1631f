"""API tokens: made once, found by digest, limited, expired, revoked; the create_token command."""

import logging
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.core.management import CommandError, call_command

from gateway import tokens
from gateway.models import ApiToken
from lanes import clock, ticks
from lanes.refusals import Refusal
from tests import builders

pytestmark = pytest.mark.django_db


def make(owner: User | None = None, **fields: Any) -> tuple[ApiToken, str]:
    made = ask(owner, **fields)
    assert not isinstance(made, Refusal)
    return made


def ask(owner: User | None = None, **fields: Any) -> tuple[ApiToken, str] | Refusal:
    values: dict[str, Any] = {
        "name": "laptop",
        "scopes": ["inference"],
        "lanes": [],
        "expires_at": None,
    }
    return tokens.create_token(owner=owner or builders.person(), **{**values, **fields})


def test_a_token_is_found_by_its_text_and_kept_only_as_a_digest() -> None:
    token, text = make()
    assert text.startswith("ss_")
    assert len(text) >= 46  # 256 bits in base64
    assert tokens.find(text, clock.database_now()) == token
    assert text not in str(vars(ApiToken.objects.get()))
    assert token.prefix == text[:10]


@pytest.mark.parametrize("text", ["", "ss_", "ss_wrong", "\ud800", "ss_\0", "x" * 100_000])
def test_a_text_that_is_no_token_finds_nothing(text: str) -> None:
    make()
    assert tokens.find(text, clock.database_now()) is None


def test_a_token_of_scope_admin_is_for_every_lane() -> None:
    refusal = ask(scopes=["admin"], lanes=[builders.lane()])
    assert isinstance(refusal, Refusal)
    assert refusal.code == "unknown_scope"
    assert not ApiToken.objects.exists()
    assert make(scopes=["admin"])[0].lanes.count() == 0


def test_a_revoked_token_is_not_found() -> None:
    token, text = make()
    assert tokens.revoke(token, actor=token.owner) is None
    assert tokens.find(text, clock.database_now()) is None
    assert token.revoked_at is not None


def test_revoking_twice_keeps_the_first_time() -> None:
    token, _ = make()
    tokens.revoke(token, actor=token.owner)
    first = token.revoked_at
    assert tokens.revoke(token, actor=token.owner) is None
    assert token.revoked_at == first


def test_an_administrator_may_revoke_a_members_token_and_a_stranger_may_not() -> None:
    token, text = make()
    refusal = tokens.revoke(token, actor=builders.person("stranger"))
    assert refusal is not None
    assert refusal.code == "not_yours"
    assert tokens.find(text, clock.database_now()) == token
    assert tokens.revoke(token, actor=builders.administrator()) is None


def test_a_token_ends_at_its_expiry_and_not_before() -> None:
    now = clock.database_now()
    token, text = make(expires_at=now + timedelta(hours=1))
    assert tokens.find(text, now + timedelta(minutes=59)) == token
    assert tokens.find(text, now + timedelta(hours=1)) is None


def test_a_token_of_a_member_who_may_not_log_in_is_not_found() -> None:
    token, text = make()
    User.objects.filter(pk=token.owner_id).update(is_active=False)
    assert tokens.find(text, clock.database_now()) is None


def test_a_token_for_one_lane_opens_nothing_when_that_lane_is_deleted() -> None:
    lane = builders.lane()
    _, text = make(lanes=[lane])
    lane.delete()
    assert tokens.find(text, clock.database_now()) is None


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"name": "  "}, "bad_name"),
        ({"name": "x" * 101}, "bad_name"),
        ({"scopes": []}, "unknown_scope"),
        ({"scopes": ["inference", "root"]}, "unknown_scope"),
        ({"expires_at": builders.NOON.replace(tzinfo=None)}, "naive_time"),
        ({"expires_at": builders.NOON - timedelta(days=9999)}, "in_the_past"),
    ],
)
def test_a_wish_that_cannot_be_met_is_refused(fields: dict[str, Any], code: str) -> None:
    refusal = ask(**fields)
    assert isinstance(refusal, Refusal)
    assert refusal.code == code
    assert not ApiToken.objects.exists()


def test_a_member_who_may_not_log_in_gets_no_token() -> None:
    refusal = ask(builders.person("gone", is_active=False))
    assert isinstance(refusal, Refusal)
    assert refusal.code == "owner_inactive"


def test_last_use_is_noted_at_most_once_a_minute() -> None:
    token, _ = make()
    now = clock.database_now()
    for seconds in (0, 59, 60):
        tokens.touch(ApiToken.objects.get(), now + timedelta(seconds=seconds))
        token.refresh_from_db()
        expected = now + timedelta(seconds=60 if seconds == 60 else 0)
        assert token.last_used_at == expected


def test_last_use_never_moves_back() -> None:
    token, _ = make()
    now = clock.database_now()
    tokens.note_use({token.pk: now})
    tokens.note_use({token.pk: now - timedelta(hours=1)})
    token.refresh_from_db()
    assert token.last_used_at == now


def test_a_member_sees_own_tokens_an_administrator_all_and_a_stranger_none() -> None:
    token, _ = make()
    assert ApiToken.objects.visible_to(token.owner).get() == token
    assert ApiToken.objects.visible_to(builders.administrator()).get() == token
    assert not ApiToken.objects.visible_to(builders.person("stranger")).exists()
    assert not ApiToken.objects.visible_to(AnonymousUser()).exists()


def test_making_and_revoking_ask_for_a_plan_and_log_no_secret(
    django_capture_on_commit_callbacks: object,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    asked: list[None] = []
    monkeypatch.setattr(ticks, "request_plan", lambda: asked.append(None))
    with caplog.at_level(logging.INFO), django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
        token, text = make()
        tokens.revoke(token, actor=token.owner)
    assert len(asked) == 2
    assert len(caplog.messages) == 2
    assert text not in caplog.text


# --- create_token -----------------------------------------------------------------------------
def command(*arguments: str) -> str:
    out = StringIO()
    call_command("create_token", *arguments, stdout=out, skip_checks=True)
    return out.getvalue()


def test_the_command_prints_the_token_alone() -> None:
    builders.person("ann")
    text = command("ann")
    token = tokens.find(text.removesuffix("\n"), clock.database_now())
    assert token is not None
    assert token.owner.username == "ann"
    assert token.scopes == ["bookings", "inference", "read"]
    assert token.expires_at is None


def test_the_command_makes_the_user_when_asked_to() -> None:
    lane = builders.lane("fast")
    text = command("bob", "--create-user", "--scope", "read", "--lane", "fast", "--days", "2")
    token = tokens.find(text.strip(), clock.database_now())
    assert token is not None
    assert not token.owner.has_usable_password()
    assert list(token.lanes.all()) == [lane]
    assert token.scopes == ["read"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nobody"], "no user 'nobody'"),
        (["a b", "--create-user"], "cannot be a username"),
        (["ann", "--lane", "nowhere"], "no lane nowhere"),
        (["ann", "--scope", "root"], "root is no scope"),
        (["ann", "--days", "0"], "--days takes"),
        (["cy", "--create-user", "--scope", "root"], "root is no scope"),
    ],
)
def test_the_command_says_what_is_wrong_and_makes_nothing(arguments: list[str], words: str) -> None:
    builders.person("ann")
    with pytest.raises(CommandError, match=words):
        command(*arguments)
    assert not ApiToken.objects.exists()
    assert list(User.objects.values_list("username", flat=True)) == ["ann"]
