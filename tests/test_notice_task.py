"""The task that tells people: registered where the beat sends it, and doing all of it."""

import pytest
from django.conf import settings
from django.core import mail

from lanes import clock, ticks
from lanes.models import Notice, PresetFailure
from notices import tasks
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
