"""The task that tells people: registered where the beat sends it, and doing all of it."""

import pytest
from django.conf import settings
from django.core import mail
from django.db import connection

from lanes import clock, ticks
from lanes.models import Notice, PresetFailure
from lanes.notices import News, tell_people
from notices import chat, push, tasks, webhooks
from notices import mail as mail_way
from notices.events import PERSONAL, Channel
from notices.models import Delivery, Endpoint
from notices.outbox import SENT, Outcome
from slotserve.celery import app
from tests import builders

pytestmark = pytest.mark.django_db


def test_the_beat_s_notices_are_a_task_that_workers_know() -> None:
    app.loader.import_default_modules()
    told = {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    assert ticks.NOTICES_TASK in told
    assert told <= set(app.tasks)


@pytest.mark.usefixtures("valkey")
def test_it_writes_what_is_due_and_sends_it() -> None:
    builders.person("boss", is_staff=True, email="boss@example.org")
    now = clock.database_now()
    PresetFailure.objects.create(
        lane=builders.lane("left"),
        revision=builders.revision(builders.preset("qwen")),
        count=1,
        since=now,
        failed_at=now,
        reason="Boom.",
    )
    tasks.tell("ss:tick:notices")
    tasks.tell()
    assert Notice.objects.get().deliveries.get().state == "sent"
    assert [message.to for message in mail.outbox] == [["boss@example.org"]]
    assert mail.outbox[0].subject == "SlotServe: left: qwen does not run on left: Boom."


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("valkey")
def test_nothing_is_sent_by_any_way_inside_a_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is slow or away would keep others from the database."""
    open_ones: dict[str, bool] = {}

    def send(delivery: Delivery, *_: object) -> Outcome:
        open_ones[delivery.channel] = connection.in_atomic_block
        return SENT

    for module, name in ((mail_way, "_send"), (push, "send"), (webhooks, "send"), (chat, "send")):
        monkeypatch.setattr(module, name, send)
    now, owner = clock.database_now(), builders.person()
    tell_people([owner], News("a", "host", "So it is."), now)
    for channel in (Channel.MAIL, Channel.PUSH, Channel.WEBHOOK, Channel.CHAT):
        is_personal = channel in PERSONAL
        Delivery.objects.create(
            channel=channel,
            notice=Notice.objects.get() if is_personal else None,
            endpoint=None if is_personal else endpoint(channel),
            event="maintenance",
            key="a",
            created_at=now,
            send_from=now,
        )
    Notice.objects.update(routed_at=now, kind="other")
    tasks.tell()
    assert open_ones == {"mail": False, "push": False, "webhook": False, "chat": False}


def endpoint(kind: str) -> Endpoint:
    return Endpoint.objects.create(
        name=kind, kind=kind, events=["maintenance"], created_at=clock.database_now()
    )
