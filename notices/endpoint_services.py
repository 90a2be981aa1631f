"""What administrators do with webhooks and chat rooms. Pages and REST call these."""

import logging
from collections.abc import Collection
from datetime import datetime
from urllib.parse import urlsplit

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from lanes import audit, ticks
from lanes.models import Subject
from lanes.refusals import NOT_ADMINISTRATOR, Refusal
from notices import chat
from notices.endpoints import about, delivery_to
from notices.events import Event
from notices.models import Delivery, Endpoint, EndpointKind
from notices.outbox import TEST, replay
from notices.posting import url_objection
from notices.sealed import sealed
from notices.webhooks import new_secret

log = logging.getLogger(__name__)
LONGEST_NAME, LONGEST_URL = 100, 2000


@transaction.atomic
def add(
    *, name: str, kind: str, url: str, events: Collection[str], actor: User, now: datetime
) -> tuple[Endpoint, str] | Refusal:
    """A new endpoint, and a webhook's secret, which is shown this once.

    Refusals: not_administrator, bad_name, bad_address, unknown_event.
    """
    url = url.strip()
    refusal = _objection(actor, name, events) or _address_objection(kind, url)
    if refusal:
        return refusal
    secret = new_secret() if kind == EndpointKind.WEBHOOK else ""
    made = Endpoint.objects.create(
        name=name.strip(),
        kind=kind,
        sealed_url=sealed(url),
        shown=_shown(kind, url),
        sealed_secret=sealed(secret) if secret else "",
        events=sorted(set(events)),
        created_at=now,
    )
    audit.note("endpoint.made", actor, about(made), after=audit.facts_of(made, Subject.ENDPOINT))
    log.info("endpoint added endpoint=%s kind=%s by=%s", made.pk, kind, actor.pk)
    return made, secret


@transaction.atomic
def change(
    endpoint: Endpoint,
    *,
    actor: User,
    name: str | None = None,
    events: Collection[str] | None = None,
    is_on: bool | None = None,
) -> Endpoint | Refusal:
    """Change what is given. Refusals: not_administrator, not_found, bad_name, unknown_event."""
    held = Endpoint.objects.select_for_update().filter(pk=endpoint.pk).first()
    if held is None:
        return Refusal("not_found", _("This has been removed meanwhile."))
    name = held.name if name is None else name
    events = held.events if events is None else events
    refusal = _objection(actor, name, events)
    if refusal:
        return refusal
    before = audit.facts_of(held, Subject.ENDPOINT)
    held.name, held.events = name.strip(), sorted(set(events))
    held.is_on = held.is_on if is_on is None else is_on
    held.save(update_fields=["name", "events", "is_on"])
    after = audit.facts_of(held, Subject.ENDPOINT)
    audit.note("endpoint.changed", actor, about(held), before=before, after=after)
    log.info("endpoint changed endpoint=%s by=%s", held.pk, actor.pk)
    return held


@transaction.atomic
def remove(endpoint: Endpoint, *, actor: User) -> Refusal | None:
    """Delete it with its log. Refusal: not_administrator."""
    if not actor.is_staff:
        return NOT_ADMINISTRATOR
    log.info("endpoint removed endpoint=%s by=%s", endpoint.pk, actor.pk)
    audit.note("endpoint.removed", actor, about(endpoint))
    endpoint.delete()
    return None


def send_test(endpoint: Endpoint, *, actor: User, now: datetime) -> Delivery | Refusal:
    """Have it told of nothing but this test. Refusal: not_administrator."""
    if not actor.is_staff:
        return NOT_ADMINISTRATOR
    words = {"sentence": _("This is a test by %(name)s.") % {"name": actor.get_username()}}
    key = f"{TEST}:{now.timestamp():.6f}"
    delivery = delivery_to(endpoint, TEST, key, words, now)
    delivery.save()
    ticks.notices_soon()
    return delivery


def send_again(delivery: Delivery, *, actor: User, now: datetime) -> Delivery | Refusal:
    """Have one sent anew. Refusals: not_administrator, wrong_state."""
    if not actor.is_staff:
        return NOT_ADMINISTRATOR
    if not replay(delivery, now):
        return Refusal("wrong_state", _("It waits to be sent already."))
    delivery.refresh_from_db()
    return delivery


def _objection(actor: User, name: str, events: Collection[str]) -> Refusal | None:
    if not actor.is_staff:
        return NOT_ADMINISTRATOR
    if not 0 < len(name.strip()) <= LONGEST_NAME:
        return Refusal("bad_name", _("Give it a name of 1 to 100 characters."))
    if not events or set(events) - set(Event.values):
        return Refusal("unknown_event", _("Choose of what it is told, from what there is."))
    return None


def _address_objection(kind: str, url: str) -> Refusal | None:
    if len(url) > LONGEST_URL:
        return Refusal("bad_address", _("This address is too long."))
    if kind == EndpointKind.CHAT:
        known = ", ".join(sorted(chat.SCHEMES))
        words = _("This is no address of a chat service that is known: %(known)s.")
        return None if chat.is_usable(url) else Refusal("bad_address", words % {"known": known})
    wrong = url_objection(url)
    words = _("This address cannot be used: %(why)s.")
    return Refusal("bad_address", words % {"why": wrong}) if wrong else None


def _shown(kind: str, url: str) -> str:
    """What may be shown: paths of webhooks and all of chats' addresses may be secrets."""
    if kind == EndpointKind.CHAT:
        return f"{chat.scheme_of(url)}://…"
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/…"[:255]
