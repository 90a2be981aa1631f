"""Everything that bears on what lanes should run, read in eight queries for any number of them."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.utils import timezone

from bookings import fact_queries as queries
from bookings.fact_queries import KnownRevision, Revisions
from bookings.models import Booking
from bookings.situation import (
    Choice,
    Claim,
    Closure,
    Failure,
    Margins,
    Report,
    Situation,
    Standing,
    Target,
)
from lanes.estimates import Pair, first_guess, mean_loads
from lanes.maintenance import not_over
from lanes.models import Lane, Maintenance, ManualChoice, Order, PresetFailure, Runtime


@dataclass(frozen=True, slots=True)
class LaneFacts:
    """The rows that bear on one lane, as they were seen at `now`."""

    now: datetime
    lane: Lane
    bookings: tuple[Booking, ...]  # confirmed and not over, by time
    choice: ManualChoice | None  # not ended in the table, though its time may be up
    is_choice_over: bool
    runtime: Runtime | None  # the newest
    failures: tuple[PresetFailure, ...]  # in force
    past_failures: tuple[PresetFailure, ...]  # of bookings that are over
    revisions: Revisions
    means: Mapping[Pair, float]  # load history, seconds
    maintenance: tuple[Maintenance, ...] = ()  # not over, by start

    @property
    def order(self) -> Order | None:
        """The lane's order; None before the first decision."""
        return getattr(self.lane, "order", None)

    @property
    def reload_asked_at(self) -> datetime | None:
        """When a reload was asked for that the order has not carried out yet."""
        request = getattr(self.lane, "reload_request", None)
        done = self.order.reload_asked_at if self.order else None
        return request.asked_at if request and (done is None or request.asked_at > done) else None


def situations(lanes: Iterable[Lane] | None, now: datetime) -> dict[int, Situation]:
    """What `decide` needs of these lanes, or of all, by primary key; eight queries."""
    pks = None if lanes is None else {lane.pk for lane in lanes}
    return {pk: situation_of(facts) for pk, facts in read_facts(pks, now).items()}


def read_facts(lane_pks: Collection[int] | None, now: datetime) -> dict[int, LaneFacts]:
    """The facts of these lanes, or of all, by primary key, in eight queries.

    Lanes with what hangs on them by one key; bookings; choices; runtimes; failures; the
    revisions that all these name; load history; maintenance.
    """
    lanes = list(queries.lanes(lane_pks, now))
    pks = [lane.pk for lane in lanes]
    bookings = queries.by_lane(queries.bookings(lanes))
    choices = queries.by_lane(queries.choices(pks, now))
    runtimes = queries.by_lane(queries.runtimes(lanes))
    failures = queries.by_lane(queries.failures(pks, now))
    revisions = queries.revisions(lanes, bookings, choices)
    maintenance = queries.by_lane(not_over(now, pks))
    means = mean_loads(queries.pairs(lanes, bookings, choices, revisions))
    return {
        lane.pk: LaneFacts(
            now=now,
            lane=lane,
            bookings=tuple(bookings.get(lane.pk, ())),
            choice=next(iter(choices.get(lane.pk, ())), None),
            is_choice_over=any(queries.is_over(choice) for choice in choices.get(lane.pk, ())),
            runtime=next(iter(runtimes.get(lane.pk, ())), None),
            failures=tuple(f for f in failures.get(lane.pk, ()) if not queries.is_over(f)),
            past_failures=tuple(f for f in failures.get(lane.pk, ()) if queries.is_over(f)),
            revisions=revisions,
            means=means,
            maintenance=tuple(maintenance.get(lane.pk, ())),
        )
        for lane in lanes
    }


def situation_of(facts: LaneFacts) -> Situation:
    """The same facts in the words of `decide`; a reload that is due forgets the failures."""
    has_choice = facts.choice is not None and not facts.is_choice_over
    return Situation(
        lane=facts.lane.slug,
        is_enabled=facts.lane.enabled,
        claims=tuple(_claim(facts, booking) for booking in facts.bookings),
        choice=_choice(facts, facts.choice) if facts.choice and has_choice else None,
        default=_current_target(facts, facts.lane.default_preset_id),
        order=_standing(facts, facts.order) if facts.order else None,
        report=_report(facts.runtime) if facts.runtime else None,
        failures=() if facts.reload_asked_at else tuple(_failure(f) for f in facts.failures),
        margins=margins(),
        zone=timezone.get_default_timezone(),
        closures=tuple(closure_of(each) for each in facts.maintenance),
    )


def closure_of(row: Maintenance) -> Closure:
    """A maintenance in the words of `decide`."""
    return Closure(row.start, row.end, row.reason)


def margins() -> Margins:
    """The seconds of the settings that the rules reckon with."""
    return Margins(
        buffer=settings.SLOTSERVE_BUFFER_SECONDS,
        stop=settings.SLOTSERVE_STOP_TIMEOUT_SECONDS,
        least_preload=settings.SLOTSERVE_MIN_PRELOAD_SECONDS,
    )


def revision_of(facts: LaneFacts, booking: Booking) -> KnownRevision | None:
    """What a booking runs: the revision pinned for it, else its preset's current one.

    A pin holds once the lane's order serves the booking, or it has begun; a pin of another lane,
    of a preset it had before, or on a lane that is being reloaded does not.
    """
    pinned = facts.revisions.by_pk.get(booking.pinned_revision_id or 0)
    current = facts.revisions.current.get(booking.preset_id or 0)
    if pinned is None or pinned.preset_id != booking.preset_id or facts.reload_asked_at:
        return current
    is_ordered = facts.order is not None and facts.order.booking_id_for == booking.pk
    return pinned if is_ordered or is_in_progress(booking, facts.now) else current


def is_in_progress(booking: Booking, now: datetime) -> bool:
    """Whether a confirmed booking that is not over has begun: from max(start, confirmed_at)."""
    return booking.start <= now and booking.confirmed_at is not None and booking.confirmed_at <= now


def _target(facts: LaneFacts, revision: KnownRevision | None) -> Target | None:
    """The revision as a target of this lane, with its estimate there."""
    if revision is None:
        return None
    mean = facts.means.get((facts.lane.pk, revision.preset_id))
    seconds = first_guess(revision.size_bytes) if mean is None else mean
    return Target(revision.pk, revision.preset, seconds)


def _current_target(facts: LaneFacts, preset_id: int | None) -> Target | None:
    return _target(facts, facts.revisions.current.get(preset_id or 0))


def _claim(facts: LaneFacts, booking: Booking) -> Claim:
    return Claim(
        booking_id=booking.pk,
        owner_id=booking.owner_id,
        start=booking.start,
        end=booking.end,
        confirmed_at=booking.confirmed_at or booking.start,
        target=_target(facts, revision_of(facts, booking)),
    )


def _choice(facts: LaneFacts, choice: ManualChoice) -> Choice:
    tested = facts.revisions.by_pk.get(choice.revision_id or 0)
    target = _target(facts, tested) if tested else _current_target(facts, choice.preset_id)
    return Choice(target, choice.made_at, choice.until)


def _standing(facts: LaneFacts, order: Order) -> Standing:
    return Standing(
        target=_target(facts, facts.revisions.by_pk.get(order.target_id or 0)),
        generation=order.generation,
        ordered_at=order.ordered_at,
        rule=order.rule,
        booking_id=order.booking_id_for,
        owner_id=order.owner_id_for,
        is_fallback=order.is_fallback,
        booking_start=order.booking_start_for,
        booking_preset=order.booking_preset_for,
    )


def _report(runtime: Runtime) -> Report:
    return Report(runtime.generation, runtime.revision_id, runtime.phase, runtime.phase_since)


def _failure(failure: PresetFailure) -> Failure:
    failed_at = failure.failed_at
    if failed_at is None:
        raise ValueError(f"failure {failure.pk} counts {failure.count} but has no time")
    return Failure(failure.revision_id, failure.count, failed_at)
