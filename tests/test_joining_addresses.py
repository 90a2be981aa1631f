"""The address of a machine that joins: its own, no public one, and one page that says so once."""

import io
import json
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from pytest_django import Settings

from lanes import joining
from lanes.models import Host, TokenState
from lanes.refusals import Refusal
from slotserve.joining.preparing import own_addresses
from tests import builders

pytestmark = pytest.mark.django_db
PAGE = "/administration/hosts/add/"
PUBLIC = "8.8.8.8 is a public address"


@pytest.fixture(autouse=True)
def _for_others(settings: Settings) -> None:
    """Database and Valkey that other machines reach."""
    settings.SLOTSERVE_HOSTS_DATABASE_URL = "postgres://slotserve:secret@10.0.0.1/slotserve"
    settings.SLOTSERVE_HOSTS_REDIS_URL = "redis://slotserve:secret@10.0.0.1:6379/0"


@pytest.fixture
def client() -> Client:
    client = Client()
    client.force_login(builders.administrator())
    return client


def token_for(address: str) -> tuple[Any, str]:
    made = joining.create_join_token(actor=None, key="gpu1", name="", address=address)
    assert not isinstance(made, Refusal)
    return made


def test_a_machine_without_the_address_does_not_use_the_token() -> None:
    token, text = token_for("10.0.0.5")
    refused = joining.join(text, "a machine", ["127.0.0.1", "10.0.0.7"])
    assert isinstance(refused, Refusal)
    assert refused.code == "not_its_address"
    assert "10.0.0.5, for which" in refused.words
    assert "(its own: 10.0.0.7)" in refused.words
    token.refresh_from_db()
    assert token.state(token.made_at) == TokenState.WAITING
    assert not Host.objects.exists()
    assert not isinstance(joining.join(text, "another", ["10.0.0.5"]), Refusal)


@pytest.mark.parametrize(
    ("address", "own"), [("127.0.0.1", ["10.0.0.7"]), ("10.0.0.5", []), ("fd00::5", ["fd00::5"])]
)
def test_loopback_and_who_does_not_say_may_join(address: str, own: list[str]) -> None:
    assert not isinstance(joining.join(token_for(address)[1], "a machine", own), Refusal)


def test_this_machine_has_addresses() -> None:
    assert "127.0.0.1" in own_addresses()
    assert not any("%" in address for address in own_addresses())


@pytest.mark.parametrize(("address", "is_warned"), [("8.8.8.8", True), ("10.0.0.5", False)])
def test_a_public_address_is_warned_of_by_page_rest_and_command(
    client: Client, address: str, is_warned: bool
) -> None:
    said = {"key": "gpu1", "name": "", "address": address}
    assert (PUBLIC in client.post(PAGE, said).content.decode()) is is_warned
    answer = client.post(
        "/api/v1/hosts/join-tokens/", json.dumps(said), content_type="application/json"
    )
    assert answer.json()["note"].startswith(PUBLIC) is is_warned
    out, err = io.StringIO(), io.StringIO()
    call_command("create_join_token", "gpu1", address, stdout=out, stderr=err)
    assert (PUBLIC in err.getvalue()) is is_warned
    assert out.getvalue().startswith("sj_")
    assert out.getvalue().count("\n") == 1


def test_that_no_machine_can_join_stands_once(client: Client, settings: Settings) -> None:
    settings.SLOTSERVE_HOSTS_REDIS_URL = "unix:///tmp/v.sock"
    answer = client.post(PAGE, {"key": "gpu1", "name": "", "address": "10.0.0.5"})
    assert answer.status_code == 400
    assert answer.content.count(b"No machine can join") == 1


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"key": "GPU 1"}, "digits, dots"),
        ({"address": "0.0.0.0"}, "no address of one"),
    ],
)
def test_other_errors_show_beside_it(
    client: Client, settings: Settings, said: dict[str, str], words: str
) -> None:
    settings.SLOTSERVE_HOSTS_REDIS_URL = "unix:///tmp/v.sock"
    answer = client.post(PAGE, {"key": "gpu1", "name": "", "address": "10.0.0.5"} | said)
    assert answer.status_code == 400
    assert answer.content.count(b"No machine can join") == 1
    assert words in answer.content.decode()
    assert 'role="alert"' in answer.content.decode()
