"""A database with something in every table that matters, of odd values too. Also a program:
`python -m tests.filled_database` migrates and fills the database of the environment."""

from datetime import timedelta
from typing import Any

import django
from django.core.management import call_command

if __name__ == "__main__":
    django.setup()

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.backends.db import SessionStore

from bookings.models import Booking, Policy
from gateway.models import ApiToken, MemberLimit, TableState, UsageRecord
from lanes.models import (
    LaneEvent,
    LoadRecord,
    ManualChoice,
    Order,
    PresetFailure,
    ReloadRequest,
    Runtime,
)
from tests import builders
from tests.builders import at

ODD = "Zeile\nmit 'Anführung', \"quotes\", % and emoji 🦙"
USAGE_ROWS = 1100  # more than a chunk


def fill() -> None:
    """Everything, with numbers that have gaps."""
    owner, boss = builders.person("owner", email="o@example.org"), builders.administrator()
    _people(owner, boss)
    preset = builders.preset(
        "qwen", arguments=["-c", "4096", ODD], environment={"Z": "1", "A": "2"}, aliases=["q"]
    )
    lane = builders.lane("demo", default_preset=preset)
    lane.gpus.add(builders.gpu(memory_bytes=24 * 10**9))
    _lane(lane, preset.current, boss)
    for hour in (0, 60, 120):
        builders.booking(lane=lane, owner=owner, preset=preset, start=at(hour), purpose=ODD)
    builders.booking(lane=lane, owner=owner, preset=preset, start=at(0), state="cancelled")
    builders.booking(lane=lane, owner=owner, kind="gpu", start=at(300))
    rules = Policy.objects.create(lane=lane, group=owner.groups.get(), week_hours=0.1 + 0.2)
    rules.presets.add(preset)
    Policy.objects.create(may_book=False, preset_choice="listed")
    Booking.objects.order_by("-pk")[0].delete()  # its number must never be given again
    _gateway(lane, owner)


def _people(owner: Any, boss: Any) -> None:
    group = Group.objects.create(name="operators")
    group.permissions.add(Permission.objects.get(codename="view_lane"))
    owner.groups.add(group)
    owner.user_permissions.add(Permission.objects.get(codename="add_booking"))
    lane_type = ContentType.objects.get(app_label="lanes", model="lane")
    LogEntry.objects.create(
        user=boss, content_type=lane_type, object_repr=ODD, action_flag=CHANGE, change_message="[]"
    )
    EmailAddress.objects.create(user=owner, email="o@example.org", verified=True, primary=True)
    Authenticator.objects.create(user=owner, type="totp", data={"secret": "s", "n": [1.0, None]})
    session = SessionStore()
    session["who"] = owner.pk
    session.create()


def _lane(lane: Any, revision: Any, boss: Any) -> None:
    common: dict[str, Any] = {"lane": lane, "generation": 3}
    Order.objects.create(
        **common, target=revision, ordered_at=at(0), decided_at=at(0.00001), sentence=ODD
    )
    Runtime.objects.create(
        **common,
        revision=revision,
        phase="ready",
        phase_since=at(0),
        started_at=at(-1),
        address="127.0.0.1",
        port=18100,
        sealed_key="sealed",
        capabilities=["vision", "completion"],
    )
    LaneEvent.objects.create(lane=lane, at=at(0), kind="ready", sentence=ODD, actor=boss)
    choice: dict[str, Any] = {"made_at": at(0), "until": at(60), "made_by": boss}
    ManualChoice.objects.create(lane=lane, **choice)
    ReloadRequest.objects.create(lane=lane, asked_at=at(0), asked_by=None)
    PresetFailure.objects.create(lane=lane, revision=revision, count=2, reason=ODD)
    LoadRecord.objects.create(
        **common, revision=revision, started_at=at(0), seconds=0.1 + 0.2, succeeded=True
    )


def _gateway(lane: Any, owner: Any) -> None:
    token = ApiToken.objects.create(
        owner=owner, name="t", prefix="ss_abc", digest="d" * 64, scopes=["read"], created_at=at(0)
    )
    token.lanes.add(lane)
    MemberLimit.objects.create(member=owner, requests_per_minute=0)
    TableState.objects.create(pk=1, version=2**42, digest="d")
    made = [
        UsageRecord(
            request_id=f"request-{number}",
            at=at(0) + timedelta(microseconds=number),
            owner=owner,
            token=token,
            lane=lane,
            route="/v1/chat/completions",
            status=200,
            duration_ms=number / 3,
            bytes_out=2**40 + number,
        )
        for number in range(USAGE_ROWS)
    ]
    UsageRecord.objects.bulk_create(made)


if __name__ == "__main__":
    call_command("migrate", interactive=False, verbosity=0)
    fill()
