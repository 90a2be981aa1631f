"""Notices in browsers: a service on a real socket takes them, and the browser's key opens them."""

import base64
import ipaddress
import json
import os
import stat
import time
from pathlib import Path
from unittest.mock import patch

import http_ece
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from django.test import Client
from py_vapid import Vapid02
from pytest_django import Settings

from lanes import clock, notices
from lanes.notices import News
from lanes.refusals import Refusal
from notices import posting, push
from notices.models import Delivery, Preference, Subscription
from notices.routing import route
from tests import builders
from tests.web_receiver import HANG, Receiver, receiver
from wire.words import said

pytestmark = pytest.mark.django_db
KEY = ec.generate_private_key(ec.SECP256R1())
SECRET = os.urandom(16)


@pytest.fixture(autouse=True)
def _near(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.SLOTSERVE_WEBHOOK_NETWORKS = (ipaddress.ip_network("127.0.0.0/8"),)
    monkeypatch.setattr(posting, "LONGEST_SECONDS", 1.0)


def text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
    )


WISH = {"p256dh": text(point(KEY.public_key())), "auth": text(SECRET), "browser": "Firefox"}


def pushed(
    there: Receiver, sentence: str = "The disk of gpu1 is full.", language: str = ""
) -> None:
    """A notice to the browser of the owner is sent."""
    owner = builders.person()
    Preference.objects.create(person=owner, language=language)
    url = f"http://127.0.0.1:{there.port}/push/abc"
    with patch.object(push, "SCHEMES", ("http",)):
        assert not isinstance(push.subscribe(owner, endpoint=url, **WISH), Refusal)
    notices.tell_people([owner], News("f", "failure", sentence), clock.database_now())
    route(clock.database_now())
    push.send_due()


def read(body: bytes) -> dict[str, str]:
    """What the browser is told."""
    opened = http_ece.decrypt(body, private_key=KEY, auth_secret=SECRET, version="aes128gcm")
    told: dict[str, str] = json.loads(opened)
    return told


def test_the_browser_can_read_it_and_the_service_knows_who_sends() -> None:
    with receiver(201) as there:
        pushed(there)
        headers, body = there.posts[0]
    told = read(body)
    assert told["body"] == "The disk of gpu1 is full."
    assert told["path"] == "/notices/"
    assert headers["content-encoding"] == "aes128gcm"
    assert len(body) < 4096
    assert Delivery.objects.get().state == "sent"
    scheme, _, fields = headers["authorization"].partition(" ")
    assert scheme == "vapid"
    assert Vapid02.verify(f"vapid {fields}")
    assert push.public_key() in fields
    claims = json.loads(push._decoded(fields.split(".")[1]))
    assert claims["aud"] == f"http://127.0.0.1:{there.port}"
    assert claims["sub"].startswith("mailto:")
    assert 0 < claims["exp"] - time.time() <= 24 * 3600  # RFC 8292: no longer
    assert int(headers["ttl"]) > 0  # RFC 8030: services refuse what has none


@pytest.mark.parametrize(
    ("sentence", "language", "told"),
    [
        (said("loading {preset}", preset="qwen"), "de", "qwen wird geladen"),
        ("ä" * 1000, "en", "ä" * 300),  # services take 4096 bytes
    ],
)
def test_it_is_in_the_reader_s_language_and_short(sentence: str, language: str, told: str) -> None:
    with receiver(201) as there:
        pushed(there, sentence, language)
        body = there.posts[0][1]
    assert read(body)["body"] == told
    assert len(body) < 4096


@pytest.mark.parametrize("answer", [404, 410])
def test_a_browser_that_is_gone_is_forgotten(answer: int) -> None:
    with receiver(answer) as there:
        pushed(there)
    assert not Subscription.objects.exists()


@pytest.mark.parametrize("answer", [307, 429, 500, HANG])
def test_a_service_in_trouble_is_asked_again_later(answer: int | str) -> None:
    with receiver(answer) as there:
        pushed(there)
    assert Delivery.objects.get().state == "waiting"
    assert Subscription.objects.exists()


WRONG = [
    {"endpoint": ""},
    {"endpoint": "ftp://push.example.org/"},
    {"endpoint": "http://push.example.org/"},
    {"endpoint": "https://push.example.org/" + "x" * 3000},
    {"p256dh": "x"},
    {"p256dh": text(b"\4" + b"\0" * 64)},
    {"auth": text(b"short")},
    {"auth": "ä" * 22},
]


@pytest.mark.parametrize("wrong", WRONG)
def test_what_no_browser_says_is_refused(client: Client, wrong: dict[str, str]) -> None:
    client.force_login(builders.person())
    wish = {"endpoint": "https://push.example.org/abc", **WISH}
    assert client.post("/preferences/push/", {**wish, **wrong}).status_code == 400
    assert not Subscription.objects.exists()
    assert client.post("/preferences/push/", wish).status_code == 201


def test_a_browser_is_its_person_s_to_remove(client: Client) -> None:
    client.force_login(builders.person())
    wish = {"endpoint": "https://push.example.org/abc", **WISH}
    pk = client.post("/preferences/push/", wish).json()["id"]
    assert "push.example.org" not in Subscription.objects.get().sealed
    assert "Firefox" in client.get("/preferences/").content.decode()
    stranger = Client()
    stranger.force_login(builders.person("member"))
    assert stranger.post(f"/preferences/push/{pk}/end/").status_code == 404
    assert client.post(f"/preferences/push/{pk}/end/").status_code == 302
    assert not Subscription.objects.exists()


def test_no_one_has_more_browsers_than_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(push, "MOST_BROWSERS", 1)
    owner = builders.person()
    for name, code in (("a", None), ("a", None), ("b", "too_many")):
        made = push.subscribe(owner, endpoint=f"https://push.example.org/{name}", **WISH)
        assert (made.code if isinstance(made, Refusal) else None) == code


def test_the_key_is_made_once_and_nobody_else_s_to_read(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    first = push._key_text(path)
    assert push._key_text(path) == first
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_key_that_cannot_be_used_is_no_error_of_a_page_and_loses_no_notice(
    client: Client, settings: Settings, tmp_path: Path
) -> None:
    settings.SLOTSERVE_DATA = tmp_path
    push._vapid.cache_clear()
    (tmp_path / push.KEY_FILE).write_text("no key")
    client.force_login(builders.person())
    page = client.get("/preferences/")
    assert (page.status_code, "cannot push just now" in page.content.decode()) == (200, True)
    with receiver() as there:
        pushed(there)
        assert there.posts == []
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.attempts) == ("waiting", 0)
    (tmp_path / push.KEY_FILE).unlink()
    assert push.public_key()
    push._vapid.cache_clear()


def test_a_key_that_others_may_read_is_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "key.pem"
    push._key_text(path)
    assert "may be read" not in caplog.text
    path.chmod(0o644)
    push._key_text(path)
    assert "may be read" in caplog.text


def test_the_worker_s_script_rules_all_pages(client: Client) -> None:
    answer = client.get("/push-worker.js")
    assert answer["Content-Type"].startswith("text/javascript")
    assert b"showNotification" in answer.content
