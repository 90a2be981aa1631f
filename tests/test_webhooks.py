"""Webhooks and chat rooms: signed, to public addresses alone, whatever their receivers do."""

import ipaddress
import json
import socket
import subprocess
import sys
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings
from standardwebhooks import Webhook

from bookings import services
from lanes import clock
from lanes.models import AuditEntry, Notice
from lanes.refusals import Refusal
from notices import chat, endpoint_services, posting, webhooks
from notices.endpoints import announce
from notices.events import Event
from notices.models import Delivery, Endpoint
from notices.outbox import send_all, waiting
from notices.routing import route
from notices.telling import tell_bookings
from tests import builders
from tests.at_once import at_once
from tests.web_receiver import DRIP, DROP, HANG, HUGE, NONSENSE, Receiver, receiver

pytestmark = pytest.mark.django_db
LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"),)


@pytest.fixture(autouse=True)
def _near(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Receivers on this machine are allowed, and waited for a moment."""
    settings.SLOTSERVE_WEBHOOK_NETWORKS = LOOPBACK
    monkeypatch.setattr(posting, "LONGEST_SECONDS", 1.0)


def added(url: str, kind: str = "webhook", events: tuple[str, ...] = ("confirmed",)) -> Endpoint:
    made = endpoint_services.add(
        name="ours", kind=kind, url=url, events=events, actor=builders.administrator(),
        now=clock.database_now(),
    )  # fmt: skip
    assert not isinstance(made, Refusal)
    return made[0]


def secret_of(url: str) -> str:
    made = endpoint_services.add(
        name="ours", kind="webhook", url=url, events=["confirmed"],
        actor=builders.administrator(), now=clock.database_now(),
    )  # fmt: skip
    assert not isinstance(made, Refusal)
    return made[1]


def say(key: str = "confirmed:1:0") -> None:
    announce(Event.CONFIRMED, key, {"sentence": "It is so."}, clock.database_now())


def send() -> int:
    return send_all(waiting("webhook", clock.database_now()), webhooks.send)  # type: ignore[arg-type]


def test_a_receiver_can_verify_what_it_is_sent() -> None:
    with receiver() as there:
        secret = secret_of(there.url)
        builders.booking(start=clock.database_now() + timedelta(hours=1))
        tell_bookings(clock.database_now())
        assert send() == 1
        headers, body = there.posts[0]
        told = Webhook(secret).verify(body, headers)
        with pytest.raises(Exception, match="signature"):
            Webhook(secret).verify(body + b" ", headers)
    assert told["type"] == "confirmed"
    assert told["data"]["booking"]["sequence"] == 0
    assert there.paths == ["/hook?x=1"]
    assert Delivery.objects.get().status == 200


def test_what_hosts_and_planner_tell_goes_there_once_for_all_people() -> None:
    endpoint = added("https://example.org/", events=("failure",))
    for name in ("owner", "member"):
        Notice.objects.create(
            recipient=builders.person(name), key="failure:1", kind="failure",
            sentence="It fails.", at=clock.database_now(),
        )  # fmt: skip
    route(clock.database_now())
    assert Delivery.objects.filter(endpoint=endpoint).count() == 1


def test_one_that_is_off_or_wants_other_events_is_told_nothing() -> None:
    endpoint = added("https://example.org/", events=("warm",))
    say()
    endpoint_services.change(
        endpoint, actor=builders.administrator(), events=["confirmed"], is_on=False
    )
    say()
    assert not Delivery.objects.exists()


def test_what_waits_for_one_that_is_switched_off_is_not_sent_but_a_test_is() -> None:
    boss = builders.administrator()
    with receiver() as there:
        endpoint = added(there.url)
        say()
        endpoint_services.change(endpoint, actor=boss, is_on=False)
        assert send() == len(there.posts) == 0
        delivery = Delivery.objects.get()
        assert (delivery.state, delivery.reason) == ("moot", "switched off")
        endpoint_services.send_test(endpoint, actor=boss, now=clock.database_now())
        assert send() == len(there.posts) == 1


def test_one_that_says_it_is_gone_is_posted_to_no_more() -> None:
    with receiver(410) as there:
        added(there.url)
        say("confirmed:1:0")
        say("confirmed:2:0")
        send()
        assert len(there.posts) == 1
    assert sorted(Delivery.objects.values_list("state", flat=True)) == ["failed", "moot"]
    entry = AuditEntry.objects.latest("pk")
    assert (entry.kind, entry.actor_name, entry.changes) == (
        "endpoint.changed",
        "",
        [["is_on", True, False]],
    )


def test_who_changes_one_keeps_what_became_of_it_meanwhile() -> None:
    boss = builders.administrator()
    endpoint = added("https://example.org/")
    seen = Endpoint.objects.get(pk=endpoint.pk)
    endpoint_services.change(endpoint, actor=boss, is_on=False)
    answer = endpoint_services.change(seen, actor=boss, name="renamed")
    assert isinstance(answer, Endpoint)
    assert (answer.name, answer.is_on) == ("renamed", False)
    endpoint_services.remove(endpoint, actor=boss)
    gone = endpoint_services.change(seen, actor=boss, name="again")
    assert isinstance(gone, Refusal)
    assert gone.code == "not_found"


def test_what_was_said_with_a_decision_is_for_its_owner_alone() -> None:
    added("https://example.org/", events=("approved",))
    booking = builders.booking(state="pending", start=clock.database_now() + timedelta(hours=1))
    tell_bookings(clock.database_now())
    services.approve(booking, actor=builders.administrator(), comment="As you are ill.")
    tell_bookings(clock.database_now())
    assert "As you are ill." in Notice.objects.get(kind="approved").advice
    assert "ill" not in json.dumps(Delivery.objects.get(endpoint__isnull=False).payload)


# what the receiver does -> the delivery's state and status
ANSWERS: list[tuple[int | str, str, int | None]] = [
    (200, "sent", 200),
    (204, "sent", 204),
    (302, "waiting", 302),
    (400, "waiting", 400),
    (410, "failed", 410),
    (500, "waiting", 500),
    (HANG, "waiting", None),
    (DRIP, "waiting", None),
    (DROP, "waiting", None),
    (NONSENSE, "waiting", None),
    (HUGE, "sent", 200),
]


@pytest.mark.parametrize(("answer", "state", "status"), ANSWERS)
def test_whatever_a_receiver_does_is_noted_and_holds_nobody_up(
    answer: int | str, state: str, status: int | None
) -> None:
    with receiver(answer, Location="http://127.0.0.1:1/") as there:
        endpoint = added(there.url)
        say()
        send()
        assert len(there.posts) == 1
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.status) == (state, status)
    endpoint.refresh_from_db()
    assert endpoint.is_on == (answer != 410)


def test_it_is_tried_again_under_the_same_id_and_given_up_in_the_end() -> None:
    with receiver(503) as there:
        added(there.url)
        say()
        waits = []
        while Delivery.objects.get().send_from is not None:
            Delivery.objects.update(send_from=clock.database_now())
            send()
            delivery = Delivery.objects.get()
            wait = delivery.send_from and delivery.send_from - clock.database_now()
            waits.append(round(wait.total_seconds() / 60) if wait else None)
        assert len({headers["webhook-id"] for headers, _ in there.posts}) == 1
    assert waits == [1, 5, 30, 120, 480, None]
    assert delivery.state == "failed"


PRIVATE = (
    *("http://127.0.0.1/", "http://localhost/", "http://10.1.2.3/", "http://169.254.169.254/"),
    *("http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://[fd00::1]/", "http://0.0.0.0/"),
    *("http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/", "http://192.168.1.1:8080/"),
    *("http://224.0.0.1/", "http://2130706433/", "http://0x7f.1/", "http://100.64.0.1/"),
    *("http://[::7f00:1]/", "http://[64:ff9b:1::7f00:1]/", "http://[ff02::1]/", "http://[::]/"),
    *("http://[2001:0:7f00:1::]/", "http://[fec0::1]/", "http://255.255.255.255/", "http://0/"),
    *("http://LOCALHOST/", "http://0177.0.0.1/", "http://192.0.2.1/"),
    *("http://198.18.0.1/", "http://240.0.0.1/", "http://[fe80::1]/", "http://172.31.0.1/"),
)


@pytest.mark.parametrize("url", PRIVATE)
def test_private_addresses_are_not_connected_to(settings: Settings, url: str) -> None:
    settings.SLOTSERVE_WEBHOOK_NETWORKS = ()
    with pytest.raises(posting.PostError, match="private address"):
        posting.post(url, b"", {})


def test_one_private_address_among_several_refuses_the_name(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SLOTSERVE_WEBHOOK_NETWORKS = ()
    found = [(0, 0, 0, "", (each, 80)) for each in ("93.184.216.34", "127.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_a, **_k: found)
    with pytest.raises(posting.PostError, match=r"127\.0\.0\.1 is a private"):
        posting.post("http://rebound.example/", b"", {})


def test_the_address_that_was_checked_is_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    with receiver() as there:
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", there.port))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_a, **_k: found)
        answer = posting.post(f"http://name.example:{there.port}/", b"x", {})
        assert answer.status == 200
        assert there.posts[0][0]["host"] == f"name.example:{there.port}"


def test_reasons_are_ones_that_a_person_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(posting.PostError, match=r"^Connection refused$"):
        posting.post("http://127.0.0.1:1/", b"", {})
    with receiver(NONSENSE) as there, pytest.raises(posting.PostError, match="not answer as HTTP"):
        posting.post(there.url, b"", {})

    def find(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", find)
    with pytest.raises(posting.PostError, match=r"^Name or service not known$"):
        posting.post("http://nobody.invalid/", b"", {})


WRONG = (
    *("", "example.org", "ftp://example.org/", "file:///etc/passwd", "http://", "https://:443/"),
    *("http://a:b@example.org/", "http://example.org:99999/", "http://example.org/\r\nX: y"),
    *("http://exämple.org/", "http://[::1/", "http://example.org/ x"),
)


@pytest.mark.parametrize("url", WRONG)
def test_what_is_no_address_is_refused_when_it_is_given(url: str) -> None:
    made = endpoint_services.add(
        name="x", kind="webhook", url=url, events=["warm"], actor=builders.administrator(),
        now=clock.database_now(),
    )  # fmt: skip
    assert isinstance(made, Refusal)
    assert made.code == "bad_address"


@pytest.mark.parametrize(
    ("url", "is_usable"),
    [
        ("ntfy://127.0.0.1:1/topic", True),
        ("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/", True),
        ("json://127.0.0.1/", False),
        ("syslog://", False),
        ("dbus://", False),
        ("file:///etc/passwd", False),
        ("https://example.org/", False),
        ("slack://", False),
    ],
)
def test_chat_rooms_are_of_services_that_are_known(url: str, is_usable: bool) -> None:
    assert chat.is_usable(url) is is_usable


def tell_room(there: Receiver, ask: str = "") -> Delivery:
    added(f"ntfy://127.0.0.1:{there.port}/topic{ask}", kind="chat")
    announce(Event.CONFIRMED, "test:1", {"sentence": "It is so."}, clock.database_now())
    send_all(waiting("chat", clock.database_now()), chat.send)  # type: ignore[arg-type]
    return Delivery.objects.get()


def test_a_chat_room_is_told_in_a_sentence() -> None:
    with receiver() as there:
        assert tell_room(there).state == "sent"
        assert "It is so." in there.posts[0][1].decode()


@pytest.mark.parametrize("ask", ["", "?redirect=yes"])
def test_a_room_is_held_to_what_a_webhook_may_reach(settings: Settings, ask: str) -> None:
    with receiver() as there:
        settings.SLOTSERVE_WEBHOOK_NETWORKS = ()
        told = tell_room(there, ask)
        assert (told.state, there.posts) == ("waiting", [])
        assert "127.0.0.1 is a private address" in told.reason


@pytest.mark.parametrize("ask", ["", "?redirect=yes"])
def test_a_room_that_leads_elsewhere_is_not_followed(ask: str) -> None:
    with receiver() as inside, receiver(307, location=inside.url) as there:
        assert tell_room(there, ask).state == "waiting"
        assert (len(there.posts), inside.posts) == (1, [])


def _reach(kind: int, to: Any) -> None:
    with posting.guarded(), socket.socket(kind) as one, pytest.raises(PermissionError):
        one.connect(to)


def test_names_and_files_are_no_addresses_of_rooms() -> None:
    for kind, to in ((socket.AF_INET, ("127.1", 9)), (socket.AF_UNIX, "/run/x")):
        with pytest.raises(posting.PostError, match="private"):
            _reach(kind, to)
    with socket.socket() as one, pytest.raises(OSError, match="refused"):
        one.connect(("127.0.0.1", 9))  # nobody else is held to it


HOOKED = """
import socket
from django.conf import settings
settings.configure(SLOTSERVE_WEBHOOK_NETWORKS=())
from notices import posting
for is_guarded in (True, False):
    try:
        with posting.guarded() if is_guarded else socket.socket(), socket.socket() as one:
            one.connect(("127.0.0.1", 9))
    except OSError as error:
        print(type(error).__name__)
"""


def test_python_itself_asks_before_a_connection() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HOOKED], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["PermissionError", "ConnectionRefusedError"]


def test_a_room_that_refuses_is_told_later_and_one_that_hangs_perhaps_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with receiver(500) as there:
        assert tell_room(there).state == "waiting"
    Endpoint.objects.all().delete()
    monkeypatch.setattr(chat, "LONGEST_SECONDS", 0.3)
    with receiver(HANG) as there:
        assert tell_room(there).state == "in_doubt"


@pytest.mark.django_db(transaction=True)
def test_two_workers_at_once_send_each_once() -> None:
    with receiver() as there:
        added(there.url)
        for number in range(6):
            say(f"confirmed:{number}:0")
        at_once(send, send)
        ids = [headers["webhook-id"] for headers, _ in there.posts]
    assert len(ids) == len(set(ids)) == 6


# ---- administrators' page and REST ----------------------------------------------------------


@pytest.fixture
def administrator(client: Client) -> User:
    person = builders.administrator()
    client.force_login(person)
    return person


WISH = {"name": "ours", "kind": "webhook", "url": "https://example.org/secret", "events": ["warm"]}


@pytest.mark.usefixtures("administrator")
def test_its_secret_is_shown_once_and_its_address_never_whole(client: Client) -> None:
    page = client.post("/administration/webhooks/", WISH).content.decode()
    assert "whsec_" in page
    endpoint = Endpoint.objects.get()
    for path in ("/administration/webhooks/", f"/administration/webhooks/{endpoint.pk}/"):
        page = client.get(path).content.decode()
        assert "whsec_" not in page
        assert "example.org/secret" not in page
        assert "https://example.org/…" in page
    assert "secret" not in endpoint.sealed_url


@pytest.mark.usefixtures("administrator")
def test_a_test_is_sent_and_sent_again(client: Client) -> None:
    with receiver() as there:
        endpoint = added(there.url)
        client.post(f"/administration/webhooks/{endpoint.pk}/test/")
        delivery = Delivery.objects.get()
        assert send() == 1
        client.post(f"/administration/deliveries/{delivery.pk}/replay/")
        assert send() == 1
        assert len({headers["webhook-id"] for headers, _ in there.posts}) == 1
    page = client.get(f"/administration/webhooks/{endpoint.pk}/").content.decode()
    assert "Sent 200" in page
    client.post(f"/administration/webhooks/{endpoint.pk}/delete/")
    assert not Endpoint.objects.exists()


@pytest.mark.usefixtures("administrator")
def test_older_deliveries_are_on_further_pages(client: Client) -> None:
    endpoint, now = added("https://example.org/"), clock.database_now()
    for number in range(51):
        announce(Event.CONFIRMED, f"confirmed:{number}:0", {}, now)
    first = Delivery.objects.order_by("pk")[0]
    Delivery.objects.filter(pk=first.pk).update(reason="the first of all")
    address = f"/administration/webhooks/{endpoint.pk}/"
    newest, older = (client.get(f"{address}?page={n}").content.decode() for n in (1, 2))
    assert ('href="?page=2"' in newest, "the first of all" in newest) == (True, False)
    assert "the first of all" in older


@pytest.mark.usefixtures("administrator")
@pytest.mark.parametrize("wrong", [{"name": ""}, {"url": "x"}, {"events": []}, {"kind": "x"}])
def test_a_form_that_cannot_be_meant_adds_nothing(client: Client, wrong: dict[str, Any]) -> None:
    assert client.post("/administration/webhooks/", {**WISH, **wrong}).status_code == 400
    assert not Endpoint.objects.exists()


def test_members_see_none_of_it(client: Client) -> None:
    endpoint = added("https://example.org/")
    client.force_login(builders.person("member"))
    for path in ("/administration/webhooks/", f"/administration/webhooks/{endpoint.pk}/"):
        assert client.get(path).status_code == 403
    assert client.post(f"/administration/webhooks/{endpoint.pk}/delete/").status_code == 403
    for path in ("webhooks/", "deliveries/", f"webhooks/{endpoint.pk}/"):
        assert client.get(f"/api/v1/{path}").status_code == 403
    assert client.post("/api/v1/webhooks/", WISH, "application/json").status_code == 403
    assert Endpoint.objects.count() == 1


@pytest.mark.usefixtures("administrator")
def test_rest_does_what_the_page_does(client: Client) -> None:
    made = client.post("/api/v1/webhooks/", WISH, "application/json")
    assert made.status_code == 201
    assert made.json()["secret"].startswith("whsec_")
    where = f"/api/v1/webhooks/{made.json()['id']}/"
    changed = client.patch(where, {"is_on": False}, "application/json").json()
    assert changed["is_on"] is False
    assert "secret" not in changed
    sent = client.post(f"{where}test/", {}, "application/json")
    assert sent.status_code == 202
    listed = client.get(f"/api/v1/deliveries/?webhook={made.json()['id']}").json()["results"]
    assert [each["event"] for each in listed] == ["test"]
    waits = client.post(f"/api/v1/deliveries/{listed[0]['id']}/replay/", {}, "application/json")
    assert (waits.status_code, waits.json()["code"]) == (409, "wrong_state")
    Delivery.objects.update(send_from=None)
    again = client.post(f"/api/v1/deliveries/{listed[0]['id']}/replay/", {}, "application/json")
    assert again.status_code == 202
    bad = client.post("/api/v1/webhooks/", {**WISH, "url": "x"}, "application/json")
    assert (bad.status_code, bad.json()["code"]) == (400, "bad_address")
    assert client.delete(where).status_code == 204
    assert client.get("/api/v1/deliveries/?webhook=x").json()["results"] == []


def test_preferences_by_rest(client: Client) -> None:
    client.force_login(builders.person())
    where = "/api/v1/me/preferences/"
    assert client.get(where).json()["choices"]["warm"] == ["push"]
    wish = {"zone": "Europe/Berlin", "choices": {"warm": ["mail"]}}
    saved = client.patch(where, wish, "application/json").json()
    assert (saved["zone"], saved["choices"]["warm"]) == ("Europe/Berlin", ["mail"])
    for wrong, code in (
        ({"zone": "Mars"}, "unknown_zone"),
        ({"choices": {"sunrise": []}}, "unknown_choice"),
        ({"reminder_minutes": 0}, "bad_reminder"),
    ):
        refused = client.patch(where, wrong, "application/json")
        assert (refused.status_code, refused.json()["code"]) == (400, code)
    assert client.get(where).json()["zone"] == "Europe/Berlin"


@pytest.mark.parametrize("is_staff", [True, False])
def test_what_is_for_administrators_is_no_choice_of_members(client: Client, is_staff: bool) -> None:
    client.force_login(builders.person("one", is_staff=is_staff))
    choices = client.get("/api/v1/me/preferences/").json()["choices"]
    assert ("decision_needed" in choices) is is_staff
