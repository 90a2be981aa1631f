"""Values that nobody means, the requests that carry them, and what every answer to them must be.

Which fields an address has is not listed here: they are those that it asks its query or form for
and those of the forms on pages (tests/hostile_forms.py), and those of REST's schema
(tests/hostile_schema.py).
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from random import Random
from typing import Any
from urllib.parse import quote_from_bytes

from django.core.cache import caches
from django.db import connection, transaction
from django.test import Client

from tests import every_page
from tests.every_page import HOST, Site

MEGABYTE = 2**20
CSRF = "a" * 32
HEAD = HOST | {"X-CSRFToken": CSRF}
TEXTS = (
    "",
    " ",
    "\0",
    "a\0b",
    "\ud800",
    "\udfff end",
    "x" * 300,
    "x" * MEGABYTE,
    "-1",
    "0",
    "1.5",
    str(2**31),
    str(2**63),
    str(-(2**63) - 1),
    "9" * 5000,
    "1e309",
    "NaN",
    "Infinity",
    "-Infinity",
    "\u0663",  # three, in Arabic digits
    "\u00b2",  # a digit that int() refuses
    "\u202egnp.exe\u202c",
    "\ufeff",
    "<script>alert(1)</script>\"'<img src=x>",
    "{{ 7 }}{% now %}%(x)s{0}%s\\",
    "' OR 1=1; --",
    "../../../etc/passwd",
    "http://[",
    "0000-01-01T00:00",
    "0001-01-01T00:00",
    "0001-01-01",
    "9999-12-31T23:59",
    "9999-12-31T23:59:59.999999-14:00",
    "9999-12-31",
    "10000-01-01T00:00",
    "2031-02-30T10:00",
    "2031-01-01T10:00+14:00",
    "2031-W01-1",
    "2031-01-01T24:00:00Z",
    "preset:",
    "null",
    "a\r\nSet-Cookie: b=c",
)
SCALARS = (None, True, -1, 0, 1.5, 2**31, 2**63, -(2**63) - 1, 10**400, float("inf"), float("nan"))
NESTED: tuple[Any, ...] = ([], [[]], {}, [None], [{}], {"a": "b"}, [1, "a"], ["a"] * 2000)
VALUES: tuple[Any, ...] = (*TEXTS, *SCALARS, *NESTED)  # of JSON
PARTS = (  # of addresses, in the place of a number, slug, key or secret
    *("0", "1", "9" * 18, str(2**63), "9" * 40, "-1", "nope", "x" * 3000, "%00", "%ED%A0%80"),
    *("%FF", "%E2%80%AEx", "..", "%2e%2e%2fx", "%0d%0aX:%20y", "%3Cb%3E", "%D9%A3", "a%20b"),
)
BOUNDED = "multipart/form-data; boundary=x"
BODIES: tuple[tuple[str, bytes], ...] = (  # content types and what is no body of that kind
    ("application/json", b""),
    ("application/json", b"null"),
    ("application/json", b"[]"),
    ("application/json", b"5"),
    ("application/json", b"{}{}"),
    ("application/json", b"[" * 100_000),
    ("application/json", b'{"a":' * 100_000),
    ("application/json", b'{"a": 1, "a": 2}'),
    ("application/json", b"\xff\xfe{"),
    ("application/json; charset=utf-16", "{}".encode("utf-16")),
    ("application/xml", b"<a/>"),
    ("text/plain; charset=nothing", b"a=b"),
    ("application/x-www-form-urlencoded", b"&".join([b"a=b"] * 1001)),
    ("application/x-www-form-urlencoded", b"a=" + b"x" * 3 * MEGABYTE),
    ("application/x-www-form-urlencoded; charset=utf-16", b"a=b"),
    ("multipart/form-data", b"a=b"),
    (BOUNDED, b"--x\r\nContent-Disposition: form-data; name="),
    (BOUNDED, b"--x\r\n\r\n--x--"),
    ("\x00", b"a=b"),
    ("", b"\x00\xff"),
)
TRACES = re.compile(r"Traceback \(most recent|File \"/|django/core/|site-packages|\bError\(")
WRITES = re.compile(r'^\s*(?:INSERT INTO|INSERT OR \w+ INTO|UPDATE|DELETE FROM)\s+"(\w+)"', re.I)
AWAY = {"host_unreachable", "broker_away"}  # what is not here, and not for anything that was sent
# What a refusal may leave behind: who is logged in, when a token was last used, allauth's copy of a
# person's address, and that recovery codes were looked at.
LEFT = {"django_session", "gateway_apitoken", "account_emailaddress", "mfa_authenticator"}


def encoded(pairs: Iterable[tuple[str, str]]) -> str:
    """A form or query as browsers write it, and half a surrogate pair as only a program does."""
    return "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in pairs)


def _quoted(text: str) -> str:
    return quote_from_bytes(text.encode("utf-8", "surrogatepass"), safe="")


def as_files(names: Iterable[str]) -> bytes:
    """A form (BOUNDED) that has a file in the place of each field."""
    parts = (
        f'--x\r\nContent-Disposition: form-data; name="{name}"; filename="a.txt"\r\n\r\na\r\n'
        for name in names
    )
    return "".join([*parts, "--x--\r\n"]).encode()


def told(value: Any) -> str:
    """A value as JSON has it, whatever it is."""
    return json.dumps(value)


def some(of: Iterable[Any], count: int, *seed: object) -> list[Any]:
    """So many of them, the same ones at each run."""
    kept = list(of)
    return Random(repr(seed)).sample(kept, min(count, len(kept)))


def made() -> Site:
    """The company; to its people a crash is an answer."""
    site = every_page.made()
    for client in site.clients.values():
        client.raise_request_exception = False
        client.handler.enforce_csrf_checks = True  # or forms are not read where they are else
        client.cookies["csrftoken"] = CSRF
    return site


@dataclass
class Watch:
    """Sends requests, undoes what they did, and notes what must not be."""

    wrong: list[str] = field(default_factory=list)
    sent: int = 0

    def send(self, client: Client, method: str, path: str, body: Any, kind: str) -> Any:
        """The answer; what it did is undone."""
        self.sent += 1
        before: dict[str, list[Any]] = {}
        cookies = SimpleCookie(client.cookies.output(header="", sep=";"))
        caches["default"].clear()  # or attempts to log in are too many
        with transaction.atomic():
            with connection.execute_wrapper(_noting(before)):
                answer = client.generic(method, path, body, content_type=kind, headers=HEAD)
            faults = list(_faults(answer))
            if answer.status_code >= 400:
                faults += [f"changed {table}" for table in _changed(before)]
            transaction.set_rollback(True)
        client.cookies = cookies
        if faults:
            shown = body if isinstance(body, str) else repr(body)
            self.wrong.append(f"{method} {path[:200]} {shown[:300]}: {', '.join(faults)}")
        return answer


def _noting(before: dict[str, list[Any]]) -> Any:
    """A wrapper of what the database is asked: it keeps each table as it was before its first
    change."""

    def execute(run: Any, sql: Any, params: Any, many: Any, context: Any) -> Any:
        changed = WRITES.match(str(sql))
        if changed and changed[1] not in before:
            before[changed[1]] = _rows(changed[1])
        return run(sql, params, many, context)

    return execute


def _rows(table: str) -> list[Any]:
    before = transaction.get_connection().execute_wrappers
    kept, before[:] = list(before), []
    try:
        with connection.cursor() as cursor:
            cursor.execute(f'SELECT * FROM "{table}"')
            return sorted(map(repr, cursor.fetchall()))
    finally:
        before[:] = kept


def _changed(before: Mapping[str, list[Any]]) -> list[str]:
    return [table for table, rows in before.items() if table not in LEFT and _rows(table) != rows]


def _code(answer: Any) -> str:
    """Of a refusal of REST."""
    return str(getattr(answer, "data", {}).get("code", ""))


def _faults(answer: Any) -> Iterator[str]:
    """What no client may be told, or must be and is not."""
    status = answer.status_code
    if status == 503 and answer.get("Retry-After") and _code(answer) in AWAY:
        return
    if status >= 500:
        error = getattr(answer, "exc_info", None)
        yield f"{status} {error[0].__name__ + ': ' + str(error[1])[:300] if error else ''}"
        return
    if answer.streaming or status < 400:
        return
    text = answer.content.decode()
    if TRACES.search(text):
        yield f"{status} with a traceback"
    if answer.wsgi_request.path.startswith("/api/"):
        if not json.loads(text).get("detail"):
            yield f"{status} without a detail"
    elif len(text.strip()) < 10:
        yield f"{status} that says nothing: {text!r}"
