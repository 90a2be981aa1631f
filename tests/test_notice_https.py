"""Webhooks and pushes over real TLS: to whom we trust, and to nobody else."""

import ipaddress
import socket
import ssl
from collections.abc import Callable
from datetime import timedelta

import pytest
from pytest_django import Settings
from standardwebhooks import Webhook

from lanes import clock
from lanes.refusals import Refusal
from notices import endpoint_services, posting, webhooks
from notices.endpoints import announce
from notices.events import Channel, Event
from notices.models import Delivery
from notices.outbox import send_all, waiting
from tests import builders
from tests.certificates import Authority
from tests.web_receiver import HANG, receiver

pytestmark = pytest.mark.django_db
HOST = "localhost"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("stranger"))


@pytest.fixture(autouse=True)
def _near(authority: Authority, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Receivers on this machine are allowed; the authority is the one that this machine trusts."""
    settings.SLOTSERVE_WEBHOOK_NETWORKS = (
        ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128")
    )  # fmt: skip
    monkeypatch.setattr(posting, "LONGEST_SECONDS", 1.0)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    monkeypatch.setenv("SSL_CERT_DIR", "/nonexistent")
    found = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda _host, *a, **k: found("127.0.0.1", *a, **k))


def told(url: str) -> tuple[str, Delivery]:
    """A webhook there, and what became of telling it."""
    made = endpoint_services.add(
        name="ours", kind="webhook", url=url, events=["confirmed"],
        actor=builders.administrator(), now=clock.database_now(),
    )  # fmt: skip
    assert not isinstance(made, Refusal)
    announce(Event.CONFIRMED, "confirmed:1:0", {"sentence": "It is so."}, clock.database_now())
    send_all(waiting(Channel.WEBHOOK, clock.database_now()), webhooks.send)
    return made[1], Delivery.objects.get()


def test_who_has_a_certificate_that_is_trusted_is_told(authority: Authority) -> None:
    with receiver(tls=authority.server(HOST)) as there:
        secret, delivery = told(f"https://{HOST}:{there.port}/hook")
        headers, body = there.posts[0]
    assert (delivery.state, delivery.status) == ("sent", 200)
    assert Webhook(secret).verify(body, headers)["type"] == "confirmed"


def of_another_authority(_: Authority, stranger: Authority) -> ssl.SSLContext:
    return stranger.server(HOST)


def of_another_name(authority: Authority, _: Authority) -> ssl.SSLContext:
    return authority.server("other.example.org")


def of_another_address(authority: Authority, _: Authority) -> ssl.SSLContext:
    return authority.server("10.1.2.3")


def that_has_ended(authority: Authority, _: Authority) -> ssl.SSLContext:
    return authority.server(HOST, lasts=-timedelta(days=1))


Wrong = Callable[[Authority, Authority], ssl.SSLContext]
WRONG: list[tuple[Wrong, str]] = [
    (of_another_authority, "unable to get local issuer certificate"),
    (of_another_name, "Hostname mismatch"),
    (of_another_address, "Hostname mismatch"),
    (that_has_ended, "expired"),
]


@pytest.mark.parametrize(("wrong", "why"), WRONG)
def test_who_cannot_prove_to_be_meant_is_told_nothing_and_it_is_said_why(
    authority: Authority, stranger: Authority, wrong: Wrong, why: str
) -> None:
    with receiver(tls=wrong(authority, stranger)) as there:
        _, delivery = told(f"https://{HOST}:{there.port}/hook")
        assert there.posts == []
    assert delivery.state == "waiting"
    assert why in delivery.reason


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_nobody_is_sent_on(authority: Authority, status: int) -> None:
    with (
        receiver() as elsewhere,
        receiver(status, tls=authority.server(HOST), Location=elsewhere.url) as there,
    ):
        _, delivery = told(f"https://{HOST}:{there.port}/hook")
        assert (len(there.posts), elsewhere.posts) == (1, [])
    assert (delivery.state, delivery.status) == ("waiting", status)
    assert "redirects are not followed" in delivery.reason


def test_who_speaks_no_tls_where_it_is_named_is_told_nothing() -> None:
    with receiver() as there:
        _, delivery = told(f"https://{HOST}:{there.port}/hook")
        assert there.posts == []
    assert delivery.state == "waiting"


def test_who_hangs_after_the_handshake_holds_nobody_up(authority: Authority) -> None:
    with receiver(HANG, tls=authority.server(HOST)) as there:
        _, delivery = told(f"https://{HOST}:{there.port}/hook")
        assert len(there.posts) == 1
    assert delivery.state == "waiting"


def test_an_address_is_held_to_what_its_certificate_says(authority: Authority) -> None:
    with receiver(tls=authority.server("127.0.0.1")) as there:
        _, delivery = told(f"https://127.0.0.1:{there.port}/hook")
        assert len(there.posts) == 1
    assert delivery.state == "sent"
