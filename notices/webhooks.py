"""Webhooks, signed by the scheme of standardwebhooks.com: `webhook-id`, `webhook-timestamp` and
`webhook-signature` (HMAC-SHA256 of id, time and body). The id stays over retries and replays, so
that receivers can tell what they have."""

import base64
import hashlib
import hmac
import json
import secrets
from datetime import datetime

from lanes import clock
from notices.endpoints import switch_off
from notices.events import Channel
from notices.models import Delivery, Endpoint
from notices.outbox import SENT, Outcome, in_turn, refused, send_all, waiting
from notices.posting import Answer, PostError, post
from notices.sealed import opened

PREFIX = "whsec_"
GONE = 410


def send_webhooks() -> int:
    """Send the webhooks that are due, in turn; how many were sent."""
    return in_turn(
        Channel.WEBHOOK, lambda: send_all(waiting(Channel.WEBHOOK, clock.database_now()), send)
    )


def new_secret() -> str:
    """A secret of 256 random bits, as receivers' libraries take it."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def send(delivery: Delivery) -> Outcome:
    """Send one."""
    endpoint = delivery.endpoint
    assert endpoint is not None  # noqa: S101 - a webhook is always one's
    url, secret = opened(endpoint.sealed_url), opened(endpoint.sealed_secret)
    if url is None or secret is None:
        return Outcome(Delivery.State.FAILED, "SLOTSERVE_TABLE_KEYS have changed: add it anew")
    body = json.dumps(delivery.payload, ensure_ascii=False, separators=(",", ":")).encode()
    try:
        answer = post(url, body, _headers(delivery, secret, body, clock.database_now()))
    except PostError as error:
        return refused(str(error))
    return _judged(answer, endpoint)


def signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """`v1,` and the signature."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def _headers(delivery: Delivery, secret: str, body: bytes, now: datetime) -> dict[str, str]:
    message_id, timestamp = f"msg_{delivery.pk}", int(now.timestamp())
    return {
        "Content-Type": "application/json",
        "User-Agent": "SlotServe",
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature(secret, message_id, timestamp, body),
    }


def _judged(answer: Answer, endpoint: Endpoint) -> Outcome:
    """What an answer means. 410 is how receivers end a webhook."""
    if 200 <= answer.status < 300:
        return Outcome(SENT.state, "", answer.status)
    if answer.status == GONE:
        switch_off(endpoint)
        return Outcome(Delivery.State.FAILED, "gone: it is off now", answer.status)
    words = "redirects are not followed" if 300 <= answer.status < 400 else answer.text
    return refused(" ".join(words.split()), answer.status)
