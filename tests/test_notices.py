"""Notices: once for each person and key, read, and sent by e-mail."""

import re
from datetime import timedelta
from smtplib import SMTPException

import pytest
from django.core import mail
from django.core.mail.backends.locmem import EmailBackend
from django.test import Client
from pytest_django import Settings

from lanes import clock, notices
from lanes.models import Notice
from lanes.notices import News
from notices import links, outbox
from notices.links import make_link
from notices.mail import send_due
from notices.models import Delivery, Link
from notices.routing import route
from notices.tasks import forget
from tests import builders

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
NEWS = News("disk:1", "disk", "The disk of gpu1 is nearly full.", "Delete a model.")


class Broken(EmailBackend):
    """A mail server that refuses everything."""

    def send_messages(self, _messages: object) -> int:
        raise SMTPException("421 come later")


def told(news: News = NEWS) -> Notice:
    notices.tell_people([builders.person(email="owner@example.org")], news, clock.database_now())
    route(clock.database_now())
    return Notice.objects.get()


def test_a_person_is_told_once_of_each_key() -> None:
    owner, now = builders.person(), clock.database_now()
    assert notices.tell_people([owner], NEWS, now) == 1
    assert notices.tell_people([owner, builders.person("member")], NEWS, now) == 1
    assert notices.unread_count(owner) == 1


def test_administrators_are_those_who_may_administer_and_still_exist() -> None:
    builders.person("gone", is_staff=True, is_active=False)
    builders.person("member")
    administrator = builders.administrator()
    assert list(notices.administrators()) == [administrator]


def test_what_is_long_over_is_forgotten_and_the_rest_stays() -> None:
    old = told()
    booking, now = builders.booking(), clock.database_now()
    notices.tell_people([builders.person()], News("b", "b", "b"), now)
    new = Notice.objects.exclude(pk=old.pk).get()
    Delivery.objects.all().delete()
    for state, sent in (("sent", None), ("waiting", now)):
        Delivery.objects.create(
            channel="push", notice=new, event="x", key="x", state=state, send_from=sent,
            created_at=now - outbox.KEPT - DAY,
        )  # fmt: skip
    make_link(booking, Link.Action.RELEASE)
    Link.objects.update(expires_at=now - links.KEPT - DAY)
    make_link(booking, Link.Action.RELEASE)
    Link.objects.filter(expires_at__gt=now - DAY).update(expires_at=now)
    Notice.objects.filter(pk=old.pk).update(at=now - notices.KEPT - DAY)
    forget()
    assert list(Notice.objects.all()) == [new]
    assert Delivery.objects.get().state == "waiting"
    assert Link.objects.get().expires_at == now


def test_a_notice_is_sent_once_by_e_mail(settings: Settings) -> None:
    settings.SLOTSERVE_WEB_URL = "https://gpu.example.org/"
    told(News("k", "failure", "It fails.", "Lower -c.", builders.lane("left")))
    assert send_due() == 1
    assert send_due() == 0
    (message,) = mail.outbox
    assert message.subject == "SlotServe: left: It fails."
    assert message.to == ["owner@example.org"]
    assert message.body.startswith(
        "It fails.\n\nLower -c.\n\nhttps://gpu.example.org/lanes/left/\n"
    )


def test_who_has_no_address_gets_no_e_mail() -> None:
    notices.tell_people([builders.person("member")], NEWS, clock.database_now())
    assert route(clock.database_now()) == 1
    assert not Delivery.objects.exists()


def test_a_line_break_of_a_log_does_not_reach_the_head_of_an_e_mail() -> None:
    told(News("k", "failure", "It says\r\nBcc: all@example.org"))
    assert send_due() == 1
    assert mail.outbox[0].subject == "SlotServe: It says Bcc: all@example.org"


def test_what_cannot_be_sent_is_tried_again_and_given_up_in_the_end(settings: Settings) -> None:
    settings.EMAIL_BACKEND = "tests.test_notices.Broken"
    told()
    delivery = Delivery.objects.get()
    waits = []
    while delivery.send_from is not None:
        Delivery.objects.update(send_from=delivery.created_at)  # as if it were time
        assert send_due() == 0
        now = clock.database_now()
        delivery.refresh_from_db()
        wait = delivery.send_from - now if delivery.send_from else None
        waits.append(round(wait.total_seconds()) if wait else None)
    assert waits == [60, 300, 1800, None]
    assert delivery.state == "failed"


def test_the_head_of_each_page_counts_the_unread(client: Client) -> None:
    notice = told()
    client.force_login(notice.recipient)
    page = client.get("/notices/").content.decode()
    assert NEWS.sentence in page
    assert 'aria-label="Notices, 1 unread"' in page
    later = Notice.objects.create(
        recipient=notice.recipient, key="later", kind="x", sentence="Later.", at=notice.at
    )
    client.post("/notices/read/", {"up_to": str(notice.pk)})
    assert list(Notice.objects.filter(read_at=None)) == [later]


def test_all_are_on_pages_and_the_newest_page_marks_all_as_read(client: Client) -> None:
    reader, now = builders.person(), clock.database_now()
    Notice.objects.bulk_create(
        Notice(recipient=reader, key=f"{n}", kind="x", sentence=f"No {n:02}.", at=now + n * SECOND)
        for n in range(60)
    )
    client.force_login(reader)
    newest, older = (client.get(f"/notices/?page={n}").content.decode() for n in (1, 2))
    assert ("No 59." in newest, "No 10." in newest, "No 09." in newest) == (True, True, False)
    assert ("No 09." in older, "No 00." in older, "No 10." in older) == (True, True, False)
    assert ('href="?page=2"' in newest, "Page 2 of 2" in older) == (True, True)
    assert ("Mark all as read" in newest, "Mark all as read" in older) == (True, False)
    up_to = re.search(r'name="up_to" value="(\d+)"', newest)
    client.post("/notices/read/", {"up_to": up_to[1] if up_to else ""})
    assert notices.unread_count(reader) == 0


@pytest.mark.parametrize("up_to", ["", "x", "-1", "9" * 30, "²"])
def test_a_wrong_number_marks_nothing_and_is_no_error(client: Client, up_to: str) -> None:
    notice = told()
    client.force_login(notice.recipient)
    assert client.post("/notices/read/", {"up_to": up_to}).status_code == 302
    assert Notice.objects.filter(read_at=None).exists()


def test_the_api_lists_and_reads_the_caller_s_own(client: Client) -> None:
    notice = told()
    builders.person("stranger")
    client.force_login(builders.person("stranger"))
    assert client.get("/api/v1/notices/").json()["results"] == []
    assert client.post(f"/api/v1/notices/{notice.pk}/read/").status_code == 404
    client.force_login(notice.recipient)
    (shown,) = client.get("/api/v1/notices/?unread=true").json()["results"]
    assert (shown["sentence"], shown["advice"], shown["lane"]) == (
        NEWS.sentence,
        NEWS.advice,
        None,
    )
    assert client.post(f"/api/v1/notices/{notice.pk}/read/").json()["read_at"]
    assert client.get("/api/v1/notices/?unread=true").json()["results"] == []
    assert client.post("/api/v1/notices/read/").json() == {"read": 0}


def test_strangers_are_led_to_log_in(client: Client) -> None:
    assert client.get("/notices/").status_code == 302
    assert client.get("/api/v1/notices/").status_code == 401
