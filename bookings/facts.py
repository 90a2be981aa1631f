"""Everything that bears on what lanes should run, read in six queries for any number of them."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from django.conf import settings
from django.db.models import Exists, F, Model, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

from bookings.models import Booking, State
from bookings.situation import Choice, Claim, Failure, Margins, Report, Situation, Standing, Target
from lanes.estimates import Pair, first_guess, mean_loads
from lanes.models import Lane, ManualChoice, Order, PresetFailure, PresetRevision, Runtime

CLAIM_NAMES = ("claim_0", "claim_1", "claim_2")  # in progress and the next two: none looks further
RUNTIME_NAME = "newest_runtime"
OVER_NAME = "is_over"
REVISION = ("preset", "model_file")


class _OfLane(Protocol):
    lane_id: int


Row = TypeVar("Row", bound=_OfLane)


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
    means: Mapping[Pair, float]  # load history, seconds

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
    """What `decide` needs of these lanes, or of all, by primary key; six queries."""
    pks = None if lanes is None else {lane.pk for lane in lanes}
    return {pk: situation_of(facts) for pk, facts in read_facts(pks, now).items()}


def read_facts(lane_pks: Collection[int] | None, now: datetime) -> dict[int, LaneFacts]:
    """The facts of these lanes, or of all, by primary key, in six queries.

    Lanes with what hangs on them by one key; bookings; choices; runtimes; failures; load history.
    """
    lanes = list(_lanes(lane_pks, now))
    pks = [lane.pk for lane in lanes]
    bookings = _by_lane(_bookings(lanes))
    choices = _by_lane(_choices(pks, now))
    runtimes = _by_lane(_runtimes(lanes))
    failures = _by_lane(_failures(pks, now))
    means = mean_loads(_pairs(lanes, bookings, choices))
    return {
        lane.pk: LaneFacts(
            now=now,
            lane=lane,
            bookings=tuple(bookings.get(lane.pk, ())),
            choice=next(iter(choices.get(lane.pk, ())), None),
            is_choice_over=any(_is_over(choice) for choice in choices.get(lane.pk, ())),
            runtime=next(iter(runtimes.get(lane.pk, ())), None),
            failures=tuple(f for f in failures.get(lane.pk, ()) if not _is_over(f)),
            past_failures=tuple(f for f in failures.get(lane.pk, ()) if _is_over(f)),
            means=means,
        )
        for lane in lanes
    }


def situation_of(facts: LaneFacts) -> Situation:
    """The same facts in the words of `decide`; a reload that is due forgets the failures."""
    lane, default = facts.lane, facts.lane.default_preset
    has_choice = facts.choice is not None and not facts.is_choice_over
    return Situation(
        lane=lane.slug,
        is_enabled=lane.enabled,
        claims=tuple(_claim(facts, booking) for booking in facts.bookings),
        choice=_choice(facts, facts.choice) if facts.choice and has_choice else None,
        default=target_of(facts, default.current if default else None),
        order=_standing(facts, facts.order) if facts.order else None,
        report=_report(facts.runtime) if facts.runtime else None,
        failures=() if facts.reload_asked_at else tuple(_failure(f) for f in facts.failures),
        margins=margins(),
        zone=timezone.get_default_timezone(),
    )


def margins() -> Margins:
    """The seconds of the settings that the rules reckon with."""
    return Margins(
        buffer=settings.SLOTSERVE_BUFFER_SECONDS,
        stop=settings.SLOTSERVE_STOP_TIMEOUT_SECONDS,
        least_preload=settings.SLOTSERVE_MIN_PRELOAD_SECONDS,
    )


def revision_of(facts: LaneFacts, booking: Booking) -> PresetRevision | None:
    """What a booking runs: the revision pinned for it, else its preset's current one.

    A pin holds once the lane's order serves the booking, or it has begun; a pin of another lane,
    of a preset it had before, or of a booking in progress that is being reloaded does not.
    """
    pinned = booking.pinned_revision
    current = booking.preset.current if booking.preset else None
    if pinned is None or pinned.preset_id != booking.preset_id:
        return current
    if is_in_progress(booking, facts.now):
        return current if facts.reload_asked_at else pinned
    is_ordered = facts.order is not None and facts.order.booking_id_for == booking.pk
    return pinned if is_ordered else current


def is_in_progress(booking: Booking, now: datetime) -> bool:
    """Whether a confirmed booking that is not over has begun: from max(start, confirmed_at)."""
    return booking.start <= now and booking.confirmed_at is not None and booking.confirmed_at <= now


def target_of(facts: LaneFacts, revision: PresetRevision | None) -> Target | None:
    """The revision as a target of this lane, with its estimate there."""
    if revision is None:
        return None
    mean = facts.means.get((facts.lane.pk, revision.preset_id))
    seconds = first_guess(revision.model_file.size_bytes) if mean is None else mean
    return Target(revision.pk, revision.preset.slug, seconds)


def _claim(facts: LaneFacts, booking: Booking) -> Claim:
    return Claim(
        booking_id=booking.pk,
        owner_id=booking.owner_id,
        start=booking.start,
        end=booking.end,
        confirmed_at=booking.confirmed_at or booking.start,
        target=target_of(facts, revision_of(facts, booking)),
    )


def _choice(facts: LaneFacts, choice: ManualChoice) -> Choice:
    revision = choice.preset.current if choice.preset else None
    return Choice(target_of(facts, revision), choice.made_at, choice.until)


def _standing(facts: LaneFacts, order: Order) -> Standing:
    return Standing(
        target=target_of(facts, order.target),
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


# --- Queries ----------------------------------------------------------------------------------
def _lanes(lane_pks: Collection[int] | None, now: datetime) -> QuerySet[Lane]:
    """Lanes with host, default, order, reload, and which bookings and runtime are theirs.

    The keys come by index, a few look-ups a lane: a window function would rank every booking.
    Confirmed bookings do not overlap, so their ends are in the order of their starts.
    """
    claims = Booking.objects.filter(
        lane=OuterRef("pk"), state=State.CONFIRMED, end__gt=now
    ).order_by("end")
    runtimes = Runtime.objects.filter(lane=OuterRef("pk")).order_by("-pk")
    lanes = Lane.objects.all() if lane_pks is None else Lane.objects.filter(pk__in=lane_pks)
    return lanes.select_related(
        "host",
        "reload_request",
        *(f"default_preset__current__{name}" for name in REVISION),
        *(f"order__target__{name}" for name in REVISION),
    ).annotate(
        **{n: Subquery(claims.values("pk")[i : i + 1]) for i, n in enumerate(CLAIM_NAMES)},
        **{RUNTIME_NAME: Subquery(runtimes.values("pk")[:1])},
    )


def _bookings(lanes: list[Lane]) -> QuerySet[Booking]:
    named = (getattr(lane, name) for lane in lanes for name in CLAIM_NAMES)
    return (
        Booking.objects.filter(pk__in={pk for pk in named if pk is not None})
        .select_related(
            *(f"{r}__{n}" for r in ("preset__current", "pinned_revision") for n in REVISION)
        )
        .order_by("start")
    )


def _choices(lane_pks: list[int], now: datetime) -> QuerySet[ManualChoice]:
    """Open choices; `is_over`: their time is up, or a booking came into progress after them."""
    begun_after = Booking.objects.filter(
        Q(start__gt=OuterRef("made_at")) | Q(confirmed_at__gt=OuterRef("made_at")),
        lane=OuterRef("lane"),
        state=State.CONFIRMED,
        end__gt=OuterRef("made_at"),
        start__lte=now,
        confirmed_at__lte=now,
        confirmed_at__lt=F("end"),
    )
    return (
        ManualChoice.objects.filter(lane__in=lane_pks, ended_at=None)
        .select_related(*(f"preset__current__{name}" for name in REVISION))
        .annotate(**{OVER_NAME: Q(until__lte=now) | Exists(begun_after)})
    )


def _runtimes(lanes: list[Lane]) -> QuerySet[Runtime]:
    newest = (getattr(lane, RUNTIME_NAME) for lane in lanes)
    return Runtime.objects.filter(pk__in={pk for pk in newest if pk is not None})


def _failures(lane_pks: list[int], now: datetime) -> QuerySet[PresetFailure]:
    """Failures in force; `is_over`: the booking they were for has ended or left the lane."""
    booking = Booking.objects.filter(
        pk=OuterRef("booking_id_for"), lane=OuterRef("lane"), state=State.CONFIRMED, end__gt=now
    )
    return PresetFailure.objects.filter(lane__in=lane_pks, count__gt=0).annotate(
        **{OVER_NAME: Q(booking_id_for__isnull=False) & ~Exists(booking)}
    )


def _pairs(
    lanes: list[Lane],
    bookings: Mapping[int, list[Booking]],
    choices: Mapping[int, list[ManualChoice]],
) -> set[Pair]:
    """Every (lane, preset) whose estimate a decision may need."""
    pairs: set[tuple[int, int | None]] = set()
    for lane in lanes:
        order = getattr(lane, "order", None)
        pairs.add((lane.pk, lane.default_preset_id))
        pairs.add((lane.pk, order.target.preset_id if order and order.target else None))
        pairs.update((lane.pk, booking.preset_id) for booking in bookings.get(lane.pk, ()))
        pairs.update((lane.pk, choice.preset_id) for choice in choices.get(lane.pk, ()))
    return {(lane, preset) for lane, preset in pairs if preset is not None}


def _by_lane(rows: Iterable[Row]) -> dict[int, list[Row]]:
    grouped: dict[int, list[Row]] = {}
    for row in rows:
        grouped.setdefault(row.lane_id, []).append(row)
    return grouped


def _is_over(row: Model) -> bool:
    return bool(getattr(row, OVER_NAME))
