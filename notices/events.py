"""What people can be told of, and the ways by which they are told unless they choose others."""

from collections.abc import Mapping
from types import MappingProxyType

from django.db import models
from django.utils.translation import gettext_lazy as _


class Event(models.TextChoices):
    """Something that a person may want to know. The values are names that webhooks carry."""

    CONFIRMED = "confirmed", _("Booking confirmed")
    CHANGED = "changed", _("Booking moved or changed")
    DECISION_NEEDED = "decision_needed", _("A booking waits for your decision")
    APPROVED = "approved", _("Booking approved")
    REJECTED = "rejected", _("Booking rejected")
    CANCELLED = "cancelled", _("Booking cancelled")
    EXPIRED = "expired", _("Booking never approved")
    WARM = "warm", _("Booked model loaded")
    STARTING = "starting", _("Slot is about to start")
    ENDING = "ending", _("Slot is about to end")
    RELEASED = "released", _("Slot released early")
    TRANSFERRED = "transferred", _("Booking transferred")
    SHARED = "shared", _("Booking shared with you")
    FAILURE = "failure", _("Model failed, the default serves")
    RECOVERED = "recovered", _("Failed model runs again")
    OUTSIDER = "outsider", _("Foreign process in a slot")
    FREED = "freed", _("Time has become free")
    MAINTENANCE = "maintenance", _("Maintenance in a slot")
    OFFERED = "offered", _("Time you waited for is held for you")
    HOST = "host", _("Host in trouble, or back")


class Channel(models.TextChoices):
    """A way to a person. Chat rooms and webhooks are the installation's, not a person's."""

    APP = "app", _("In the app")
    MAIL = "mail", _("E-mail")
    PUSH = "push", _("Browser")
    CHAT = "chat", _("Chat")
    WEBHOOK = "webhook", _("Webhook")


PERSONAL = (Channel.APP, Channel.MAIL, Channel.PUSH)
FOR_ADMINISTRATORS = frozenset({Event.DECISION_NEEDED})
_ALL = frozenset(PERSONAL)
# A person's ways for what is not in it: all three. In the app without `APP`: listed as read.
DEFAULTS: Mapping[Event, frozenset[Channel]] = MappingProxyType(
    {
        Event.CONFIRMED: frozenset({Channel.MAIL}),
        Event.CHANGED: frozenset({Channel.MAIL}),
        Event.RELEASED: frozenset({Channel.MAIL}),
        Event.WARM: frozenset({Channel.PUSH}),
        Event.FREED: frozenset(),
    }
)
_KINDS = {"host_away": Event.HOST, "host_back": Event.HOST}


def default_channels(event: Event) -> frozenset[Channel]:
    """How people are told of it who chose nothing."""
    return DEFAULTS.get(event, _ALL)


def event_of(kind: str) -> Event | None:
    """What a notice's kind is to people; None: a kind of somebody else's."""
    if kind in _KINDS:
        return _KINDS[kind]
    return Event(kind) if kind in Event.values else None
