"""Join tokens: made by administrators, exchanged once and soon; in pages, REST and commands."""

import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django import Settings

from lanes import joining
from lanes.joining import Joined
from lanes.models import Host, JoinToken
from lanes.refusals import Refusal
from lanes.version import code_version
from tests import builders
from tests.conftest import Moment

pytestmark = pytest.mark.django_db
DATABASE = "postgres://slotserve:secret@10.0.0.1/slotserve"
VALKEY = "redis://slotserve:secret@10.0.0.1:6379/0"


@pytest.fixture(autouse=True)
def _for_others(settings: Settings) -> None:
    """Database and Valkey that other machines reach."""
    settings.SLOTSERVE_HOSTS_DATABASE_URL = DATABASE
    settings.SLOTSERVE_HOSTS_REDIS_URL = VALKEY


def make(**wish: Any) -> tuple[JoinToken, str] | Refusal:
    said: dict[str, Any] = {"key": "gpu1", "name": "GPU one", "address": "10.0.0.5"}
    return joining.create_join_token(actor=builders.administrator(), **{**said, **wish})


def made() -> str:
    token = make()
    assert not isinstance(token, Refusal)
    return token[1]


def code(answer: object) -> str:
    return answer.code if isinstance(answer, Refusal) else "done"


def test_a_machine_that_joins_is_a_host_and_is_told_what_its_worker_needs() -> None:
    joined = joining.join(made())
    assert isinstance(joined, Joined)
    host = Host.objects.get(key="gpu1")
    assert (host.name, host.address) == ("GPU one", "10.0.0.5")
    assert joined.version == code_version()
    told = joined.environment
    assert (told["DATABASE_URL"], told["REDIS_URL"]) == (DATABASE, VALKEY)
    assert told["SLOTSERVE_HOST_KEY"] == "gpu1"
    assert len(told["SLOTSERVE_TABLE_KEYS"]) >= 32
    assert "SLOTSERVE_SECRET_KEY" not in told


def test_what_must_be_the_same_everywhere_goes_along(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLOTSERVE_DRAIN_SECONDS", "12")
    joined = joining.join(made())
    assert isinstance(joined, Joined)
    assert joined.environment["SLOTSERVE_DRAIN_SECONDS"] == "12"


def test_a_token_works_once() -> None:
    text = made()
    assert code(joining.join(text)) == "done"
    again = joining.join(text)
    assert code(again) == "bad_join_token"
    assert isinstance(again, Refusal)
    assert "has been used" in again.words


@pytest.mark.parametrize("change", [{"is_staff": False}, {"is_active": False}])
def test_a_token_ends_with_its_maker_s_rights(change: dict[str, bool]) -> None:
    text = made()
    User.objects.filter(is_staff=True).update(**change)
    assert code(joining.join(text)) == "bad_join_token"
    assert not Host.objects.filter(key="gpu1").exists()


def test_a_token_expires(moment: Moment) -> None:
    text = made()
    moment.set(60)
    assert code(joining.join(text)) == "bad_join_token"
    assert not Host.objects.exists()


@pytest.mark.parametrize("text", ["", "sj_", "sj_wrong", "ss_token", "ü" * 50])
def test_what_is_no_token_lets_nobody_in(text: str) -> None:
    made()
    assert code(joining.join(text)) == "bad_join_token"
    assert not Host.objects.exists()


def test_the_database_does_not_know_the_text() -> None:
    text = made()
    assert text.startswith("sj_")
    assert text.removeprefix("sj_") not in str(JoinToken.objects.values().get())


def test_a_host_that_is_there_is_not_joined_by_another_machine(moment: Moment) -> None:
    text = made()
    host = builders.host("gpu1")
    Host.objects.filter(pk=host.pk).update(seen_at=moment.now)
    assert code(joining.join(text)) == "host_lives"
    assert code(make()) == "host_lives"
    moment.set(1)  # it has been silent for long enough
    assert code(joining.join(text)) == "done"


WISHES: list[tuple[dict[str, Any], str]] = [
    ({}, "done"),
    ({"name": ""}, "done"),
    ({"key": "GPU 1"}, "invalid"),
    ({"key": ""}, "invalid"),
    ({"address": "0.0.0.0"}, "invalid"),
    ({"address": "gpu1.local"}, "invalid"),
    ({"minutes": 0}, "invalid"),
    ({"minutes": 1441}, "invalid"),
]


@pytest.mark.parametrize(("wish", "answer"), WISHES)
def test_what_a_token_may_be_made_for(wish: dict[str, Any], answer: str) -> None:
    assert code(make(**wish)) == answer


def test_members_make_no_join_tokens() -> None:
    member = builders.person("member")
    refusal = joining.create_join_token(actor=member, key="gpu1", name="", address="10.0.0.5")
    assert code(refusal) == "not_administrator"


PLACES: list[tuple[str, str, str]] = [
    ("sqlite:///var/slotserve.sqlite3", VALKEY, "a file or a socket"),
    ("postgres://slotserve@10.0.0.1/slotserve", VALKEY, "no password"),
    ("postgres://slotserve:secret@127.0.0.1/slotserve", VALKEY, "loopback"),
    ("postgres://slotserve:secret@localhost/slotserve", VALKEY, "loopback"),
    ("postgres://slotserve:secret@/slotserve?host=/run", VALKEY, "loopback"),
    (DATABASE, "unix:///tmp/v.sock?db=0", "a file or a socket"),
    (DATABASE, "redis://10.0.0.1:6379/0", "no password"),
    (DATABASE, "redis://:secret@127.0.0.1:6379/0", "loopback"),
]


@pytest.mark.parametrize(("database", "valkey", "why"), PLACES)
def test_nobody_joins_what_other_machines_cannot_reach_or_must_not(
    settings: Settings, database: str, valkey: str, why: str
) -> None:
    text = made()
    settings.SLOTSERVE_HOSTS_DATABASE_URL = database
    settings.SLOTSERVE_HOSTS_REDIS_URL = valkey
    for refusal in (make(), joining.join(text)):
        assert isinstance(refusal, Refusal)
        assert refusal.code == "not_for_others"
        assert why in refusal.words
        assert "secret" not in refusal.words


def post(client: Client, path: str, said: object, **extra: Any) -> Any:
    return client.post(path, json.dumps(said), content_type="application/json", **extra)


@pytest.fixture
def client() -> Client:
    client = Client()
    client.force_login(builders.administrator())
    return client


def test_rest_makes_a_token_and_a_machine_exchanges_it(client: Client) -> None:
    wish = {"key": "gpu1", "address": "10.0.0.5"}
    answer = post(client, "/api/v1/hosts/join-tokens/", wish)
    assert answer.status_code == 201
    token = answer.json()["token"]
    joined = post(Client(), "/api/v1/hosts/join/", {"token": token})
    assert joined.status_code == 200
    assert joined.json()["host"]["key"] == "gpu1"
    assert joined.json()["environment"]["REDIS_URL"] == VALKEY
    assert joined.headers["Cache-Control"] == "no-store"
    again = post(Client(), "/api/v1/hosts/join/", {"token": token})
    assert (again.status_code, again.json()["code"]) == (403, "bad_join_token")


@pytest.mark.parametrize("said", [{}, {"token": None}, {"token": ["x"]}, {"token": "x" * 999}, []])
def test_rest_refuses_what_is_no_token_with_a_sentence(said: object) -> None:
    answer = post(Client(), "/api/v1/hosts/join/", said)
    assert answer.status_code == 400
    assert answer.json()["detail"]


def test_rest_lets_members_make_no_tokens() -> None:
    member = Client()
    member.force_login(builders.person("member"))
    wish = {"key": "gpu1", "address": "10.0.0.5"}
    assert post(member, "/api/v1/hosts/join-tokens/", wish).status_code == 403
    assert not JoinToken.objects.exists()


def test_with_tls_before_the_pages_nobody_joins_past_it(settings: Settings) -> None:
    text = made()
    settings.SLOTSERVE_HTTPS = True
    answer = post(Client(), "/api/v1/hosts/join/", {"token": text})
    assert (answer.status_code, answer.json()["code"]) == (403, "needs_tls")
    answer = post(Client(), "/api/v1/hosts/join/", {"token": text}, secure=True)
    assert answer.status_code == 200


def test_the_page_shows_the_command_once(client: Client) -> None:
    page = "/administration/hosts/add/"
    answer = client.post(page, {"key": "gpu1", "name": "", "address": "10.0.0.5"})
    assert b"bin/join http://testserver sj_" in answer.content
    assert b"sj_" not in client.get(page).content
    answer = client.post(page, {"key": "gpu1", "name": "", "address": "x"})
    assert answer.status_code == 400
    assert b"is no IP address" in answer.content


def test_the_page_says_before_why_nobody_can_join(client: Client, settings: Settings) -> None:
    settings.SLOTSERVE_HOSTS_REDIS_URL = "unix:///tmp/v.sock"
    assert b"No machine can join: REDIS_URL" in client.get("/administration/hosts/add/").content


def test_the_command_prints_the_token_alone(moment: Moment) -> None:
    out = io.StringIO()
    call_command("create_join_token", "gpu1", "10.0.0.5", "--minutes", "5", stdout=out)
    assert code(joining.join(out.getvalue().strip())) == "done"
    assert JoinToken.objects.get().expires_at == moment.now + timedelta(minutes=5)
    with pytest.raises(CommandError, match="no address of one machine"):
        call_command("create_join_token", "gpu2", "0.0.0.0")
