"""Starting one model server: its row first, then its shim.

The order is read again under a lock right before the row is written, and the row (of which a lane
has one that has not ended) before anything is spawned: so nothing starts twice, and a worker killed
in between leaves a row that its successor sees to have no process. Programs and folders are looked
at outside of that lock, which planner and reports wait for: a file system may hang.
"""

import json
import logging
import os
import pwd
import secrets
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction

from lanes import (
    clock,
    folders,
    known_programs,
    log_keeping,
    ports,
    processes,
    records,
    ticks,
    watch,
)
from lanes.containers import launching
from lanes.engines import registry
from lanes.engines.base import Launch, ServerSpec
from lanes.failures.causes import Cause, Kind
from lanes.host_services import is_loopback
from lanes.models import Host, Lane, Order, Phase, PresetRevision, Runtime
from lanes.refusals import Refusal
from lanes.reporting import tell
from lanes.steps import Start
from wire.sealing import Sealer, read_table_keys
from wire.words import said

log = logging.getLogger(__name__)
SHIM = str(Path(__file__).with_name("shim.py"))
START_SECONDS = 5.0  # a shim that comes later does nothing; less than Limits.spawn
PASSED_ON = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH")


@dataclass(frozen=True, slots=True)
class NotSpawned:
    """A runtime whose shim could not be started."""

    runtime: Runtime
    error: Exception


def start(lane: Lane, step: Start) -> Runtime | NotSpawned | Cause | Refusal | None:
    """Start what the order wants now.

    A cause: this host does not start it, which only a person can mend. A refusal: something is in
    the way that passes by itself. None: the order has changed or somebody was first.
    """
    key = secrets.token_hex(32)  # no program takes it for a flag, and no file for a number
    revision = _revision(step)
    if revision is None:
        return None
    refused = _refusal(lane, revision, key)
    if refused:
        return refused
    try:
        with transaction.atomic():
            runtime = _claim(lane, step, revision, key)
    except IntegrityError:
        log.info("not started lane=%s reason=it has a server already", lane)
        return None
    if not isinstance(runtime, Runtime):
        return runtime
    try:
        spawn(lane, runtime, key)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        log.exception("shim not started lane=%s", lane.slug)
        return NotSpawned(runtime, error)  # what it got of its order is not whole: it does nothing
    return runtime


def spawn(lane: Lane, runtime: Runtime, key: str) -> None:
    """Start the shim of this runtime. What fails from here on shows as a server that never was."""
    log_keeping.tidy(lane.pk)
    order = json.dumps(shim_order(lane, runtime, key)).encode()
    names = {
        **_passed_on(),
        **records.marks(lane.pk),
        processes.SHIM: "1",
    }
    with records.shim_errors(lane.pk).open("wb") as stderr:
        child = subprocess.Popen(
            [sys.executable, "-I", SHIM],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            env=names,
            cwd="/",
            start_new_session=True,
        )
    watch.own(child, lane.pk, lane.host.key)
    _hand_over(child, order)


def shim_order(lane: Lane, runtime: Runtime, key: str) -> dict[str, object]:
    """Everything the shim is told, as it reads it from its standard input."""
    image = runtime.revision.image
    inside = launching.INSIDE if image else runtime.address
    flags = known_programs.known_flags(lane.host, runtime.revision)
    spec = replace(server_spec(lane, runtime.revision, inside, runtime.port, key), flags=flags)
    launch = launch_of(runtime.revision, spec)
    run_as = None if image else as_user()  # the attendant speaks to the Docker Engine as we do
    folders.prepare(spec.folder, launch, run_as)
    afterwards: tuple[str, ...] = ()
    if image:
        container = launching.container_of(runtime, spec, launch)
        launch, afterwards = launching.attended(container), launching.REMOVAL
    return {
        "argv": list(launch.argv),
        "environment": environment(lane.pk, spec, launch),
        "afterwards": list(afterwards),
        "secret": key,
        "folder": "/",
        "lock_path": str(records.lock_path(lane.pk)),
        "record_path": str(records.record_path(lane.pk)),
        "log_path": runtime.log_path,
        "log_bytes": settings.SLOTSERVE_LOG_BYTES,
        "run_as": run_as,
        "start_by": time.monotonic() + START_SECONDS,
        "record": {
            "installation": records.installation_id(),
            "lane": lane.pk,
            "runtime": runtime.pk,
            "generation": runtime.generation,
            "boot_id": processes.boot_id(),
            "is_container": bool(image),
        },
    }


def environment(lane_pk: int, spec: ServerSpec, launch: Launch) -> dict[str, str]:
    """Of a server or its stop command: the engine's, and what neither it nor a preset changes.
    OSError: as of `as_user`."""
    own = {**records.marks(lane_pk), "CUDA_VISIBLE_DEVICES": ",".join(spec.gpu_uuids)}
    if (entry := _other_user()) is not None:
        own["HOME"] = entry.pw_dir
    return {**_passed_on(), **launch.environment, **own}


def launch_of(revision: PresetRevision, spec: ServerSpec) -> Launch:
    """What the engine makes of it: what starts, and what is shown before it starts."""
    return registry.engine_of(revision).launch(spec)


def server_spec(
    lane: Lane, revision: PresetRevision, address: str, port: int, key: str
) -> ServerSpec:
    """What the engine is told of a lane's server, but for the flags that its program takes."""
    return ServerSpec(
        model_path=revision.model_file.path,
        alias=revision.preset.slug,
        arguments=tuple(revision.arguments),
        environment=dict(revision.environment),
        address=address,
        port=port,
        api_key=key,
        gpu_uuids=tuple(lane.gpus.values_list("uuid", flat=True)),
        other_names=tuple(revision.aliases),
        folder=str(folders.path(lane.pk)),
    )


def as_user() -> dict[str, Any] | None:
    """Popen's words for SLOTSERVE_RUN_AS; None when it is unset or we are not root. OSError with a
    sentence: there is no such user."""
    entry = _other_user()
    if entry is None:
        return None
    groups = os.getgrouplist(entry.pw_name, entry.pw_gid)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": groups}


def _other_user() -> pwd.struct_passwd | None:
    named = settings.SLOTSERVE_RUN_AS
    if not named or os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(named)
    except KeyError as error:
        raise OSError(f"SLOTSERVE_RUN_AS={named} is not a user of this machine") from error


def _revision(step: Start) -> PresetRevision | None:
    wanted = PresetRevision.objects.select_related("preset", "model_file")
    return wanted.filter(pk=step.revision_id).first()


def _claim(lane: Lane, step: Start, revision: PresetRevision, key: str) -> Runtime | Refusal | None:
    """The row of a new runtime, if the order is still the one that was decided from."""
    Host.objects.select_for_update().get(pk=lane.host_id)  # its ports are given one at a time
    order = Order.objects.select_for_update().get(lane=lane)
    if (order.generation, order.target_id) != (step.generation, step.revision_id):
        return None
    now = clock.database_now()
    port = ports.free_port(lane.host, now)
    if port is None:
        first, last = settings.SLOTSERVE_PORT_FIRST, settings.SLOTSERVE_PORT_LAST
        words = said(
            "no port from {first} to {last} is free on {address}",
            first=first,
            last=last,
            address=lane.host.address,
        )
        return Refusal("no_port", words)
    return _create(lane, order, revision, port=port, key=key, now=now)


def _refusal(lane: Lane, revision: PresetRevision, key: str) -> Cause | None:
    """Why this host does not start it; None: it does."""
    adapter, address = registry.engine_of(revision), lane.host.address
    try:
        as_user()
    except OSError as error:
        return Cause(
            Kind.PROGRAM,
            said("The user that this host is to run model servers as does not exist."),
            str(error),
            said(
                "Make the user, or correct SLOTSERVE_RUN_AS in the settings of the host's worker."
            ),
        )
    if adapter.protected_path is None and not is_loopback(address):
        return Cause(
            Kind.UNSUPPORTED,
            said(
                "Its server has no API key, and at {address} anybody on that network could use it.",
                address=address,
            ),
            advice=said("Run it on a lane whose host listens on 127.0.0.1."),
        )
    if revision.image:
        return launching.refusal()
    return adapter.refusal(server_spec(lane, revision, address, 0, key))


def _create(
    lane: Lane,
    order: Order,
    revision: PresetRevision,
    *,
    port: int,
    key: str,
    now: datetime,
) -> Runtime:
    runtime = Runtime.objects.create(
        lane=lane,
        revision=revision,
        generation=order.generation,
        phase=Phase.STARTING,
        phase_since=now,
        started_at=now,
        address=lane.host.address,
        port=port,
        sealed_key=Sealer(read_table_keys()).seal(key),
    )
    runtime.log_path = str(log_keeping.folder_of(runtime))
    runtime.save(update_fields=["log_path"])
    tell(lane, now, "starting", said("loading {preset}", preset=revision.preset.slug))
    ticks.plan_soon()
    return runtime


def _passed_on() -> dict[str, str]:
    """What shim and server get of the worker's own environment."""
    return {name: os.environ[name] for name in PASSED_ON if name in os.environ}


def _hand_over(child: "subprocess.Popen[bytes]", order: bytes) -> None:
    if child.stdin is None:
        return
    try:
        with child.stdin as pipe:
            pipe.write(order)
    except BrokenPipeError:
        log.warning("shim ended before its order came pid=%s", child.pid)
