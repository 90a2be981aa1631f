"""What a host sees of one lane: the facts that `next_step` decides from. Reads only."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from django.conf import settings
from django.db.models import Exists, OuterRef, Prefetch, QuerySet

from lanes import barrier, clock, probing, processes, records, stillborn
from lanes.containers import asking as containers
from lanes.containers.launching import note_of
from lanes.engines import registry
from lanes.engines.base import ServerFacts
from lanes.gpus import gate
from lanes.lifecycle import retry_due
from lanes.models import Host, Lane, Order, PresetFailure, Runtime
from lanes.steps import Barrier, Failed, Limits, Phase, Process, Running, Seen, Wanted
from wire.sealing import Sealer, read_table_keys
from wire.words import said

ORDER_NEEDS = ("target__preset", "target__model_file")
LEAST_AGE = 0.01  # the kernel's tick: a shim that has just begun has an age, too


@dataclass(frozen=True, slots=True)
class Sight:
    """One look's facts: rows for those who act, values for the one who decides."""

    lane: Lane
    order: Order
    runtime: Runtime | None
    record: records.Record | None  # only when it is this runtime's
    wanted: Wanted
    seen: Seen
    now: datetime


def limits() -> Limits:
    """The configured limits."""
    return Limits(
        drain=settings.SLOTSERVE_DRAIN_SECONDS,
        stop=settings.SLOTSERVE_STOP_TIMEOUT_SECONDS,
        load=settings.SLOTSERVE_LOAD_TIMEOUT_SECONDS,
    )


def see(lane: Lane) -> Sight | None:
    """The lane's newest order, its runtime and the processes behind it; None: never planned."""
    order = Order.objects.select_related(*ORDER_NEEDS).filter(lane=lane).first()
    if order is None:
        return None
    runtime = _alive().filter(lane=lane).first()
    decided_on = runtime.revision_id if runtime else order.target_id
    failures = list(PresetFailure.objects.filter(lane=lane, revision=decided_on))
    return _sight(lane, order, runtime, failures, clock.database_now())


def lanes_to_glance_at(host: Host) -> list[Lane]:
    """The host's lanes with all that `glance` reads, in three queries."""
    alive = Prefetch("runtimes", _alive(), to_attr="alive")
    needs = ("host", *(f"order__{name}" for name in ORDER_NEEDS))
    failures = Prefetch("failures", _failures_of_alive(), to_attr="alive_failures")
    return list(host.lanes.select_related(*needs).prefetch_related(failures, alive).order_by("pk"))


def glance(lane: Lane, now: datetime) -> Sight | None:
    """The sight of one of `lanes_to_glance_at` whose server is ready; None: see for yourself.

    It is read under no lock: only that there is nothing to do may be taken from it.
    """
    order: Order | None = getattr(lane, "order", None)
    runtime: Runtime | None = next(iter(getattr(lane, "alive", ())), None)
    if order is None or runtime is None or Phase(runtime.phase) is not Phase.READY:
        return None
    return _sight(lane, order, runtime, getattr(lane, "alive_failures", ()), now)


def _alive() -> QuerySet[Runtime]:
    return Runtime.objects.select_related("revision__preset").filter(ended_at=None)


def _failures_of_alive() -> QuerySet[PresetFailure]:
    """Those of revisions that run: rows of all that ever failed stay."""
    same = {"lane": OuterRef("lane"), "revision": OuterRef("revision")}
    return PresetFailure.objects.filter(Exists(Runtime.objects.filter(**same, ended_at=None)))


def _sight(
    lane: Lane,
    order: Order,
    runtime: Runtime | None,
    failures: Iterable[PresetFailure],
    now: datetime,
) -> Sight:
    wanted = Wanted(order.generation, order.target_id, order.is_reload, order.fresh_from)
    failed = _failed(failures, runtime.revision_id if runtime else order.target_id)
    if runtime is None:
        return Sight(lane, order, None, None, wanted, _seen_without(lane, order, failed, now), now)
    record = _record_of(runtime)
    process = _process(record)
    if process is Process.GONE:
        record = _record_of(runtime)  # its last words may have come after the first reading
    seen = _seen_with(lane, wanted, runtime, record, process)
    return Sight(lane, order, runtime, record, wanted, replace(seen, failures=failed), now)


def server_facts(sight: Sight, runtime: Runtime) -> ServerFacts:
    """What the server can do: asked of itself, within a second; else by its arguments."""
    adapter = registry.engine_of(runtime.revision)
    endpoint = _endpoint(runtime, sight.record) if sight.record else None
    path = adapter.facts_path
    answer = probing.fetch(endpoint, path) if endpoint and path else None
    return adapter.facts(runtime.revision.arguments, answer)


def leftovers(lane_pk: int, record: records.Record | None) -> list[processes.Stat]:
    """Processes of the recorded session, or that carry our name and the lane's; no others."""
    found = {s.pid: s for s in processes.of_installation(records.installation_id(), lane_pk)}
    if record and record.is_of_this_boot and record.pid is not None and record.ticks is not None:
        found |= {s.pid: s for s in processes.of_session(record.pid, record.ticks)}
    return list(found.values())


def _record_of(runtime: Runtime) -> records.Record | None:
    record = records.read_record(runtime.lane_id)
    if record is None or record.runtime != runtime.pk:
        return None
    return record if record.installation == records.installation_id() else None


def _seen_without(lane: Lane, order: Order, failures: tuple[Failed, ...], now: datetime) -> Seen:
    if order.target_id is None:
        return Seen(is_locked=records.is_locked(lane.pk))
    is_due = all(retry_due(failed, now) for failed in failures)
    cards = gate.ask(lane, order, now) if is_due else gate.Gate()
    return Seen(
        is_locked=_is_occupied(lane.pk),
        is_memory_free=cards.is_memory_free,
        shortage=cards.shortage,
        failures=failures,
    )


def _seen_with(
    lane: Lane, wanted: Wanted, runtime: Runtime, record: records.Record | None, process: Process
) -> Seen:
    running = _running(runtime)
    if process is not Process.LIVING or record is None:
        is_locked = records.is_locked(lane.pk)  # first: whoever holds it is seen in what is left
        left = leftovers(lane.pk, records.read_record(lane.pk))
        return Seen(
            running,
            process,
            age=_age(record) or _age_of_shim(left),
            exit_status=record.exit_status if record else None,
            is_stillborn=process is Process.UNBORN and stillborn.has_died(lane.pk),
            is_locked=is_locked or bool(left) or containers.has_left(record),
        )
    health = probing.Health()
    if running.phase is Phase.STARTING:
        health = _health(runtime, record)
    return Seen(
        running,
        process,
        age=_age(record),
        is_healthy=health.is_healthy,
        trouble=health.trouble,
        advice=health.advice,
        is_open=health.is_open,
        is_port_foreign=health.is_port_foreign,
        barrier=_barrier(lane, wanted, runtime, record, running.phase),
    )


def _process(record: records.Record | None) -> Process:
    if record is None:
        return Process.UNBORN
    if not record.is_of_this_boot:
        return Process.REBOOTED
    if not record.is_shim_alive:
        return Process.GONE
    return Process.UNBORN if record.pid is None else Process.LIVING


def _age(record: records.Record | None) -> float:
    return processes.age_seconds(record.shim_ticks) if record and record.is_shim_alive else 0.0


def _age_of_shim(left: list[processes.Stat]) -> float:
    """Age of the youngest shim, which may be about to write its record; 0: there is none."""
    shims = (s for s in left if processes.SHIM in processes.environment(s.pid))
    ages = [max(processes.age_seconds(s.ticks), LEAST_AGE) for s in shims]
    return min(ages, default=0.0)


def _running(runtime: Runtime) -> Running:
    return Running(
        generation=runtime.generation,
        revision_id=runtime.revision_id,
        phase=Phase(runtime.phase),
        started_at=runtime.started_at,
        ready_at=runtime.ready_at,
        drain_until=runtime.drain_until,
        term_at=runtime.term_at,
        signals_sent=runtime.signals_sent,
        reason=runtime.reason,
    )


def _is_occupied(lane_pk: int) -> bool:
    """Whether the lock is held or something of the lane still runs without it."""
    record = records.read_record(lane_pk)
    is_locked = records.is_locked(lane_pk) or bool(leftovers(lane_pk, record))
    return is_locked or containers.has_left(record)


def _health(runtime: Runtime, record: records.Record) -> probing.Health:
    if record.pid is None or record.ticks is None:
        return probing.Health()
    endpoint = _endpoint(runtime, record)
    if endpoint is None:
        words = said("Its API key cannot be read: SLOTSERVE_TABLE_KEYS changed.")
        return probing.Health(trouble=words)
    return probing.probe(endpoint, registry.engine_of(runtime.revision))


def _endpoint(runtime: Runtime, record: records.Record) -> probing.Endpoint | None:
    """Where the recorded process should answer, and to which key; None: that cannot be read."""
    key = Sealer(read_table_keys()).open(runtime.sealed_key)
    if key is None or record.pid is None or record.ticks is None:
        return None
    return probing.Endpoint(
        record.pid, record.ticks, runtime.address, runtime.port, key, record.is_container
    )


def _barrier(
    lane: Lane, wanted: Wanted, runtime: Runtime, record: records.Record, phase: Phase
) -> Barrier:
    if phase is not Phase.DRAINING or record.pid is None:
        return Barrier.UNKNOWN
    pid = note_of(lane.pk).pid if record.is_container else record.pid
    return barrier.see(lane.slug, wanted.generation, pid, runtime.port)


def _failed(rows: Iterable[PresetFailure], revision_id: int | None) -> tuple[Failed, ...]:
    return tuple(
        Failed(f.revision_id, f.count, f.failed_at, f.last_exit_at)
        for f in rows
        if f.revision_id == revision_id
    )
