"""What the calendar sends as JSON, against bodies that nobody means: never a 500."""

import json
from typing import Any

import pytest
from django.db import transaction
from django.test import Client

from tests import every_page
from tests.every_page import MEMBER, Site

pytestmark = pytest.mark.django_db
TIMES = {"start": "2031-01-01T10:00:00Z", "end": "2031-01-01T11:00:00Z"}


@pytest.fixture
def site() -> Site:
    return every_page.made()


def status_of(client: Client, path: str, body: Any = None) -> int:
    """Of the answer; what it did is undone."""
    client.raise_request_exception = False
    with transaction.atomic():
        answer = client.post(path, json.dumps(body), "application/json")
        transaction.set_rollback(True)
    return answer.status_code


TEXTS = ("\0", "\ud800", "9" * 5000, "9999-12-31T23:59:59Z", "0001-01-01T00:00:00", "x" * 5000)
OTHERS: tuple[Any, ...] = (None, True, -1, 10**30, 1.5, [], {}, [[]], {"start": 1})


def test_no_move_of_the_calendar_fails(site: Site) -> None:
    client, failed = site.clients[MEMBER], []
    seen = {**TIMES, "lane": "atlas-0"}
    usual = {"booking": str(site.parts["booking"]), "seen": seen, **TIMES, "lane": "atlas-0"}
    bodies: list[Any] = [None, [], 5, "x", {}, usual]
    for value in (*TEXTS, *OTHERS):
        bodies += [{**usual, name: value} for name in usual]
        bodies += [{**usual, "seen": {**seen, name: value}} for name in seen]
        bodies += [{**usual, "start": value, "end": ""}, {**usual, "start": "", "end": value}]
    for zone in ("America/New_York", "Pacific/Kiritimati"):
        client.cookies["zone"] = zone
        for body in bodies:
            if status_of(client, "/calendar/move/", body) >= 500:
                failed.append((zone, str(body)[:300]))
    assert failed == []


def test_a_form_is_no_move_of_the_calendar(site: Site) -> None:
    client = site.clients[MEMBER]
    client.raise_request_exception = False
    client.handler.enforce_csrf_checks = True  # which looks for its token in the form
    client.cookies["csrftoken"] = "a" * 32
    form = {"booking": "1", "csrfmiddlewaretoken": "a" * 32}
    assert client.post("/calendar/move/", form).status_code == 400
