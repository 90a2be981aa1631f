"""REST against clumsy and hostile clients: a clear 4xx in JSON, and nothing done."""

import json
from collections.abc import Callable
from io import BytesIO
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import DataError, IntegrityError
from django.test import Client
from rest_framework.test import APIClient

from bookings import services
from bookings.models import Booking
from gateway import tokens
from lanes.models import Lane
from slotserve.asgi import Handler
from tests import builders

pytestmark = pytest.mark.django_db
BOOKINGS = "/api/v1/bookings/"
DEEP = 100_000
UNKEPT = ["a\0b", "\ud800", "\udfff end"]


@pytest.fixture
def lane() -> Lane:
    return builders.lane("demo")


@pytest.fixture
def owner() -> User:
    return builders.person("owner")


@pytest.fixture
def client(lane: Lane) -> APIClient:
    client = APIClient(raise_request_exception=False)
    client.force_login(builders.administrator())
    return client


def _refused(answer: Any, status: int = 400) -> str:
    """The code of an answer that is a refusal in our shape."""
    assert answer.status_code == status
    body = json.loads(answer.content)
    assert body["detail"]
    return str(body["code"])


@pytest.mark.parametrize(
    "body",
    [
        b"[" * DEEP,
        b'{"end": ' + b"[" * DEEP + b"]" * DEEP + b"}",
        b'{"a":' * DEEP,
        b'{"end": ' + b"9" * 5000 + b"}",
        b'{"end": NaN}',
        b"\xef\xbb\xbf{}",
        "{}".encode("utf-16"),
        b"\xff",
        b"{}{}",
        b"",
    ],
    ids=["open", "deep", "objects", "number", "NaN", "BOM", "UTF-16", "bytes", "two", "empty"],
)
def test_a_body_that_is_no_sound_json_is_refused(client: APIClient, body: bytes) -> None:
    _refused(client.post(BOOKINGS, body, content_type="application/json"))


@pytest.mark.parametrize("text", UNKEPT)
@pytest.mark.parametrize(
    ("path", "field"),
    [
        (BOOKINGS, "lane"),
        (BOOKINGS, "preset"),
        (BOOKINGS, "kind"),
        (BOOKINGS, "purpose"),
        ("/api/v1/lanes/", "host"),
        ("/api/v1/lanes/demo/choose/", "preset"),
        ("/api/v1/presets/", "engine"),
        ("/api/v1/presets/", "arguments"),
        ("/api/v1/tokens/", "scopes"),
        ("/api/v1/models/", "path"),
    ],
)
def test_a_text_that_no_database_keeps_is_refused(
    client: APIClient, path: str, field: str, text: str
) -> None:
    for value in (text, [text], {text: text}):
        body = json.dumps({field: value})
        _refused(client.generic("POST", path, body, content_type="application/json"))


@pytest.mark.parametrize(
    "charset", ["utf-16", "base64", "hex", "zlib", "rot13", "idna", "undefined", "nope", ""]
)
def test_a_charset_in_the_header_changes_nothing(client: APIClient, charset: str) -> None:
    kind = f"application/json; charset={charset}"
    _refused(client.post(BOOKINGS, b"{}", content_type=kind))
    assert client.get(BOOKINGS, content_type=kind).status_code == 200


@pytest.mark.parametrize("method", ["get", "post", "put", "patch", "delete", "options"])
@pytest.mark.parametrize("path", ["/api/", "/api/v2/lanes/", "/api/v1/nothing/"])
def test_there_is_nothing_at_other_addresses(client: APIClient, method: str, path: str) -> None:
    assert _refused(getattr(client, method)(path), 404) == "not_found"


@pytest.mark.parametrize(
    "query", ["lane=%00", "from=%00", "limit=1&x=%00", "&" * 2000, "from=x", "to=0001-01-01"]
)
def test_a_query_that_cannot_be_meant_is_refused(client: APIClient, query: str) -> None:
    _refused(client.get(f"{BOOKINGS}?{query}"))


@pytest.mark.parametrize("name", ["limit", "offset"])
@pytest.mark.parametrize("number", ["-1", "0", "x", "9" * 30, "9" * 5000, "%D9%A1"])
def test_a_page_that_is_not_there_is_empty_or_the_first(
    client: APIClient, name: str, number: str
) -> None:
    assert client.get(f"{BOOKINGS}?{name}={number}").status_code == 200


@pytest.mark.parametrize(
    "at", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-14:00"]
)
def test_nothing_is_explained_at_the_end_of_time(client: APIClient, at: str) -> None:
    _refused(client.get("/api/v1/lanes/demo/explain/", {"at": at}))


def test_a_foreign_host_name_is_refused_in_json(client: APIClient) -> None:
    assert _refused(client.get(BOOKINGS, HTTP_HOST="evil.example")) == "bad_request"


def test_what_the_database_refuses_is_the_clients_mistake(
    client: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(**_: object) -> None:
        raise DataError("value out of range")

    monkeypatch.setattr(services, "book", refuses)
    builders.preset("smollm2")
    wish = {"lane": "demo", "preset": "smollm2", "end": "2099-01-01T00:00:00Z"}
    assert _refused(client.post(BOOKINGS, wish, format="json")) == "invalid"
    assert not Booking.objects.exists()


def test_what_another_deleted_or_made_at_the_same_moment_is_a_503(
    client: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As PostgreSQL says it."""

    def refuses(error: type[psycopg.Error]) -> Callable[..., None]:
        def create_token(**_: object) -> None:
            raise IntegrityError("no such row, or twice") from error("…")

        return create_token

    wish = {"name": "x", "scopes": ["read"]}
    for error in (psycopg.errors.ForeignKeyViolation, psycopg.errors.UniqueViolation):
        monkeypatch.setattr(tokens, "create_token", refuses(error))
        assert _refused(client.post("/api/v1/tokens/", wish, format="json"), 503) == "busy"


def test_a_number_that_no_database_can_keep_is_refused(
    client: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(**_: object) -> None:
        raise OverflowError("Python int too large to convert to SQLite INTEGER")

    monkeypatch.setattr(tokens, "create_token", refuses)
    wish = {"name": "x", "scopes": ["read"]}
    assert _refused(client.post("/api/v1/tokens/", wish, format="json")) == "invalid"


def test_a_crash_is_told_in_json_and_without_its_reason(
    client: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crashes(*_: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr("slotserve.api.lanes.recent_events", crashes)
    answer = client.get("/api/v1/lanes/demo/events/")
    assert _refused(answer, 500) == "error"
    assert b"secret" not in answer.content


def test_a_request_that_django_cannot_make_is_a_400() -> None:
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/api/v1/me/",
        "query_string": b"a=1&" * 2000,
        "headers": [(b"content-type", b"text/plain; charset=utf-8")],
    }
    _, refusal = Handler().create_request(scope, BytesIO())
    assert refusal is not None
    assert _refused(refusal) == "bad_request"


@pytest.mark.parametrize("method", ["put", "trace"])
def test_other_methods_are_refused_in_json(client: APIClient, method: str) -> None:
    answer = client.generic(method.upper(), BOOKINGS)
    assert _refused(answer, 405) == "method_not_allowed"


def test_a_method_in_a_header_is_not_obeyed(client: APIClient, lane: Lane) -> None:
    client.post("/api/v1/lanes/demo/", HTTP_X_HTTP_METHOD_OVERRIDE="DELETE")
    client.post("/api/v1/lanes/demo/?_method=DELETE", {"_method": "DELETE"}, format="json")
    assert Lane.objects.filter(pk=lane.pk).exists()


def test_a_session_changes_nothing_without_its_csrf_token(lane: Lane, owner: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(owner)
    answer = client.post(BOOKINGS, {}, content_type="application/json")
    assert _refused(answer, 403) == "permission_denied"


def test_answers_are_kept_by_no_cache(client: APIClient) -> None:
    assert client.get("/api/v1/me/")["Cache-Control"] == "private, no-store"
