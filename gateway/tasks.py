"""Celery's ticks: the beat, and a plan out of turn. Each is safe to skip, repeat and overlap."""

import logging
from collections.abc import Callable
from datetime import timedelta

import redis
from celery import current_app, shared_task
from django.conf import settings
from kombu.exceptions import OperationalError

from bookings import test_loads
from bookings.planning import plan_lanes
from bookings.rule_keeping import expire_pending, release_no_shows
from bookings.waitlist_keeping import end_holds, offer_freed
from gateway.publish import publish
from gateway.silence import listen
from gateway.turns import Turns
from gateway.usage import ingest
from gateway.usage_days import roll_up
from gateway.usage_forgetting import forget_records
from lanes import audit, clock, ticks
from lanes.host_watch import note_asked, watch_hosts
from lanes.models import Host

log = logging.getLogger(__name__)

BEAT_TASK = "slotserve.beat"
LOOK_HOST_TASK = "slotserve.look_host"
MOST_WAITING_LOOKS = 5  # in a host's queue; more only pile up while its worker is down
MOST_PLANS = 3  # in one tick, while other planners are first


@shared_task(name=BEAT_TASK)
def beat() -> None:
    """Every SLOTSERVE_TICK_SECONDS: plan all lanes, publish, wake the hosts, take usage in,
    keep rules."""
    _guarded("watch hosts", watch_hosts)
    _guarded("test loads", test_loads.follow)
    _guarded("plan", _planning.take)
    _guarded("publish", _publishing.take)
    _guarded("look at hosts", look_at_hosts)
    _guarded("ingest", take_usage_in)
    _guarded("keep rules", keep_rules)
    _guarded("waitlist", keep_waitlist)


@shared_task(name=ticks.PLAN_TASK)
def plan(key: str) -> None:
    """Plan all lanes out of turn and publish; `key` names the request that this one answers."""
    ticks.taken_up(key)
    _guarded("watch hosts", watch_hosts)
    _guarded("test loads", test_loads.follow)
    _guarded("plan", _planning.take)
    _guarded("publish", _publishing.take)
    _guarded("waitlist", keep_waitlist)


@shared_task(name=ticks.INGEST_TASK)
def follow_up(key: str) -> None:
    """Go on with a backlog of usage; `key` names the request that this one answers."""
    ticks.taken_up(key)
    _guarded("ingest", take_usage_in)


@shared_task(name="slotserve.usage_days")
def usage_days() -> None:
    """Each minute: usage by day, today's until now; then requests that are old are forgotten."""
    _guarded("usage by day", lambda: roll_up(clock.database_now(), forget_records))


@shared_task(name="slotserve.audit")
def prune_audit() -> None:
    """Every ten minutes: drop what the audit trail has kept long enough."""
    kept = timedelta(days=settings.SLOTSERVE_AUDIT_DAYS)
    _guarded("prune the audit trail", lambda: audit.prune(clock.database_now(), kept))


def take_usage_in() -> None:
    """For about a second. A backlog is not left until the next beat: another task goes on."""
    if ingest().is_more:
        ticks.request_ingest()


def keep_rules() -> None:
    """Have bookings expire that nobody approved, and end those that nobody uses. After usage was
    taken in, so that who came is known."""
    now = clock.database_now()
    expire_pending(now)
    release_no_shows(now, listen)


def keep_waitlist() -> None:
    """Free what was held and not confirmed; hold what is free for those who wait for it."""
    now = clock.database_now()
    end_holds(now)
    offer_freed(now)


def plan_all() -> None:
    """Plan every lane. Where another planner was first, once more: it may have known less."""
    lost = plan_lanes().lost
    for _ in range(MOST_PLANS - 1):
        if not lost:
            return
        lost = plan_lanes(lost).lost
    if lost:
        ticks.request_plan()


def look_at_hosts() -> None:
    """Have each host look at its lanes."""
    hosts = list(Host.objects.all())
    try:
        for host in hosts:
            _look_at(host.key)
    except (redis.RedisError, OperationalError, OSError) as error:
        log.warning("hosts not woken: the broker does not answer reason=%s", error)
        return
    note_asked(hosts, clock.database_now())


def _look_at(host_key: str) -> None:
    """No expiry: a host whose clock is ahead would throw each message away, and nobody would hear
    that it is. Few wait at a time, and one that is late does no harm."""
    queue = ticks.host_queue(host_key)
    if ticks.valkey().llen(queue) < MOST_WAITING_LOOKS:
        current_app.send_task(LOOK_HOST_TASK, args=(host_key,), queue=queue, retry=False)


def publish_all() -> None:
    """Publish the route table."""
    publish()


_planning = Turns(plan_all)
_publishing = Turns(publish_all)


def _guarded(name: str, step: Callable[[], object]) -> None:
    """One step failing must not keep the others from being taken."""
    try:
        step()
    except Exception:
        log.exception("step failed step=%s", name)
