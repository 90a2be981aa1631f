"""What the audit trail can say: a sentence for each kind of change, and the fields whose values it
tells. A field that is not listed here is never written down, so no secret can be."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from django.utils.functional import Promise

from lanes.models.announcements import Level
from lanes.models.audit import Subject
from wire.words import marked

SENTENCES: Mapping[str, str] = {
    "lane.made": marked("{actor} made the lane {name}"),
    "lane.changed": marked("{actor} changed the lane {name}"),
    "lane.deleted": marked("{actor} deleted the lane {name}"),
    "lane.choice": marked("{actor} on {name}: {what}"),
    "preset.made": marked("{actor} made the preset {name}"),
    "preset.changed": marked("{actor} changed the preset {name}"),
    "preset.deleted": marked("{actor} deleted the preset {name}"),
    "preset.archived": marked("{actor} archived the preset {name}"),
    "preset.brought_back": marked("{actor} brought the preset {name} back"),
    "host.changed": marked("{actor} changed the host {name}"),
    "host.deleted": marked("{actor} deleted the host {name}"),
    "host.joined": marked("A machine joined as the host {name}, by a token of {actor}"),
    "join_token.made": marked("{actor} made a join token for the host {name}"),
    "join_token.revoked": marked("{actor} revoked the join token for the host {name}"),
    "policy.made": marked("{actor} made {name}"),
    "policy.changed": marked("{actor} changed {name}"),
    "policy.deleted": marked("{actor} deleted {name}"),
    "member.made": marked("{actor} made the member {name}"),
    "member.joined": marked("{name} became a member by an invitation of {actor}"),
    "member.changed": marked("{actor} changed the member {name}"),
    "member.removed": marked("{actor} removed the member {name}"),
    "member.limits": marked("{actor} changed the limits of {name}"),
    "member.logged_in": marked("The administrator {name} logged in"),
    "group.made": marked("{actor} made the group {name}"),
    "group.changed": marked("{actor} changed the group {name}"),
    "group.deleted": marked("{actor} deleted the group {name}"),
    "invitation.made": marked("{actor} invited {name}"),
    "invitation.revoked": marked("{actor} revoked the invitation of {name}"),
    "token.made": marked("{actor} made the token {name}"),
    "token.changed": marked("{actor} changed the token {name}"),
    "token.revoked": marked("{actor} revoked the token {name}"),
    "booking": "{what}",  # as the lane's history has it
    "announcement.made": marked("{actor} announced: {name}"),
    "announcement.ended": marked("{actor} ended the announcement: {name}"),
    "endpoint.made": marked("{actor} added {name} to webhooks and chat"),
    "endpoint.changed": marked("{actor} changed {name} of webhooks and chat"),
    "endpoint.removed": marked("{actor} removed {name} from webhooks and chat"),
}

Labels = Mapping[str, str | Promise]
_NO_LABELS: Labels = MappingProxyType({})
_labels: dict[tuple[Subject, str], Labels] = {}


def tell_choices(
    subject: Subject, field: str, choices: Iterable[tuple[str, str | Promise]]
) -> None:
    """Have the values of a field told by the labels of its choices. Modules of models say so:
    the trail knows none of other apps."""
    _labels[subject, field] = dict(choices)


def labels_of(subject: Subject, field: str) -> Labels:
    """The words for its values; empty where they are told as they are."""
    return _labels.get((subject, field), _NO_LABELS)


_LIMITS = {
    "requests_per_minute": marked("requests per minute"),
    "tokens_per_minute": marked("tokens per minute"),
}
FIELDS: Mapping[Subject, Mapping[str, str]] = {
    Subject.LANE: {
        "slug": marked("short name"),
        "name": marked("name"),
        "host": marked("host"),
        "gpus": marked("GPUs"),
        "default_preset": marked("default preset"),
        "enabled": marked("enabled"),
        "needs_approval": marked("needs approval"),
        "restart_on_owner_change": marked("restart when the owner changes"),
    },
    # What a revision says is in the preset's own history, for those who may read it.
    Subject.PRESET: {"name": marked("name"), "revision": marked("revision")},
    Subject.HOST: {"name": marked("name"), "address": marked("address")},
    Subject.JOIN_TOKEN: {"address": marked("address"), "expires_at": marked("expires")},
    Subject.POLICY: {
        "may_book": marked("may book"),
        "may_book_gpu": marked("may book whole GPUs"),
        "preset_choice": marked("which presets"),
        "presets": marked("presets"),
        "grid_minutes": marked("grid in minutes"),
        "min_minutes": marked("shortest slot in minutes"),
        "max_minutes": marked("longest slot in minutes"),
        "notice_minutes": marked("notice in minutes"),
        "ahead_days": marked("days ahead"),
        "day_hours": marked("hours a day"),
        "week_hours": marked("hours a week"),
        "bookings_ahead": marked("bookings ahead"),
        "approval": marked("approval"),
        "approval_hours": marked("approval beyond hours"),
        "pending_hours": marked("expires unapproved after hours"),
        "no_show_minutes": marked("released unused after minutes"),
        "late_cancel_minutes": marked("late cancellation in minutes"),
    },
    Subject.MEMBER: {
        "username": marked("user name"),
        "email": marked("e-mail"),
        "first_name": marked("first name"),
        "last_name": marked("last name"),
        "is_staff": marked("administrator"),
        "is_active": marked("may log in"),
        "groups": marked("groups"),
        **_LIMITS,
    },
    Subject.GROUP: {"name": marked("name")},
    Subject.INVITATION: {
        "is_administrator": marked("administrator"),
        "groups": marked("groups"),
        "expires_at": marked("expires"),
    },
    Subject.TOKEN: {
        "scopes": marked("scopes"),
        "lanes": marked("lanes"),
        "expires_at": marked("expires"),
        **_LIMITS,
    },
    Subject.BOOKING: {
        "owner": marked("member"),
        "lane": marked("lane"),
        "preset": marked("preset"),
        "start": marked("start"),
        "end": marked("end"),
        "state": marked("state"),
    },
    Subject.ANNOUNCEMENT: {
        "level": marked("level"),
        "starts_at": marked("begins"),
        "ends_at": marked("ends"),
    },
    Subject.ENDPOINT: {
        "name": marked("name"),
        "kind": marked("kind"),
        "events": marked("events"),
        "is_on": marked("switched on"),
    },
}

tell_choices(Subject.ANNOUNCEMENT, "level", Level.choices)
