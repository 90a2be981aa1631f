"""Join tokens: made by administrators, exchanged once and soon; in pages, REST and commands."""

import io
import json
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from pytest_django import Settings

from lanes import joining, reach
from lanes.joining import Joined
from lanes.models import Host, JoinToken
from lanes.refusals import Refusal
from lanes.version import code_version
from slotserve.hosts import join_tokens
from tests import builders
from tests.conftest import Moment
from wire.host_settings import TOLD_TO_HOSTS
from wire.setting_names import NAMES

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
    for name in NAMES:
        monkeypatch.setenv(f"SLOTSERVE_{name}", "12")
    monkeypatch.setenv("SLOTSERVE_TABLE_KEYS", "0" * 64)
    joined = joining.join(made())
    assert isinstance(joined, Joined)
    assert set(joined.environment) == {*TOLD_TO_HOSTS}
    assert joined.environment["SLOTSERVE_DRAIN_SECONDS"] == "12"


@pytest.mark.parametrize("other", ["", "another machine"])
def test_a_token_is_one_machine_s(other: str) -> None:
    text = made()
    assert code(joining.join(text, "a machine")) == "done"
    again = joining.join(text, other)
    assert code(again) == "bad_join_token"
    assert isinstance(again, Refusal)
    assert "has been used" in again.words


def test_who_says_nothing_of_the_machine_joins_once() -> None:
    text = made()
    assert code(joining.join(text)) == "done"
    assert code(joining.join(text)) == "bad_join_token"


def test_the_same_machine_may_ask_again_until_its_worker_has_looked(moment: Moment) -> None:
    text = made()
    first = joining.join(text, "a machine")
    moment.set(1)
    again = joining.join(text, "a machine")
    assert isinstance(first, Joined)
    assert isinstance(again, Joined)
    assert again.environment == first.environment
    looks(moment)
    moment.set(5)
    assert code(joining.join(text, "a machine")) == "bad_join_token"


def test_nor_after_the_token_has_expired(moment: Moment) -> None:
    text = made()
    joining.join(text, "a machine")
    moment.set(60)
    assert code(joining.join(text, "a machine")) == "bad_join_token"


def looks(moment: Moment) -> None:
    """The worker of the host looks for the first time, a while after it joined."""
    moment.now += timedelta(seconds=1)
    Host.objects.update(seen_at=moment.now)


def test_a_newer_token_takes_the_place_of_an_older_one_for_the_host() -> None:
    first, other, second = made(), make(key="gpu2"), made()
    refused = joining.join(first)
    assert isinstance(refused, Refusal)
    assert "a newer one was made" in refused.words
    assert code(joining.join(second)) == "done"
    assert not isinstance(other, Refusal)
    assert code(joining.join(other[1])) == "done"


def test_of_two_tokens_made_in_the_same_moment_the_newest_counts() -> None:
    first, second = made(), made()
    JoinToken.objects.update(revoked_at=None)  # as if neither had seen the other
    assert code(joining.join(first)) == "bad_join_token"
    assert code(joining.join(second)) == "done"


def test_while_a_machine_joins_no_other_does_as_the_same_host(moment: Moment) -> None:
    joining.join(made(), "a machine")
    assert code(make()) == "host_joining"
    looks(moment)
    assert code(make()) == "host_lives"
    moment.now += timedelta(minutes=5)  # that machine is gone
    assert code(make()) == "done"


def test_a_used_token_that_is_revoked_lets_another_machine_join() -> None:
    joining.join(made(), "a machine")
    used = JoinToken.objects.get()
    assert code(joining.revoke_join_token(used.pk, actor=None)) == "done"
    assert code(joining.join(made(), "another machine")) == "done"


def test_a_revoked_token_lets_nobody_in() -> None:
    text = made()
    token = JoinToken.objects.get()
    assert code(joining.revoke_join_token(token.pk, actor=builders.administrator())) == "done"
    assert code(joining.join(text)) == "bad_join_token"
    assert code(joining.revoke_join_token(token.pk, actor=None)) == "wrong_state"
    assert code(joining.revoke_join_token(token.pk + 1, actor=None)) == "not_found"
    member = builders.person("member")
    assert code(joining.revoke_join_token(token.pk, actor=member)) == "not_administrator"


def at_once(steps: list[Callable[[], object]]) -> list[str]:
    """What each of these answers, each in a thread and a connection of its own."""
    barrier, said = threading.Barrier(len(steps)), []

    def run(step: Callable[[], object]) -> None:
        barrier.wait()
        try:
            said.append(code(step()))
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(step,)) for step in steps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(said)


@pytest.mark.django_db(transaction=True)
def test_of_machines_that_join_in_the_same_moment_one_is_the_host() -> None:
    first, second = made(), made()
    JoinToken.objects.update(revoked_at=None)
    said = at_once(
        [
            lambda: joining.join(first, "one"),
            lambda: joining.join(second, "two"),
            lambda: joining.join(second, "three"),
        ]
    )
    assert said == ["bad_join_token", "bad_join_token", "done"]


@pytest.mark.django_db(transaction=True)
def test_a_token_made_while_another_is_used_lets_nobody_else_in() -> None:
    text, tokens = made(), []

    def make_another() -> object:
        token = make()
        tokens.extend([] if isinstance(token, Refusal) else [token[1]])
        return token

    said = at_once([lambda: joining.join(text, "one"), make_another])
    said += [code(joining.join(token, "two")) for token in tokens]
    assert said.count("done") - len(tokens) == 1


def test_tokens_of_long_ago_are_forgotten(moment: Moment) -> None:
    made()
    moment.now += joining.KEPT + timedelta(days=1)
    make(key="gpu2")
    assert [token.key for token in JoinToken.objects.all()] == ["gpu2"]


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
    ("postgres://slotserve:secret@postgres:5432/slotserve", VALKEY, "names postgres, which is"),
    (DATABASE, "redis://:secret@valkey:6379/0", "names valkey, which is known here alone"),
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


# address of the machine, the database -> whether it may join
NEAR: list[tuple[str, str, str]] = [
    ("127.0.0.1", "postgres://slotserve:secret@127.0.0.1/slotserve", "done"),
    ("::1", "postgres://slotserve:secret@localhost/slotserve", "done"),
    ("10.0.0.5", "postgres://slotserve:secret@127.0.0.1/slotserve", "not_for_others"),
    ("127.0.0.1", "postgres://slotserve:secret@postgres/slotserve", "not_for_others"),
    ("10.0.0.5", "postgres://slotserve:secret@db.example.org/slotserve", "done"),
    ("10.0.0.5", "postgres://slotserve:secret@[fd00::1]/slotserve", "done"),
    ("10.0.0.5", "postgres://slotserve:secret@db/slotserve", "done"),
]


@pytest.mark.parametrize(("address", "database", "answer"), NEAR)
def test_loopback_is_for_this_machine_alone(
    settings: Settings, address: str, database: str, answer: str
) -> None:
    settings.SLOTSERVE_HOSTS_DATABASE_URL = database
    assert code(make(address=address)) == answer


# the database -> what is noted
NOTES = [
    ("postgres://slotserve:secret@db/slotserve", "db may be known here alone"),
    ("postgres://slotserve:secret@db.example.org/slotserve", ""),
    ("postgres://slotserve:secret@localhost/slotserve", ""),
    ("sqlite:///file", ""),
]


@pytest.mark.parametrize(("database", "note"), NOTES)
def test_a_name_that_search_domains_may_know_is_noted(
    settings: Settings, database: str, note: str
) -> None:
    settings.SLOTSERVE_HOSTS_DATABASE_URL = database
    assert reach.may_be_unknown_elsewhere().startswith(note)
    assert bool(reach.may_be_unknown_elsewhere()) == bool(note)


def test_a_token_deleted_while_it_is_asked_for_is_not_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = made()
    monkeypatch.setattr(joining, "_locked", lambda _key: [])
    answer = joining.join(text)
    assert isinstance(answer, Refusal)
    assert answer.words == joining.NOT_KNOWN


def test_of_a_host_that_was_deleted_no_token_is_joining(moment: Moment) -> None:
    joining.join(made(), "a machine")
    assert [view.state for view in join_tokens(moment.now)] == ["joining"]
    Host.objects.all().delete()
    assert [view.state for view in join_tokens(moment.now)] == ["used"]
    assert code(make()) == "done"


def test_all_that_must_be_set_is_said_at_once(settings: Settings) -> None:
    settings.SLOTSERVE_HOSTS_DATABASE_URL = "postgres://slotserve:secret@postgres/slotserve"
    settings.SLOTSERVE_HOSTS_REDIS_URL = "redis://:secret@valkey/0"
    refusal = make()
    assert isinstance(refusal, Refusal)
    assert "Set SLOTSERVE_HOSTS_DATABASE_URL and SLOTSERVE_HOSTS_REDIS_URL to" in refusal.words
    assert "give each host its own address" in refusal.words


OPEN = [
    ("redis://10.0.0.1:6379/0", "10.0.0.1"),
    ("rediss://valkey.example.org/0", "valkey.example.org"),
    ("redis://slotserve:secret@10.0.0.1/0", ""),
    ("redis://:secret@10.0.0.1/0", ""),
    ("redis://127.0.0.1:6379/0", ""),
    ("unix:///tmp/v.sock?db=0", ""),
]


@pytest.mark.parametrize(("url", "place"), OPEN)
def test_a_valkey_that_asks_for_no_password(url: str, place: str) -> None:
    assert reach.open_to_all(url) == place


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


def test_rest_lists_and_revokes_tokens_and_tells_no_text(client: Client) -> None:
    wish = {"key": "gpu1", "address": "10.0.0.5"}
    made = post(client, "/api/v1/hosts/join-tokens/", wish).json()
    listed = client.get("/api/v1/hosts/join-tokens/")
    (shown,) = listed.json()["results"]
    assert (shown["id"], shown["key"], shown["state"]) == (made["id"], "gpu1", "waiting")
    assert (shown["made_by"], shown["used_at"]) == ("administrator", None)
    assert made["token"] not in listed.content.decode()
    place = f"/api/v1/hosts/join-tokens/{made['id']}/"
    assert client.delete(place).status_code == 204
    assert client.delete(place).status_code == 409
    assert client.get("/api/v1/hosts/join-tokens/").json()["results"][0]["state"] == "revoked"


def test_rest_tells_members_of_no_tokens() -> None:
    made()
    member = Client()
    member.force_login(builders.person("member"))
    pk = JoinToken.objects.get().pk
    assert member.get("/api/v1/hosts/join-tokens/").status_code == 403
    assert member.delete(f"/api/v1/hosts/join-tokens/{pk}/").status_code == 403
    assert member.post(f"/administration/hosts/join-tokens/{pk}/revoke/").status_code == 403
    assert JoinToken.objects.get().revoked_at is None


def test_the_page_lists_tokens_and_revokes_them(client: Client, moment: Moment) -> None:
    made()
    page = client.get("/administration/hosts/").content.decode()
    assert "waiting" in page
    assert "made by administrator" in page
    pk = JoinToken.objects.get().pk
    client.post(f"/administration/hosts/join-tokens/{pk}/revoke/")
    page = client.get("/administration/hosts/").content.decode()
    assert "revoked" in page
    assert f"join-tokens/{pk}/revoke/" not in page


def test_a_token_that_a_machine_has_used_is_shown_as_joining_and_as_used(
    client: Client, moment: Moment
) -> None:
    joining.join(made())
    assert "has not looked yet" in client.get("/administration/hosts/").content.decode()
    looks(moment)
    assert "has not looked yet" not in client.get("/administration/hosts/").content.decode()


def test_the_command_lists_and_revokes_tokens(moment: Moment) -> None:
    text = made()
    pk = JoinToken.objects.get().pk

    def said(*words: str) -> str:
        out = io.StringIO()
        call_command("join_tokens", *words, stdout=out)
        return out.getvalue()

    assert said() == (
        f"{pk}: gpu1 at 10.0.0.5, waiting, made by administrator, valid until "
        "2030-01-15 13:00 UTC\n"
    )
    assert "revoked" in said("--revoke", str(pk))
    (shown,) = json.loads(said("--json"))
    assert (shown["id"], shown["state"]) == (pk, "revoked")
    assert text not in said("--json")
    with pytest.raises(CommandError, match="of no use any more"):
        said("--revoke", str(pk))


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


@pytest.mark.parametrize(
    ("url", "address", "is_warned"),
    [
        ("", "10.0.0.5", True),  # the pages were asked for as localhost
        ("", "127.0.0.1", False),
        ("https://gpu.example.org/", "10.0.0.5", False),
    ],
)
def test_the_page_says_when_the_command_s_address_is_of_no_use_elsewhere(
    client: Client, settings: Settings, url: str, address: str, is_warned: bool
) -> None:
    settings.SLOTSERVE_WEB_URL = url
    settings.ALLOWED_HOSTS = ["localhost"]
    said = {"key": "gpu1", "name": "", "address": address}
    page = client.post("/administration/hosts/add/", said, headers={"Host": "localhost"})
    assert (b"No other machine reaches these pages as" in page.content) == is_warned
    assert f"bin/join {url.rstrip('/') or 'http://localhost'} sj_".encode() in page.content


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


def test_a_host_that_was_deleted_is_told_how_to_join_anew(settings: Settings) -> None:
    settings.SLOTSERVE_HOST_KEY = "gone"
    with pytest.raises(CommandError, match=r"was deleted\. Remove .*/environment, join anew"):
        call_command("check_host")
