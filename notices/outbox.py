"""Sending what waits. Safe to skip, repeat, overlap, and to kill at any instant.

Of each way one thread of all workers is at it at a time, and for less than a minute. A delivery is
claimed right before it is sent: of two workers one sends it. It is sent again only when it is known
not to have arrived, after 1, 5 and 30 minutes, a webhook's also after 2 and 8 hours; where that is
not known, it is not. A worker that dies between sending and noting so is the one case in which
somebody is told twice.
"""

import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import redis
from django.db.models import QuerySet

from lanes import clock, ticks
from lanes.notices import FORGOTTEN_AT_ONCE
from notices.events import Channel
from notices.holding import holds
from notices.models import Delivery, Endpoint
from notices.routing import NEWS_FOR

log = logging.getLogger(__name__)
TURN = "ss:{}:turn"
TURN_SECONDS = 60.0  # longer than a connection may last (`lanes.smtp`) and takes to be made
MOST_AT_ONCE = 10
BEGIN_SECONDS = 15.0  # later in a turn nothing else is begun
WAITS = (timedelta(minutes=1), timedelta(minutes=5), timedelta(minutes=30))
LONG_WAITS = (*WAITS, timedelta(hours=2), timedelta(hours=8))  # programs forget nothing meanwhile
KEPT = timedelta(days=30)
LONGEST_REASON = 300
TEST = "test"  # the event of what an administrator has sent to try an endpoint


@dataclass(frozen=True, slots=True)
class Outcome:
    """How sending one ended. `status`: of an answer by HTTP, if there was one."""

    state: Delivery.State
    reason: str = ""
    status: int | None = None


SENT = Outcome(Delivery.State.SENT)
Send = Callable[[Delivery], Outcome]


def refused(reason: str, status: int | None = None) -> Outcome:
    """It is known not to have arrived: again later."""
    return Outcome(Delivery.State.WAITING, reason, status)


def in_turn(channel: Channel, send_due: Callable[[], int]) -> int:
    """Send what is due unless somebody is at it, or its server did not answer a minute ago; how
    many were sent. Without Valkey nobody can tell, and nothing is sent."""
    turn = ticks.valkey().lock(TURN.format(channel), timeout=TURN_SECONDS, thread_local=False)
    try:
        if not turn.acquire(blocking=False):
            return 0
        sent = send_due()
        with contextlib.suppress(redis.exceptions.LockError):  # it took longer
            turn.release()
        return sent
    except redis.RedisError as error:
        log.warning("%s not sent: Valkey does not answer reason=%s", channel, error)
    except OSError as error:  # smtplib's errors are among them; the turn lapses by itself
        log.warning("%s not sent: the server does not take it reason=%s", channel, error)
    return 0


def waiting(channel: Channel, now: datetime) -> list[Delivery]:
    """What is due by this way, a few at most, the oldest first."""
    due = Delivery.objects.filter(channel=channel, send_from__lte=now)
    related = due.select_related(
        "notice__recipient__preference", "notice__lane", "endpoint", "subscription"
    )
    return list(related.order_by("send_from", "pk")[:MOST_AT_ONCE])


def send_all(due: list[Delivery], send: Send) -> int:
    """Claim and send one after the other; how many were sent. What `send` raises ends it."""
    latest, sent = time.monotonic() + BEGIN_SECONDS, 0
    for delivery in due:
        now = clock.database_now()
        if time.monotonic() >= latest:
            break
        if _drop(delivery, now) or not _claim(delivery, now):
            continue
        outcome = send(delivery)
        note(delivery, outcome)
        sent += outcome.state == Delivery.State.SENT
    return sent


def _reason(outcome: Outcome) -> str:
    """What was answered, as columns hold it: a receiver may send anything."""
    return outcome.reason.replace("\0", "")[:LONGEST_REASON]


def note(delivery: Delivery, outcome: Outcome) -> None:
    """Write down how it ended; one that waits keeps the time that its claim has set."""
    told = Delivery.objects.filter(pk=delivery.pk)
    state = outcome.state
    if state == Delivery.State.WAITING and told.filter(send_from=None).exists():
        state = Delivery.State.FAILED
    values = {"state": state, "reason": _reason(outcome), "status": outcome.status}
    if state != Delivery.State.WAITING:
        values["send_from"] = None
    told.update(**values)
    words = "%s %s delivery=%s key=%s reason=%s"
    log.info(words, delivery.channel, state.value, delivery.pk, delivery.key, outcome.reason)


def forget_old(now: datetime) -> None:
    """Drop what is long over from the log, not too much at once."""
    old = Delivery.objects.filter(created_at__lt=now - KEPT, send_from=None).order_by("pk")
    numbers = list(old.values_list("pk", flat=True)[:FORGOTTEN_AT_ONCE])
    Delivery.objects.filter(pk__in=numbers).delete()


def deliveries_of(endpoint_pk: int) -> QuerySet[Delivery]:
    """An endpoint's, the newest first."""
    return Delivery.objects.filter(endpoint=endpoint_pk)


def replay(delivery: Delivery, now: datetime) -> bool:
    """Have it sent anew from the start, whatever became of it; False: it waits already."""
    over = Delivery.objects.filter(pk=delivery.pk, endpoint__isnull=False, send_from=None)
    is_replayed = over.update(
        send_from=now, replayed_at=now, attempts=0, state=Delivery.State.WAITING, reason=""
    )
    ticks.notices_soon()
    return bool(is_replayed)


def _claim(delivery: Delivery, now: datetime) -> bool:
    """Set when it is tried again should we not come to the end; False: another was first."""
    attempt = delivery.attempts
    waits = LONG_WAITS if delivery.channel == Channel.WEBHOOK else WAITS
    again = now + waits[attempt] if attempt < len(waits) else None
    still = Delivery.objects.filter(pk=delivery.pk, send_from=delivery.send_from, attempts=attempt)
    return still.update(send_from=again, attempts=attempt + 1, tried_at=now) == 1


def _drop(delivery: Delivery, now: datetime) -> bool:
    """Whether it is not to be sent any more: too old, or no longer true."""
    notice = delivery.notice
    if notice is not None and not notice.recipient.is_active:
        reason = "no longer a member"
    elif _is_old(delivery, now):
        reason = "too old"
    elif _is_switched_off(delivery):
        reason = "switched off"
    elif not holds(delivery, now):
        reason = "no longer true"
    else:
        return False
    note(delivery, Outcome(Delivery.State.MOOT, reason))
    return True


def _is_old(delivery: Delivery, now: datetime) -> bool:
    """Whether it is no news to people any more; what somebody has sent again is, as long again."""
    if delivery.channel == Channel.WEBHOOK:
        return False
    began = delivery.notice.at if delivery.notice else delivery.created_at
    return (delivery.replayed_at or began) <= now - NEWS_FOR


def _is_switched_off(delivery: Delivery) -> bool:
    """Whether its endpoint is told nothing any more, but a test; asked anew: a moment ago it may
    have said so itself."""
    if delivery.endpoint_id is None or delivery.event == TEST:
        return False
    return not Endpoint.objects.filter(pk=delivery.endpoint_id, is_on=True).exists()
