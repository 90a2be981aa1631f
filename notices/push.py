"""Notices in browsers (RFC 8030, 8188, 8291, 8292). What is pushed is encrypted for the browser;
who passes it on learns when somebody is told, and nothing else.

Members name the addresses of their browsers' services. So they are posted to as webhooks are.
"""

import base64
import binascii
import contextlib
import functools
import json
import logging
import os
import secrets
import stat
import time
from email.utils import parseaddr
from pathlib import Path
from urllib.parse import urlsplit

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from django.conf import settings
from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from py_vapid import Vapid02, VapidException
from pywebpush import WebPusher

from lanes import clock
from lanes.models import Notice
from lanes.refusals import Refusal
from notices.addresses import page_url
from notices.events import Channel
from notices.models import Delivery, Subscription
from notices.outbox import SENT, Outcome, in_turn, refused, send_all, waiting
from notices.posting import PostError, post, url_objection
from notices.preferences import digest, in_words_of, preference_of
from notices.sealed import opened, sealed
from wire.words import said

log = logging.getLogger(__name__)
KEY_FILE = "vapid-key.pem"
KEY_TROUBLES = (OSError, ValueError, VapidException)
SCHEMES = ("https",)
MOST_BROWSERS = 20
LONGEST_TEXT = 300  # services take 4096 bytes
TTL_SECONDS = 3600  # later it is no news
GONE = (404, 410)
UNUSABLE = Refusal("bad_subscription", said("This is no subscription that browsers make."))


def send_pushes() -> int:
    """Push what is due, in turn; how many were taken."""
    return in_turn(Channel.PUSH, send_due)


def send_due() -> int:
    """Push what is due, a few at most; how many were taken. Nothing is claimed while our key cannot
    be used: that uses no attempts up."""
    due = waiting(Channel.PUSH, clock.database_now())
    return send_all(due, send) if due and public_key() else 0


def subscribe(
    person: User, *, endpoint: str, p256dh: str, auth: str, browser: str = ""
) -> Subscription | Refusal:
    """Have a browser told of what the person is told. Refusals: bad_subscription, too_many."""
    if len(endpoint) > 2000 or url_objection(endpoint, schemes=SCHEMES):
        return UNUSABLE
    if not _are_keys(p256dh, auth):
        return UNUSABLE
    own, kept = Subscription.objects.filter(person=person), digest(endpoint)
    if own.exclude(digest=kept).count() >= MOST_BROWSERS:
        return Refusal("too_many", _("That are too many browsers: remove one first."))
    text = json.dumps({"endpoint": endpoint, "keys": {"p256dh": p256dh, "auth": auth}})
    values = {
        "person": person,
        "sealed": sealed(text),
        "browser": browser.strip()[:100],
        "created_at": clock.database_now(),
    }
    return Subscription.objects.update_or_create(digest=kept, defaults=values)[0]


def unsubscribe(person: User, pk: int) -> bool:
    """Tell one of the person's browsers nothing more; False: it is none of theirs."""
    return bool(Subscription.objects.filter(person=person, pk=pk).delete()[0])


def public_key() -> str:
    """What browsers know us by: the point, in URL-safe base64; empty while our key is unusable."""
    try:
        vapid = _vapid()
    except KEY_TROUBLES:
        log.exception("nothing is pushed: %s cannot be used", KEY_FILE)
        return ""
    point = vapid.public_key.public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
    )
    return base64.urlsafe_b64encode(point).decode().rstrip("=")


def send(delivery: Delivery) -> Outcome:
    """Push one. A browser that is gone is forgotten."""
    subscription, notice = delivery.subscription, delivery.notice
    assert subscription is not None and notice is not None  # noqa: S101, PT018 - always of both
    text = opened(subscription.sealed)
    if text is None:
        return Outcome(Delivery.State.FAILED, "SLOTSERVE_TABLE_KEYS have changed")
    told = json.loads(text)
    body = WebPusher(told).encode(_payload(notice), content_encoding="aes128gcm")["body"]
    try:
        answer = post(told["endpoint"], body, _headers(told["endpoint"]))
    except PostError as error:
        return refused(str(error))
    if answer.status in GONE:
        Subscription.objects.filter(pk=subscription.pk).delete()
        return Outcome(Delivery.State.FAILED, "gone", answer.status)
    is_taken = 200 <= answer.status < 300
    return SENT if is_taken else refused(" ".join(answer.text.split()), answer.status)


def _payload(notice: Notice) -> bytes:
    with in_words_of(preference_of(notice.recipient)):
        sentence = notice.told_sentence[:LONGEST_TEXT]
    name = "bookings" if notice.booking_id_for is not None else "notices"
    path = urlsplit(page_url(name)).path or "/notices/"
    said = {"title": "SlotServe", "body": sentence, "tag": notice.key, "path": path}
    return json.dumps(said, ensure_ascii=False).encode()


def _headers(endpoint: str) -> dict[str, str]:
    """Who pushes, signed for this service alone."""
    parts = urlsplit(endpoint)
    claims = {
        "sub": f"mailto:{parseaddr(settings.DEFAULT_FROM_EMAIL)[1]}",
        "aud": f"{parts.scheme}://{parts.netloc}",
        "exp": int(time.time()) + 12 * 3600,
    }
    signed: dict[str, str] = _vapid().sign(claims)
    more = {"Content-Encoding": "aes128gcm", "TTL": str(TTL_SECONDS), "Urgency": "high"}
    return {**signed, **more, "Content-Type": "application/octet-stream"}


@functools.cache
def _vapid() -> Vapid02:
    """Our key, made once in the data folder."""
    return Vapid02.from_pem(_key_text(Path(settings.SLOTSERVE_DATA) / KEY_FILE))


def _key_text(path: Path) -> bytes:
    """The file's; of two processes that make it at once the first one's counts."""
    if not path.exists():
        new = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
        key = ec.generate_private_key(ec.SECP256R1())
        form = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        text = key.private_bytes(serialization.Encoding.PEM, *form)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(text)
        with contextlib.suppress(FileExistsError):
            os.link(new, path)
        new.unlink()
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        log.warning("%s may be read by others: chmod 600", path)
    return path.read_bytes()


def _are_keys(p256dh: str, auth: str) -> bool:
    """A point of the curve, and 16 bytes."""
    try:
        point, secret = (_decoded(each) for each in (p256dh, auth))
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
    except (ValueError, binascii.Error, UnsupportedAlgorithm):
        return False
    return len(secret) == 16


def _decoded(text: str) -> bytes:
    if len(text) > 200:
        raise ValueError(text)
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
