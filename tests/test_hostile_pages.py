"""The pages against clumsy and hostile clients."""

import io
import logging
import re
from datetime import timedelta

import pytest
from django import forms
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.db import DataError, OperationalError, transaction
from django.test import Client
from django.utils import timezone

from bookings.models import Booking
from lanes import clock
from lanes.models import Lane
from slotserve.web.passkey_forms import CredentialField
from tests import builders

pytestmark = pytest.mark.django_db
PASSWORD = "pw-owner-1234567"
NUL_COOKIE = '"\\000aaaaaaaaaaaa"'  # as cookies write a NUL
HTML = "<script>alert(1)</script>\"'<img src=x>"


@pytest.fixture
def lane() -> Lane:
    return builders.lane("demo", default_preset=builders.preset("smollm2"))


@pytest.fixture
def owner(lane: Lane) -> User:
    person = builders.person("owner")
    person.set_password(PASSWORD)
    person.save()
    return person


@pytest.fixture
def client(owner: User) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(owner)
    return client


def _wish(**changed: str) -> dict[str, str]:
    start = timezone.localtime(clock.database_now() + timedelta(hours=1))
    times = {"start": start, "end": start + timedelta(hours=1)}
    said = {name: moment.strftime("%Y-%m-%dT%H:%M") for name, moment in times.items()}
    return {"lane": "demo", "what": "preset:smollm2", "begins": "later"} | said | changed


@pytest.mark.parametrize("name", ["lane", "what", "begins", "start", "end", "purpose"])
@pytest.mark.parametrize("value", ["\0", "preset:\0", "x" * 100_000])
def test_a_form_that_cannot_be_meant_books_nothing(client: Client, name: str, value: str) -> None:
    assert client.post("/book/", _wish(**{name: value})).status_code in {400, 409}
    assert not Booking.objects.exists()


@pytest.mark.parametrize(
    "zone", ["../../../etc/passwd", "America", "x" * 5000, NUL_COOKIE, "Etc/GMT+12"]
)
def test_a_zone_that_is_none_changes_nothing_for_the_worse(client: Client, zone: str) -> None:
    client.cookies["zone"] = zone
    assert client.get("/").status_code in {200, 400}
    for end in ("0001-01-01T00:00", "9999-12-31T23:59"):
        assert client.post("/book/", _wish(end=end)).status_code in {400, 409}


@pytest.mark.parametrize("path", ["/lanes/%00/", "/lanes/a%00b/", "/book/?lane=%00"])
def test_a_nul_in_an_address_is_a_400(client: Client, path: str) -> None:
    assert client.get(path).status_code == 400


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/x-www-form-urlencoded; charset=utf-16", b"a=b"),
        ("application/x-www-form-urlencoded; charset=nothing", b"a=b"),
        ("application/x-www-form-urlencoded", b"&".join([b"a=b"] * 2000)),
        ("application/x-www-form-urlencoded", b"a=" + b"x" * 3 * 2**20),
        ("multipart/form-data", b"a=b"),
        ("multipart/form-data; boundary=", b"a=b"),
        ("multipart/form-data; boundary=\xe9", b"a=b"),
        ("multipart/form-data; boundary=x", b"a=" + b"b" * 2000),
        ("multipart/form-data; boundary=x; charset=utf-16", b"--x\r\n\r\n--x--"),
        (
            "multipart/form-data; boundary=x",
            b'--x\r\nContent-Disposition: form-data; name="a"\r\n'
            b"Content-Transfer-Encoding: base64\r\n\r\n!!!!!\r\n--x--",
        ),
    ],
)
def test_a_form_that_cannot_be_read_is_no_crash(kind: str, body: bytes) -> None:
    client = Client(raise_request_exception=False, enforce_csrf_checks=True)
    client.cookies["csrftoken"] = "a" * 32  # without it nobody looks into the form
    for path in ("/book/", "/accounts/login/", "/once/x/"):
        answer = client.generic("POST", path, body, content_type=kind)
        assert 400 <= answer.status_code < 500, path


@pytest.mark.parametrize("number", [2**31, 2**63, 10**40])
def test_a_choice_of_a_number_that_no_row_has_is_a_400(owner: User, number: int) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(builders.administrator())
    form = {"username": "owner", "groups": str(number)}
    assert client.post(f"/administration/members/{owner.pk}/", form).status_code == 400


@pytest.mark.parametrize("path", ["/", "/accounts/login/", "/admin/login/", "/api/v1/me/"])
def test_a_nul_in_a_cookie_is_a_400_for_anybody(path: str) -> None:
    answer = Client(raise_request_exception=False).get(path, HTTP_COOKIE=f"sessionid={NUL_COOKIE}")
    assert answer.status_code == 400


def test_what_people_write_is_shown_as_text(client: Client) -> None:
    assert client.post("/book/", _wish(purpose=HTML)).status_code == 302
    page = client.get("/bookings/").content.decode()
    assert "<script>alert" not in page
    assert "<img src=x" not in page


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"]
)
def test_logging_in_leads_to_no_other_site(owner: User, target: str) -> None:
    said = {"login": "owner", "password": PASSWORD, "next": target}
    answer = Client().post("/accounts/login/", said)
    assert (answer.status_code, answer["Location"]) == (302, "/")


@pytest.mark.parametrize("path", ["/accounts/login/", "/accounts/logout/", "/accounts/signup/"])
def test_who_is_to_be_led_to_no_address_is_led_nowhere(client: Client, path: str) -> None:
    for who in (client, Client(raise_request_exception=False)):
        answer = who.get(path, {"next": "http://["})
        assert answer.status_code in {200, 302}
        assert "http://[" not in answer.headers.get("Location", "")


def test_an_address_that_is_asked_in_the_wrong_way_says_so(client: Client) -> None:
    for answer in (client.post("/calendar/"), client.get("/notices/read/")):
        assert answer.status_code == 405
        assert "Go back" in answer.content.decode()
        assert int(answer["Content-Length"]) == len(answer.content)
        assert answer["Allow"]
        assert answer["Content-Security-Policy"]


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("get", {"HX-Request": "true", "HX-Current-URL": "http://["}),
        ("post", {"HX-Request": "true", "HX-Current-URL": "http://["}),
        ("post", {"Referer": "http://["}),
    ],
)
def test_a_browser_that_names_no_address_is_led_to_log_in(
    method: str, headers: dict[str, str]
) -> None:
    answer = getattr(Client(raise_request_exception=False), method)("/tokens/", headers=headers)
    place = answer.headers.get("HX-Redirect") or answer["Location"]
    assert place == "/accounts/login/?next=/"


def test_a_session_that_ends_while_a_page_is_made_is_no_crash(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "slotserve.web.remembering.preferences.remember", lambda *_: Session.objects.all().delete()
    )
    client.cookies["zone"] = "Europe/Berlin"
    assert client.get("/bookings/").status_code == 400  # what Django says of it
    assert client.get("/bookings/").status_code == 302


def test_logging_in_makes_a_session_of_its_own(owner: User) -> None:
    client = Client()
    client.cookies["sessionid"] = "a" * 32
    answer = client.post("/accounts/login/", {"login": "owner", "password": PASSWORD})
    session = answer.cookies["sessionid"]
    assert session.value != "a" * 32
    assert session["httponly"]
    assert session["samesite"] == "Lax"


def test_administrators_log_in_where_attempts_are_limited(owner: User) -> None:
    answer = Client().get("/admin/login/?next=/admin/")
    assert (answer.status_code, answer["Location"][:17]) == (302, "/accounts/login/?")
    answer = Client().post("/admin/login/", {"username": "owner", "password": PASSWORD})
    assert answer.status_code == 302
    assert "sessionid" not in answer.cookies


def test_members_do_not_get_into_the_admin_site(client: Client) -> None:
    for path in ("/admin/login/", "/admin/auth/user/"):
        assert client.get(path, follow=True).status_code == 403


@pytest.mark.parametrize("path", ["/", "/bookings/", "/lanes/demo/", "/tokens/"])
def test_private_pages_are_kept_by_no_cache(client: Client, path: str) -> None:
    assert re.search("no-store", client.get(path)["Cache-Control"])


def test_a_busy_database_is_a_503_with_retry_after(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_locked(*_: object) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr("slotserve.web.lanes.recent_events", is_locked)
    answer = client.get("/lanes/demo/")
    assert (answer.status_code, answer["Retry-After"]) == (503, "1")


def test_a_database_that_is_busy_after_the_page_was_made_is_a_503(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_locked(*_: object, **__: object) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr("slotserve.web.remembering.preferences.remember", is_locked)
    client.cookies["zone"] = "Europe/Berlin"
    answer = client.get("/")
    assert (answer.status_code, answer["Retry-After"]) == (503, "1")
    assert b"busy" in answer.content


@pytest.mark.parametrize(
    "error",
    [
        DataError("out of range"),
        OverflowError("int too large"),
        OperationalError("LIKE or GLOB pattern too complex"),
    ],
)
def test_a_value_that_the_database_refuses_is_a_400(
    client: Client, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuses(*_: object) -> None:
        raise error

    monkeypatch.setattr("slotserve.web.lanes.recent_events", refuses)
    assert client.get("/lanes/demo/").status_code == 400


def test_what_another_made_at_the_same_moment_is_a_503(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def makes_a_twin(*_: object) -> None:
        with transaction.atomic():
            Group.objects.bulk_create([Group(name="team"), Group(name="team")])

    monkeypatch.setattr("slotserve.web.lanes.recent_events", makes_a_twin)
    answer = client.get("/lanes/demo/")
    assert (answer.status_code, answer["Retry-After"]) == (503, "1")


def test_a_foreign_host_name_is_one_line_in_the_log() -> None:
    stream = io.StringIO()
    handler = logging.getLogger().handlers[0]
    assert isinstance(handler, logging.StreamHandler)
    kept = handler.setStream(stream)
    try:
        assert Client().get("/", HTTP_HOST="evil.example").status_code == 400
    finally:
        handler.setStream(kept)
    (line,) = stream.getvalue().splitlines()
    assert "evil.example" in line


@pytest.mark.django_db
@pytest.mark.parametrize("credential", ["9" * 5000, "[" * 100_000, "{", '"x"'])
def test_a_security_key_that_is_none_is_refused(client: Client, credential: str) -> None:
    answer = client.post("/accounts/2fa/webauthn/login/", {"credential": credential})
    assert answer.status_code in {200, 302, 400}


@pytest.mark.parametrize("credential", ["9" * 5000, "[" * 100_000, "{"])
def test_what_is_no_security_key_does_not_keep_its_form_from_being_shown(credential: str) -> None:
    class Form(forms.Form):
        credential = CredentialField()

    form = Form({"credential": credential})
    assert not form.is_valid()
    assert "<textarea" in str(form["credential"])
