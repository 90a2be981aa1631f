"""What a poll means for lanes: outsiders in somebody's slot, memory that is not given back, room
that is there again. Tells people; ends no process."""

import hashlib
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.contrib.auth.models import User

from lanes import ticks
from lanes.events import add_event
from lanes.failures.causes import Kind
from lanes.gpus.gate import is_given_back, needed_by
from lanes.gpus.outsiders import FREE_BYTES
from lanes.gpus.polled import PolledCard, PolledLane
from lanes.gpus.readings import Holder
from lanes.gpus.room import has_room_without_lane, size, who
from lanes.models import Lane, Order, Phase, PresetFailure, Runtime
from lanes.notices import News, administrators, tell_people
from lanes.reporting import NO_FAILURE
from wire.words import said

GROWTH = 1.02  # a server that holds so much more than was known: worth writing down
RETURN_SECONDS = 30.0  # memory that a server which has ended still holds then is told
ADVICE = said("Ask its user to end it, or an administrator of the host.")
WATCHED_SECONDS = 120.0  # after its end


def watch(polled: Iterable[PolledLane], now: datetime) -> None:
    """Every lane of one poll, in the poll's own transaction; one query when all is well."""
    polled = [each for each in polled if each.lane is not None]
    blocked = _blocked(polled)
    for each in polled:
        if each.lane is None:
            continue
        _measure(each)
        _tell_outsiders(each, each.lane, now)
        _announce_empty(each, each.lane, now)
        _watch_return(each, each.lane, now)
        _make_room(each, each.lane, blocked, now)


def _measure(polled: PolledLane) -> None:
    """The most that a ready server was seen to hold: what its revision needs next time."""
    runtime, held = polled.runtime, polled.own_bytes
    if runtime is None or runtime.phase != Phase.READY or not held:
        return
    if held > (runtime.gpu_bytes or 0) * GROWTH:
        Runtime.objects.filter(pk=runtime.pk, ended_at=None).update(gpu_bytes=held)


def _tell_outsiders(polled: PolledLane, lane: Lane, now: datetime) -> None:
    """A sentence and a notice for each program that computes in somebody's slot without being a
    lane's or, in a whole-GPU slot, the holder's: once a slot, however often it starts anew. A
    whole-GPU slot is watched before it begins, too."""
    order = _order(lane)
    found = [each for each in polled.outsiders if each[1].is_compute and each[1].ticks]
    if order is None or not found or not (order.is_in_slot or order.is_for_whole_gpu):
        return
    members = User.objects.defer("password")  # which hosts may not read
    owner = members.filter(pk=order.owner_id_for).first() if order.owner_id_for else None
    people = [*administrators(), *([owner] if owner else [])]
    for card, holder in found:
        if _is_owners(holder, owner, order):
            continue
        words = _intrusion(card, holder, _slot_words(order, owner))
        since = order.booking_start_for if order.is_in_slot else order.ordered_at
        _tell_once_since(lane, since or order.ordered_at, now, "outsider", words, holder.pid)
        about = f"outsider:{lane.pk}:{order.booking_id_for}:{card.gpu.pk}:{_program(holder)}"
        told = said("{lane}: {sentence}", lane=lane.name, sentence=words)
        tell_people(people, News(about, "outsider", told, ADVICE, lane), now)


def _announce_empty(polled: PolledLane, lane: Lane, now: datetime) -> None:
    """Say once that the cards are empty for a whole-GPU slot: no server, no memory in use."""
    order = _order(lane)
    if order is None or not order.is_for_whole_gpu or polled.runtime or not polled.spaces:
        return
    if any(space.used_bytes > FREE_BYTES for space in polled.spaces):
        return
    words = said("the model server is down and the GPU memory free for the whole-GPU slot")
    _tell_once_since(lane, order.ordered_at, now, "empty", words)


def _is_owners(holder: Holder, owner: User | None, order: Order) -> bool:
    """In a whole-GPU slot the holder's own Unix user may compute."""
    if owner is None or order.target_id is not None or not holder.user:
        return False
    names = {owner.get_username().casefold(), owner.email.split("@")[0].casefold()}
    return holder.user.casefold() in names


def _program(holder: Holder) -> str:
    """Whose program it is, whatever its pid."""
    return hashlib.sha256(f"{holder.user}\0{holder.command}".encode()).hexdigest()[:16]


def _slot_words(order: Order, owner: User | None) -> str:
    if not order.is_in_slot:
        return said("before a whole-GPU slot")
    if owner is None:
        return said("in a slot")
    return said("in the slot of {member}", member=owner.get_username())


def _intrusion(card: PolledCard, holder: Holder, slot: str) -> str:
    return said(
        "{who} is on {card} {slot}: it belongs to no lane, and SlotServe leaves it alone",
        who=who(holder),
        card=card.gpu.name,
        slot=slot,
    )


def _watch_return(polled: PolledLane, lane: Lane, now: datetime) -> None:
    """Say so when the memory of a server that has ended does not come back."""
    if polled.runtime is not None or not polled.spaces:
        return
    if all(is_given_back(space) for space in polled.spaces):
        return
    longest, shortest = timedelta(seconds=WATCHED_SECONDS), timedelta(seconds=RETURN_SECONDS)
    ended = Runtime.objects.filter(
        lane=lane, ended_at__gt=now - longest, ended_at__lte=now - shortest
    )
    last = ended.order_by("-pk").first()
    if last is not None and last.ended_at is not None:
        held = sum(s.used_bytes - s.verdict.outside_bytes for s in polled.spaces)
        words = said(
            "{size} of GPU memory is still in use though the model server has ended",
            size=size(held),
        )
        _tell_kind_once_since(lane, last.ended_at, now, "memory", words)


def _blocked(polled: Iterable[PolledLane]) -> list[PresetFailure]:
    """What waits for memory that others hold."""
    waiting = PresetFailure.objects.filter(
        lane__in=[each.lane for each in polled], failure_kind=Kind.GPU_TAKEN, count__gt=0
    )
    return list(waiting.select_related("revision__preset", "revision__model_file"))


def _make_room(
    polled: PolledLane, lane: Lane, blocked: Iterable[PresetFailure], now: datetime
) -> None:
    """Forget failures for want of memory as soon as there is enough: no retry is waited for."""
    for failure in blocked:
        if failure.lane_id != lane.pk or not polled.spaces:
            continue
        if not has_room_without_lane(needed_by(lane, failure.revision), polled.spaces):
            continue
        over = PresetFailure.objects.filter(
            pk=failure.pk, count=failure.count, failure_kind=Kind.GPU_TAKEN
        )
        if over.update(count=0, failed_at=None, booking_id_for=None, **NO_FAILURE):
            preset = failure.revision.preset.slug
            words = said("there is GPU memory for {preset} again", preset=preset)
            add_event(lane, now, "memory", words)
            ticks.plan_soon()


def _order(lane: Lane) -> Order | None:
    return getattr(lane, "order", None)


def _tell_once_since(
    lane: Lane, since: datetime, now: datetime, kind: str, words: str, pid: int | None = None
) -> None:
    """Add a sentence unless it was added since then; with a pid, be it with another's."""
    known = lane.events.filter(kind=kind, at__gte=since)
    before, _, after = words.partition(f"(pid {pid})")
    if not known.filter(sentence__startswith=before, sentence__endswith=after).exists():
        add_event(lane, now, kind, words)


def _tell_kind_once_since(
    lane: Lane, since: datetime, now: datetime, kind: str, words: str
) -> None:
    """Add a sentence unless any of its kind was added since then."""
    if not lane.events.filter(kind=kind, at__gte=since).exists():
        add_event(lane, now, kind, words)
