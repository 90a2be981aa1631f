"""Carrying out one lane's decision: its order, and what must be true together with it.

All in one short transaction that begins with a compare-and-set of the order: of two planners
that saw the same order, one writes and the other leaves everything alone.
"""

import logging
from datetime import timedelta
from enum import Enum

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from bookings.fact_queries import KnownRevision
from bookings.facts import LaneFacts, revision_of
from bookings.models import Booking, Kind, State
from bookings.situation import Decision
from lanes import ticks
from lanes.events import LONGEST, add_event
from lanes.models import ManualChoice, Order, PresetFailure
from wire.words import kept_of, said

log = logging.getLogger(__name__)
TICK_OF_DECIDED_AT = timedelta(microseconds=1)


class Result(Enum):
    """What became of a decision."""

    UNCHANGED = "unchanged"
    WRITTEN = "written"
    LOST = "lost"  # another planner was first


def carry_out(facts: LaneFacts, decision: Decision) -> Result:
    """Write what the decision changes, if anything, and have the lane's host look at it.

    The order first; then the pins of its booking and the one before it, the choice and the
    failures that are over, and sentences for people.
    """
    seen = facts.order or _blank_order(facts)
    columns = _changed(seen, {**_answer(decision), **_generation(facts, seen, decision)})
    pinned = _pin_due(facts, decision)
    if facts.order and not (columns or pinned or facts.past_failures or facts.is_choice_over):
        return Result.UNCHANGED
    with transaction.atomic():
        if not _swap(facts, seen, columns):
            log.info("order not written lane=%s reason=another planner was first", facts.lane.slug)
            return Result.LOST
        _write_pins(facts, seen, decision, pinned)
        _end_choice(facts)
        _clear_failures(facts)
        _tell(facts, seen, decision, columns)
        ticks.look_soon(facts.lane.pk, facts.lane.host.key)
    return Result.WRITTEN


def _blank_order(facts: LaneFacts) -> Order:
    """The order of a lane that never had one: nothing, generation 0. Not saved."""
    return Order(lane_id=facts.lane.pk, ordered_at=facts.now, decided_at=facts.now)


def _answer(decision: Decision) -> dict[str, object]:
    """The decision as columns of the order."""
    return {
        "target_id": decision.target.revision_id if decision.target else None,
        "rule": decision.rule,
        "booking_id_for": decision.booking_id,
        "booking_start_for": decision.booking_start,
        "booking_preset_for": decision.booking_preset,
        "owner_id_for": decision.owner_id,
        "is_fallback": decision.is_fallback,
        "sentence": decision.sentence[:LONGEST],
        "words": kept_of(decision.sentence),
        "reconsider_at": decision.reconsider_at,
    }


def _generation(facts: LaneFacts, seen: Order, decision: Decision) -> dict[str, object]:
    """The columns of a new generation: for a new target, a reload, or another owner; else none."""
    target_id = decision.target.revision_id if decision.target else None
    is_new_target = target_id != seen.target_id
    is_reload = facts.reload_asked_at is not None and not (target_id is None and not is_new_target)
    is_new_owner = facts.lane.restart_on_owner_change and decision.owner_id != seen.owner_id_for
    columns: dict[str, object] = {}
    if facts.reload_asked_at:
        columns["reload_asked_at"] = facts.reload_asked_at
    if not (is_new_target or is_reload or (is_new_owner and _has_served(facts, seen))):
        return columns
    columns |= {"generation": seen.generation + 1, "is_reload": is_reload, "ordered_at": facts.now}
    if is_reload or is_new_owner:
        columns["fresh_from"] = seen.generation + 1
    return columns


def _has_served(facts: LaneFacts, seen: Order) -> bool:
    """Whether the ordered server may have been asked something. One that still loads has not."""
    runtime = facts.runtime
    return (
        runtime is not None
        and runtime.ended_at is None
        and runtime.ready_at is not None
        and runtime.revision_id == seen.target_id
    )


def _changed(seen: Order, columns: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in columns.items() if getattr(seen, name) != value}


def _swap(facts: LaneFacts, seen: Order, columns: dict[str, object]) -> bool:
    """Update the order if it is still the one that was seen; its decided_at always rises."""
    if facts.order is None:
        Order.objects.bulk_create([seen], ignore_conflicts=True)
    decided_at = max(facts.now, seen.decided_at + TICK_OF_DECIDED_AT)
    still = Order.objects.filter(
        lane=facts.lane, generation=seen.generation, decided_at=seen.decided_at
    )
    return still.update(**columns, decided_at=decided_at) == 1


def _pin_due(facts: LaneFacts, decision: Decision) -> KnownRevision | None:
    """The revision to pin for the decision's booking, unless it is pinned already."""
    booking = _booking(facts, decision.booking_id)
    if booking is None or booking.kind == Kind.GPU:
        return None
    revision = revision_of(facts, booking)
    return revision if revision and revision.pk != booking.pinned_revision_id else None


def _write_pins(
    facts: LaneFacts, seen: Order, decision: Decision, pinned: KnownRevision | None
) -> None:
    """Pin the booking that is served now; drop the pin of one left before it began."""
    if pinned and (booking := _booking(facts, decision.booking_id)):
        Booking.objects.filter(
            pk=booking.pk,
            lane=facts.lane,
            state=State.CONFIRMED,
            preset=booking.preset_id,
            pinned_revision=booking.pinned_revision_id,
        ).update(pinned_revision=pinned.pk)
    left = seen.booking_id_for
    if left is None or left == decision.booking_id:
        return
    elsewhere = Order.objects.filter(booking_id_for=OuterRef("pk")).exclude(lane=facts.lane)
    Booking.objects.filter(
        Q(start__gt=facts.now) | Q(confirmed_at__gt=facts.now),
        ~Exists(elsewhere),
        pk=left,
        pinned_revision__isnull=False,
    ).update(pinned_revision=None)


def _booking(facts: LaneFacts, pk: int | None) -> Booking | None:
    return next((booking for booking in facts.bookings if booking.pk == pk), None)


def _end_choice(facts: LaneFacts) -> None:
    choice = facts.choice
    if choice is None or not facts.is_choice_over:
        return
    open_still = ManualChoice.objects.filter(pk=choice.pk, ended_at=None)
    if open_still.update(ended_at=facts.now):
        is_late = choice.until <= facts.now
        why = said("its time is up") if is_late else said("a booking has begun")
        if choice.preset:
            words = said(
                "the choice to run {preset} has ended: {why}", preset=str(choice.preset), why=why
            )
        else:
            words = said("the choice to unload has ended: {why}", why=why)
        add_event(facts.lane, facts.now, "choice", words)


def _clear_failures(facts: LaneFacts) -> None:
    """Those of bookings that are over; on a reload, all that were seen."""
    over = facts.past_failures + (facts.failures if facts.reload_asked_at else ())
    for failure in over:
        PresetFailure.objects.filter(
            pk=failure.pk, count=failure.count, failed_at=failure.failed_at
        ).update(count=0)


def _tell(facts: LaneFacts, seen: Order, decision: Decision, columns: dict[str, object]) -> None:
    """A sentence for people, when the lane's server is to change."""
    if "generation" not in columns:
        return
    log.info(
        "ordered lane=%s generation=%s target=%s rule=%s reason=%s",
        facts.lane.slug,
        columns["generation"],
        decision.target.preset if decision.target else None,
        decision.rule,
        decision.sentence,
    )
    if "target_id" in columns:
        add_event(facts.lane, facts.now, "order", decision.sentence)
    elif decision.target:
        is_reload = columns.get("is_reload", seen.is_reload)
        preset = decision.target.preset
        words = (
            said("reloading: {preset}", preset=preset)
            if is_reload
            else said("restarting for another person: {preset}", preset=preset)
        )
        add_event(facts.lane, facts.now, "restart", words)
