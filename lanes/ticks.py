"""Asking for a look sooner than the next beat. Losing or doubling such a message changes nothing.

Tasks are named, not imported: the planner lives above this app. Every request is coalesced
by a script in Valkey, and a broker that is down only means that the next beat does the work.
"""

import logging
import threading
from datetime import datetime
from functools import partial

import redis
from celery import current_app
from django.conf import settings
from django.db import transaction
from kombu.exceptions import OperationalError
from redis.backoff import NoBackoff
from redis.retry import Retry

log = logging.getLogger(__name__)

PLAN_TASK = "slotserve.plan"
LOOK_TASK = "slotserve.look"
LOG_TASK = "slotserve.put_log_pages"
INGEST_TASK = "slotserve.ingest"
NOTICES_TASK = "slotserve.notices"
SCAN_TASK = "slotserve.scan_models"
HASH_TASK = "slotserve.hash_models"
PROBE_TASK = "slotserve.probe_programs"
TRIAL_TASK = "slotserve.try_model"
EXPIRES_SECONDS = 30
PENDING_SECONDS = 5  # how long a lost message can hold up the next request for the same tick
# KEYS: one. ARGV: milliseconds. A key with more left than any was given is from before Valkey's
# clock was set back, and would be there for as long as that.
_CLAIM = """
local left = redis.call('PTTL', KEYS[1])
if left ~= -2 and left <= tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], '1', 'PX', ARGV[1])
return 1
"""
_client: redis.Redis | None = None
_making = threading.Lock()


def valkey() -> redis.Redis:
    """This process's client of Valkey, with short limits; it reconnects by itself."""
    global _client  # noqa: PLW0603 - one connection pool a process
    with _making:  # a second client would close its connections when the first takes its place
        if _client is None:
            _client = redis.Redis.from_url(
                settings.REDIS_URL,
                socket_timeout=1.0,
                socket_connect_timeout=1.0,
                retry=Retry(NoBackoff(), 1),  # a booking waits for it: once more, and at once
            )
        return _client


def host_queue(host_key: str) -> str:
    """The Celery queue that one host's worker serves."""
    return f"host.{host_key}"


def plan_soon() -> None:
    """After this transaction commits, have all lanes planned; never fails the caller."""
    transaction.on_commit(partial(request_plan), robust=True)


def look_soon(lane_pk: int, host_key: str) -> None:
    """After this transaction commits, have the lane's host look at it; never fails the caller."""
    transaction.on_commit(partial(request_look, lane_pk, host_key), robust=True)


def notices_soon() -> None:
    """After this transaction commits, have people told what is new; never fails the caller."""
    transaction.on_commit(partial(request_notices), robust=True)


def request_plan() -> None:
    """Queue one planning tick; one pending tick for all who ask."""
    key = "ss:tick:plan"
    _send(PLAN_TASK, key=key, queue="plan", args=(key,))


def request_plan_at(moment: datetime, seconds: float) -> None:
    """Queue one planning tick for a moment that is so many seconds away; one for each moment.

    Seconds, because a worker's clock is not the database's: by its own it would come too late, or
    too early and again and again.
    """
    key = f"ss:tick:plan:{moment.timestamp():.3f}"
    _send(PLAN_TASK, key=key, queue="plan", args=(key,), delay=seconds)


def request_look(lane_pk: int, host_key: str, delay: float = 0.0) -> None:
    """Queue one look of a lane's host, now or in `delay` seconds; one pending look for each."""
    key = f"ss:tick:look:{lane_pk}" + (":later" if delay else "")
    _send(LOOK_TASK, key=key, queue=host_queue(host_key), args=(lane_pk, key), delay=delay)


def request_log(run: int, host_key: str, page: int) -> None:
    """Have the run's host put a page of its log into Valkey; one pending request for each."""
    key = f"ss:tick:log:{run}:{page}"
    _send(LOG_TASK, key=key, queue=host_queue(host_key), args=(run, page, key))


def request_ingest() -> None:
    """Queue one more taking in of usage records; one pending for all who ask."""
    key = "ss:tick:ingest"
    _send(INGEST_TASK, key=key, queue="plan", args=(key,))


def request_notices() -> None:
    """Queue one telling of what people should know; one pending for all who ask."""
    key = "ss:tick:notices"
    _send(NOTICES_TASK, key=key, queue="plan", args=(key,))


def scan_soon(host_key: str) -> None:
    """After this transaction commits, have the host look for models; never fails the caller."""
    transaction.on_commit(partial(request_scan, host_key), robust=True)


def request_scan(host_key: str, delay: float = 0.0) -> None:
    """Queue one look of a host through its folders of models; one pending for all who ask."""
    key = f"ss:tick:scan:{host_key}"
    _send(SCAN_TASK, key=key, queue=host_queue(host_key), args=(host_key, key), delay=delay)


def request_hash(host_key: str, delay: float = 0.0) -> None:
    """Queue one step of hashing a host's models; one pending for all who ask."""
    key = f"ss:tick:hash:{host_key}"
    _send(HASH_TASK, key=key, queue=host_queue(host_key), args=(host_key, key), delay=delay)


def request_probe(host_key: str) -> None:
    """Have a host ask its programs which flags they take; one pending request for all who ask."""
    key = f"ss:tick:probe:{host_key}"
    _send(PROBE_TASK, key=key, queue=host_queue(host_key), args=(host_key, key))


def request_trial(test: int, host_key: str) -> None:
    """Have a host send a test load's trial request; one pending request for all who ask."""
    key = f"ss:tick:trial:{test}"
    _send(TRIAL_TASK, key=key, queue=host_queue(host_key), args=(test, key))


def claim(key: str, seconds: float) -> bool:
    """Whether nobody had this key, which is ours now for so long at most; redis.RedisError."""
    client = valkey()
    return bool(client.eval(_CLAIM, 1, key, f"{seconds * 1000:.0f}"))


def taken_up(key: str) -> None:
    """A tick begins: the next request for one must queue another. Call before reading facts."""
    try:
        valkey().delete(key)
    except redis.RedisError as error:
        log.warning("could not clear pending tick key=%s reason=%s", key, error)


def _send(
    task: str,
    *,
    key: str,
    queue: str,
    args: tuple[object, ...],
    delay: float = 0.0,
) -> None:
    try:
        if not claim(key, PENDING_SECONDS):
            return
        current_app.send_task(
            task,
            args=args,
            queue=queue,
            countdown=delay or None,
            expires=EXPIRES_SECONDS + delay,
            retry=False,
        )
    except (redis.RedisError, OperationalError, OSError) as error:
        log.warning("tick not sent task=%s key=%s reason=%s", task, key, error)
