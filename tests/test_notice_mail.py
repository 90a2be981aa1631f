"""Notices by e-mail with a mail server that hangs, refuses or drops, and two workers at once."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from lanes import clock, notices, smtp
from lanes.models import Notice
from lanes.notices import News
from notices import mail, outbox
from notices.models import Delivery
from notices.routing import route
from tests import builders
from tests.at_once import at_once
from tests.mail_server import DRIP, DROP, HANG, MailServer, mail_server

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _short_waits(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mail by SMTP; a server is waited for a moment, and listened to for two."""
    settings.EMAIL_BACKEND = "lanes.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_USE_TLS, settings.EMAIL_USE_SSL = "127.0.0.1", False, False
    settings.EMAIL_TIMEOUT = 0.3
    monkeypatch.setattr(smtp, "LONGEST_SECONDS", 1.0)
    monkeypatch.setattr(outbox, "BEGIN_SECONDS", 600.0)  # on a busy machine


def serve(server: MailServer, settings: Settings) -> None:
    settings.EMAIL_PORT = server.port


def write(count: int = 1) -> list[Delivery]:
    """So many notices that wait to be sent."""
    owner = builders.person(email="owner@example.org")
    for number in range(count):
        news = News(f"disk:{number}", "disk", f"The disk of gpu{number} is full.")
        notices.tell_people([owner], news, clock.database_now())
    route(clock.database_now())
    return list(Delivery.objects.order_by("pk"))


def turn() -> bool:
    """One look at what is due; whether the server answered to the end."""
    try:
        mail.send_due()
    except OSError:
        return False
    return True


def all_due() -> None:
    """As if the waits were over."""
    now = clock.database_now()
    Delivery.objects.filter(send_from__gt=now).update(send_from=now)


# what the server does wrong -> the server answers to the end, attempts of the first mail,
# it waits to be sent again, mails that arrive once the server is well
FAULTS: list[tuple[dict[str, str], bool, int, bool, int]] = [
    ({}, True, 1, False, 1),
    ({"HELLO": HANG}, False, 0, True, 1),
    ({"HELLO": "421 too busy"}, False, 0, True, 1),
    ({"HELLO": DROP}, False, 0, True, 1),
    ({"EHLO": DRIP}, False, 1, True, 1),
    ({"MAIL": "451 come later"}, True, 1, True, 1),
    ({"RCPT": "450 grey"}, True, 1, True, 1),
    ({"RCPT": "550 nobody"}, True, 1, True, 1),
    ({"RCPT": HANG}, False, 1, True, 1),
    ({"DATA": "421 closing"}, True, 1, True, 1),
    ({"DATA": DROP}, False, 1, True, 1),
    ({"DOT": "452 no room"}, True, 1, True, 2),  # both times it was handed over; once was taken
    ({"DOT": DROP}, False, 1, False, 1),  # it may have been taken: not again
    ({"DOT": HANG}, False, 1, False, 1),
    ({"DOT": DRIP}, False, 1, False, 1),
    ({"QUIT": HANG}, True, 1, False, 1),
    ({"QUIT": DROP}, True, 1, False, 1),
]


@pytest.mark.parametrize(("bad", "is_whole", "attempts", "is_waiting", "arrive"), FAULTS)
def test_nothing_is_lost_nor_sent_twice(
    settings: Settings,
    bad: dict[str, str],
    is_whole: bool,
    attempts: int,
    is_waiting: bool,
    arrive: int,
) -> None:
    (notice,) = write()
    with mail_server(**bad) as server:
        serve(server, settings)
        assert turn() == is_whole
        notice.refresh_from_db()
        assert (notice.attempts, notice.send_from is not None) == (attempts, is_waiting)
        server.bad.clear()
        all_due()
        assert turn()
        assert turn()
        assert len(server.mails) == arrive
    assert not Delivery.objects.filter(send_from__isnull=False).exists()


class Killed(BaseException):
    """What a worker that is killed does at a line: nothing more."""


# the line that a worker does not come to -> the mails that arrive in the end
KILLED = [("_claim", 1), ("send", 1), ("note", 2)]


@pytest.mark.parametrize(("line", "arrive"), KILLED)
def test_a_worker_that_is_killed_loses_nothing(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, line: str, arrive: int
) -> None:
    """Killed between sending and noting it, somebody is told twice: of the same mail."""
    (delivery,) = write()

    def die(*_a: object, **_k: object) -> None:
        raise Killed

    with mail_server() as server:
        serve(server, settings)
        with monkeypatch.context() as patch:
            place = (outbox, line) if line != "send" else (mail, "_send")
            patch.setattr(*place, die)
            with pytest.raises(Killed):
                mail.send_due()
        assert mail.send_due() == (1 if line == "_claim" else 0)  # it is claimed for a minute
        all_due()
        mail.send_due()
        assert mail.send_due() == 0
        assert len(server.mails) == arrive
        ids = {row for each in server.mails for row in each.splitlines() if "Message-ID" in row}
        assert len(ids) == 1
    delivery.refresh_from_db()
    assert delivery.state == "sent"


def test_a_server_that_hangs_is_not_waited_for_with_each_mail(settings: Settings) -> None:
    write(5)
    with mail_server(MAIL=HANG) as server:
        serve(server, settings)
        assert not turn()
        assert server.connections == 1
    assert list(Delivery.objects.order_by("pk").values_list("attempts", flat=True)) == [
        *(1, 0, 0, 0, 0)
    ]


def test_few_are_sent_at_once_over_one_connection(settings: Settings) -> None:
    write(outbox.MOST_AT_ONCE + 2)
    with mail_server() as server:
        serve(server, settings)
        assert mail.send_due() == outbox.MOST_AT_ONCE
        assert mail.send_due() == 2
        assert server.connections == 2


def test_no_mail_is_begun_late_in_a_turn(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(3)
    monkeypatch.setattr(outbox, "BEGIN_SECONDS", 0.0)
    with mail_server() as server:
        serve(server, settings)
        assert mail.send_due() == 0
    assert not Delivery.objects.filter(attempts__gt=0).exists()


def test_what_could_not_be_sent_for_a_day_is_no_news(settings: Settings) -> None:
    write()
    Notice.objects.update(at=clock.database_now() - timedelta(hours=24.1))
    with mail_server() as server:
        serve(server, settings)
        assert mail.send_due() == 0
        assert server.mails == []


def test_who_is_no_member_any_more_gets_no_mail(settings: Settings) -> None:
    (delivery,) = write()
    User.objects.update(is_active=False)
    with mail_server() as server:
        serve(server, settings)
        assert mail.send_due() == 0
    delivery.refresh_from_db()
    assert (delivery.state, delivery.reason) == ("moot", "no longer a member")


@pytest.mark.django_db(transaction=True)
def test_two_workers_at_once_send_each_mail_once(settings: Settings) -> None:
    settings.EMAIL_TIMEOUT = 10
    write(6)
    with mail_server() as server:
        serve(server, settings)
        at_once(turn, turn)
        subjects = {
            line for each in server.mails for line in each.splitlines() if "Subject:" in line
        }
        assert len(server.mails) == len(subjects) == 6
    assert not Delivery.objects.filter(send_from__isnull=False).exists()


@pytest.mark.usefixtures("valkey")
@pytest.mark.django_db(transaction=True)
def test_one_of_all_workers_waits_for_the_mail_server(settings: Settings) -> None:
    write(2)
    with mail_server(HELLO=HANG) as server:
        serve(server, settings)
        at_once(mail.send_mails, mail.send_mails)
        assert mail.send_mails() == 0  # nor does anybody ask it again at once
        assert server.connections == 1


@pytest.mark.usefixtures("valkey")
def test_a_turn_that_is_over_is_the_next_one_s(settings: Settings) -> None:
    write(1)
    with mail_server() as server:
        serve(server, settings)
        assert mail.send_mails() == 1
        write(2)
        assert mail.send_mails() == 1


def test_without_valkey_nothing_is_sent(settings: Settings) -> None:
    write()
    with mail_server() as server:
        serve(server, settings)
        assert mail.send_mails() == 0
        assert server.connections == 0
