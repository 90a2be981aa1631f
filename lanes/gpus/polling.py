"""Polls the cards of this host every five seconds and writes down what they say.

All of one poll is read first and written in one short transaction. A poll is safe to skip, to
repeat and to overlap: which worker polls is decided by a compare-and-set of `HostGpus.read_at`.
"""

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from lanes import clock
from lanes.gpus import history, nvml, watching
from lanes.gpus.holders import identify
from lanes.gpus.inventory import enrol
from lanes.gpus.outsiders import Poll, judge
from lanes.gpus.polled import PolledCard, PolledLane
from lanes.gpus.readings import Card, Inventory
from lanes.gpus.stored import holders_to_json, verdict_of, verdict_to_json
from lanes.models import Gpu, GpuState, Host, HostGpus, Runtime
from wire.words import kept_of, said

log = logging.getLogger(__name__)
POLL_SECONDS = 5.0
DRIVERLESS_SECONDS = 60.0  # how often a host without a driver is asked for one
LONGEST = 300  # characters of a trouble
NOT_SHOWN = said(
    "The driver does not show this card any more: look at `nvidia-smi`, restart this host."
)
NO_DRIVER = said("No NVIDIA driver answers on this host: is it installed, and given to the worker?")


def poll_if_due(host: Host) -> bool:
    """Poll the cards of this host unless that was done just now; whether it was done."""
    now = clock.database_now()
    if not _is_due(host, now):
        return False
    inventory = nvml.read()
    if inventory.is_driverless and host.gpus.exists():
        inventory = Inventory(trouble=NO_DRIVER)
    _report_driver(host, inventory)
    gpus = enrol(host, inventory)
    if gpus:
        _write(host, _polled(host, gpus, inventory), now)
    return True


def _is_due(host: Host, now: datetime) -> bool:
    """Whether it is time, and nobody else has taken it."""
    state, is_new = HostGpus.objects.get_or_create(host=host, defaults={"read_at": now})
    if is_new:
        return True
    wait = POLL_SECONDS if state.driver or state.trouble else DRIVERLESS_SECONDS
    is_old = Q(read_at__lte=now - timedelta(seconds=wait)) | Q(read_at__gt=now)
    return HostGpus.objects.filter(is_old, pk=state.pk).update(read_at=now) == 1


def _report_driver(host: Host, inventory: Inventory) -> None:
    """What holds of the driver, when it has changed."""
    told = {"driver": inventory.driver[:80], "trouble": inventory.trouble[:LONGEST]}
    row, words = HostGpus.objects.filter(host=host), kept_of(inventory.trouble)
    if row.exclude(**told).update(**told, words=words):
        log.info("host=%s driver=%s trouble=%s", host.key, *told.values())


def _polled(host: Host, gpus: list[Gpu], inventory: Inventory) -> list[PolledLane]:
    """What was seen of every card, by lane; cards without a lane are by themselves."""
    lanes = {lane.pk: lane for lane in host.lanes.select_related("order")}
    alive = {
        runtime.lane_id: runtime
        for runtime in Runtime.objects.filter(lane__in=lanes, ended_at=None)
    }
    slugs = {pk: lane.slug for pk, lane in lanes.items()}
    cards: dict[int | None, list[PolledCard]] = {}
    for gpu in gpus:
        lane_pk = next((lane.pk for lane in gpu.lanes.all()), None)
        card = _judged(gpu, inventory, slugs, has_server=lane_pk in alive)
        cards.setdefault(lane_pk, []).append(card)
    return [
        PolledLane(lanes.get(pk or 0), alive.get(pk or 0), tuple(found))
        for pk, found in cards.items()
    ]


def _judged(
    gpu: Gpu, inventory: Inventory, lanes: Mapping[int, str], *, has_server: bool
) -> PolledCard:
    card = inventory.card(gpu.uuid) or Card(gpu.uuid, trouble=inventory.trouble or NOT_SHOWN)
    before = verdict_of(gpu)
    if card.used_bytes is None:  # nothing was read: what held goes on holding
        return PolledCard(gpu, card, None, before, before)
    holders = None if card.processes is None else identify(card.processes, lanes)
    total = card.total_bytes or gpu.memory_bytes
    verdict = judge(before, Poll(card.used_bytes, total, holders, has_server))
    return PolledCard(gpu, card, holders, before, verdict)


@transaction.atomic
def _write(host: Host, polled: list[PolledLane], now: datetime) -> None:
    states = [_state(card, now) for lane in polled for card in lane.cards]
    GpuState.objects.bulk_create(
        states,
        update_conflicts=True,
        unique_fields=["gpu"],
        update_fields=[
            "read_at",
            "number",
            "used_bytes",
            "utilisation",
            "power_watts",
            "temperature",
            "processes",
            "verdict",
            "trouble",
            "words",
        ],
    )
    history.add(polled, now)
    watching.watch(polled, now)


def _state(polled: PolledCard, now: datetime) -> GpuState:
    card = polled.card
    return GpuState(
        gpu=polled.gpu,
        read_at=now,
        number=card.index if card.name else None,
        used_bytes=card.used_bytes,
        utilisation=card.utilisation,
        power_watts=card.power_watts,
        temperature=card.temperature,
        processes=holders_to_json(polled.holders),
        verdict=verdict_to_json(polled.verdict),
        trouble=card.trouble[:LONGEST],
        words=kept_of(card.trouble),
    )
