"""What is for administrators is refused to members by the service itself, whoever calls it. That
administrators may is in the tests of each service."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from django.contrib.auth.models import Group, User

from bookings import choices, deleting, maintenance, policy_service, services, test_loads
from bookings.models import Policy, State
from gateway import limits
from lanes import announcements, clock, host_services, joining, presets
from lanes.models import (
    Announcement,
    AuditEntry,
    Host,
    Lane,
    Maintenance,
    Preset,
    PresetRevision,
    TestLoad,
)
from lanes.refusals import Refusal
from lanes.services import save_lane
from notices import endpoint_services
from notices.models import Delivery, Endpoint
from slotserve import groups, invitations, members
from slotserve.models import Invitation
from tests import builders

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
Deed = Callable[[User], object]


def pending(service: Callable[..., object], actor: User) -> object:
    """Of a booking of their own that waits."""
    return service(builders.booking(owner=actor, state=State.PENDING), actor=actor)


def endpoint_changed(actor: User) -> object:
    made = Endpoint.objects.create(
        name="room",
        kind="chat",
        sealed_url="",
        shown="",
        events=[],
        created_at=clock.database_now(),
    )
    return endpoint_services.change(made, actor=actor, name="other")


def limited(actor: User) -> object:
    return limits.set_member_limits(actor, limits.RateLimits(None, None), actor=actor)


def saved(actor: User) -> object:
    wish = members.Member("m", "", "", "", is_administrator=True, is_active=True)
    return members.save_member(actor, wish, [], actor=actor)


DEEDS: dict[str, Deed] = {
    "approve": partial(pending, services.approve),
    "reject": partial(pending, services.reject),
    "choose": lambda actor: choices.choose(
        Lane(), preset=None, until=clock.database_now() + HOUR, actor=actor
    ),
    "clear a choice": lambda actor: choices.clear_choice(Lane(), actor=actor),
    "reload": lambda actor: choices.reload(Lane(), actor=actor),
    "retry": lambda actor: choices.retry(builders.lane(), actor=actor),
    "begin a test load": lambda actor: test_loads.begin(Lane(), PresetRevision(), actor=actor),
    "stop a test load": lambda actor: test_loads.stop(TestLoad(), actor=actor),
    "save rules": lambda actor: policy_service.save_policy(None, actor=actor, max_minutes=1),
    "delete rules": lambda actor: policy_service.delete_policy(Policy(), actor=actor),
    "plan maintenance": lambda actor: maintenance.plan(
        [builders.lane()], start=None, end=None, actor=actor
    ),
    "change maintenance": lambda actor: maintenance.change(Maintenance(), end=None, actor=actor),
    "end maintenance": lambda actor: maintenance.end(Maintenance(), actor=actor),
    "save a lane": lambda actor: save_lane(None, actor=actor, slug="new", name="New"),
    "delete a lane": lambda actor: deleting.delete_lane(Lane(), actor=actor),
    "save a host": lambda actor: host_services.save_host(Host(), actor=actor, name="x"),
    "delete a host": lambda actor: deleting.delete_host(Host(), actor=actor),
    "let a machine join": lambda actor: joining.create_join_token(
        actor=actor, key="gpu9", name="gpu9", address="10.0.0.9"
    ),
    "revoke a machine's token": lambda actor: joining.revoke_join_token(1, actor=actor),
    "save a preset": lambda actor: presets.save_preset(
        slug="new", model_file=builders.model_file(), actor=actor
    ),
    "save a preset's draft": lambda actor: presets.save_draft(
        Preset(), builders.model_file(), actor=actor
    ),
    "delete a preset": lambda actor: deleting.delete_preset(Preset(), actor=actor),
    "archive a preset": lambda actor: deleting.archive_preset(Preset(), actor=actor),
    "bring a preset back": lambda actor: deleting.bring_back_preset(Preset(), actor=actor),
    "announce": lambda actor: announcements.announce(
        text="Hello", level="info", starts_at=None, ends_at=None, actor=actor
    ),
    "end an announcement": lambda actor: announcements.end(Announcement(), actor=actor),
    "add an endpoint": lambda actor: endpoint_services.add(
        name="room", kind="chat", url="ntfys://ntfy.sh/x", events=["host"], actor=actor,
        now=clock.database_now(),
    ),
    "change an endpoint": endpoint_changed,
    "remove an endpoint": lambda actor: endpoint_services.remove(Endpoint(), actor=actor),
    "try an endpoint": lambda actor: endpoint_services.send_test(
        Endpoint(), actor=actor, now=clock.database_now()
    ),
    "send again": lambda actor: endpoint_services.send_again(
        Delivery(), actor=actor, now=clock.database_now()
    ),
    "save a member": saved,
    "remove a member": lambda actor: members.remove_member(actor, actor=actor, releases=True),
    "save a group": lambda actor: groups.save_group(None, "team", actor=actor),
    "delete a group": lambda actor: groups.delete_group(Group(), actor=actor),
    "invite": lambda actor: invitations.invite(
        actor=actor, email="a@example.org", groups=[], is_administrator=True, lifetime=HOUR
    ),
    "revoke an invitation": lambda actor: invitations.revoke(Invitation(), actor=actor),
    "limit a member": limited,
}  # fmt: skip


@pytest.mark.parametrize("deed", DEEDS)
def test_a_member_is_refused_and_nothing_is_written_down(deed: str) -> None:
    answer = DEEDS[deed](builders.person("member"))
    assert isinstance(answer, Refusal), answer
    assert answer.code == ("not_yours" if deed == "retry" else "not_administrator")
    assert not AuditEntry.objects.exists()
