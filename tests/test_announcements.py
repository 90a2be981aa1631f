"""Announcements: who may make them, who sees which, and for how long."""

from datetime import timedelta

import pytest
from django.test import Client

from lanes import announcements, clock
from lanes.models import Announcement
from lanes.refusals import Refusal
from tests import builders

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def announce(
    text: str = "Maintenance on Friday",
    *,
    start: timedelta | None = None,
    end: timedelta | None = None,
) -> Announcement | Refusal:
    now = clock.database_now()
    return announcements.announce(
        text=text,
        level="warning",
        starts_at=now + start if start else None,
        ends_at=now + end if end else None,
        actor=builders.administrator(),
    )


def signed_in(*, is_staff: bool = False) -> Client:
    client = Client()
    client.force_login(builders.administrator() if is_staff else builders.person("member"))
    return client


@pytest.mark.parametrize(
    ("times", "is_shown"),
    [
        ({}, True),
        ({"end": HOUR}, True),
        ({"start": -2 * HOUR, "end": HOUR}, True),
        ({"start": HOUR}, False),
    ],
)
def test_it_is_shown_on_every_page_while_it_is_in_force(
    times: dict[str, timedelta], is_shown: bool
) -> None:
    made = announce(start=times.get("start"), end=times.get("end"))
    assert isinstance(made, Announcement)
    for page in ("/", "/book/", "/tokens/"):
        shown = "Maintenance on Friday" in signed_in().get(page).content.decode()
        assert shown is is_shown
    assert "Maintenance" not in Client().get("/accounts/login/").content.decode()


def test_what_is_over_cannot_be_announced_and_an_end_comes_after_its_start() -> None:
    past = announce(end=-HOUR)
    assert isinstance(past, Refusal)
    assert past.code == "already_over"
    turned = announce(start=2 * HOUR, end=HOUR)
    assert isinstance(turned, Refusal)
    assert "end after it starts" in turned.words
    empty = announce("   ")
    assert isinstance(empty, Refusal)
    assert not Announcement.objects.exists()


def test_one_in_force_ends_and_one_to_come_is_dropped() -> None:
    running, coming = announce(), announce(start=HOUR)
    assert isinstance(running, Announcement)
    assert isinstance(coming, Announcement)
    boss = builders.administrator()
    assert announcements.end(running, actor=boss) is None
    assert announcements.end(coming, actor=boss) is None
    assert [row.text for row in announcements.in_force(clock.database_now())] == []
    assert list(Announcement.objects.all()) == [running]
    again = announcements.end(running, actor=boss)
    assert again is not None
    assert again.code == "already_over"


def test_members_make_and_end_none() -> None:
    row = announce()
    assert isinstance(row, Announcement)
    member = builders.person("member")
    now = clock.database_now()
    made = announcements.announce(
        text="x", level="info", starts_at=None, ends_at=now + HOUR, actor=member
    )
    assert isinstance(made, Refusal)
    refused = announcements.end(row, actor=member)
    assert refused is not None
    assert made.code == refused.code == "not_administrator"
    assert signed_in().get("/administration/announcements/").status_code == 403
    assert signed_in().post(f"/administration/announcements/{row.pk}/end/").status_code == 403


def test_a_browser_that_has_dismissed_it_shows_it_no_more() -> None:
    row = announce()
    assert isinstance(row, Announcement)
    client, other = signed_in(), signed_in()
    answer = client.post(f"/announcements/{row.pk}/dismiss/", {"next": "/tokens/"})
    assert answer["Location"] == "/tokens/"
    assert row.text not in client.get("/").content.decode()
    assert row.text in other.get("/").content.decode()


def test_dismissing_in_place_answers_with_the_banner() -> None:
    row = announce()
    assert isinstance(row, Announcement)
    client = signed_in()
    answer = client.post(f"/announcements/{row.pk}/dismiss/", headers={"HX-Request": "true"})
    assert row.text not in answer.content.decode()
    assert 'id="announcements"' in answer.content.decode()
    assert 'id="announcements"' in client.get("/announcements/").content.decode()


@pytest.mark.parametrize("cookie", ["x", "1.2.", "9" * 40, "..", "-1"])
def test_a_cookie_that_names_none_changes_nothing(cookie: str) -> None:
    row = announce()
    assert isinstance(row, Announcement)
    client = signed_in()
    client.cookies["dismissed"] = cookie
    assert (row.text in client.get("/").content.decode()) is (str(row.pk) not in cookie.split("."))


def test_an_administrator_announces_and_ends_on_the_page() -> None:
    client = signed_in(is_staff=True)
    page = "/administration/announcements/"
    client.post(page, {"text": "<b>Closed</b>", "level": "danger"})
    shown = client.get(page).content.decode()
    assert "&lt;b&gt;Closed&lt;/b&gt;" in shown
    row = Announcement.objects.get()
    client.post(f"{page}{row.pk}/end/")
    assert "Closed" not in client.get("/").content.decode()
    refused = client.post(page, {"text": "", "level": "loud"})
    assert refused.status_code == 400


def test_rest_shows_makes_and_ends_them() -> None:
    boss, member = signed_in(is_staff=True), signed_in()
    address = "/api/v1/announcements/"
    body = {"text": "Closed", "level": "info", "starts_at": "2100-01-01T00:00:00Z"}
    made = boss.post(address, body, content_type="application/json")
    assert made.status_code == 201
    assert boss.get(address).json()["count"] == 1
    assert member.get(address).json()["count"] == 0
    refused = member.post(address, body, content_type="application/json")
    assert (refused.status_code, refused.json()["code"]) == (403, "not_administrator")
    ending = f"{address}{made.json()['id']}/end/"
    assert boss.post(ending, content_type="application/json").status_code == 204
    assert boss.get(address).json()["count"] == 0
    wrong = boss.post(address, {**body, "level": "loud"}, content_type="application/json")
    assert wrong.status_code == 400
