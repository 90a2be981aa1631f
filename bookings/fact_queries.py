"""The queries behind the planner's facts: one for each kind of row, for any number of lanes."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from django.db.models import Exists, F, Model, OuterRef, Q, QuerySet, Subquery

from bookings.models import Booking, State
from lanes.estimates import Pair
from lanes.models import Lane, ManualChoice, PresetFailure, PresetRevision, Runtime

CLAIM_NAMES = ("claim_0", "claim_1", "claim_2")  # in progress and the next two: none looks further
RUNTIME_NAME = "newest_runtime"
OVER_NAME = "is_over"


class _OfLane(Protocol):
    lane_id: int


Row = TypeVar("Row", bound=_OfLane)


@dataclass(frozen=True, slots=True)
class KnownRevision:
    """What the planner needs of a preset revision. A few serve many lanes, so they are read
    once, and not joined to each row that names one."""

    pk: int
    preset_id: int
    preset: str  # slug
    size_bytes: int  # of the model file


@dataclass(frozen=True, slots=True)
class Revisions:
    """The revisions that orders and pins name, and the current ones of presets, by their keys."""

    by_pk: Mapping[int, KnownRevision]
    current: Mapping[int, KnownRevision]  # by the preset's key


def lanes(lane_pks: Collection[int] | None, now: datetime) -> QuerySet[Lane]:
    """Lanes with host, order and reload, and the keys of their next bookings and newest runtime.

    The keys come by index, a few look-ups a lane: a window function would rank every booking.
    Confirmed bookings do not overlap, so their ends are in the order of their starts.
    """
    claims = Booking.objects.filter(
        lane=OuterRef("pk"), state=State.CONFIRMED, end__gt=now
    ).order_by("end")
    newest = Runtime.objects.filter(lane=OuterRef("pk")).order_by("-pk")
    wanted = Lane.objects.all() if lane_pks is None else Lane.objects.filter(pk__in=lane_pks)
    return wanted.select_related("host", "reload_request", "order").annotate(
        **{n: Subquery(claims.values("pk")[i : i + 1]) for i, n in enumerate(CLAIM_NAMES)},
        **{RUNTIME_NAME: Subquery(newest.values("pk")[:1])},
    )


def bookings(of_lanes: list[Lane]) -> QuerySet[Booking]:
    """The bookings whose keys came with the lanes, by time; one given up since is none."""
    keys = _keys(of_lanes, *CLAIM_NAMES)
    return Booking.objects.filter(pk__in=keys, state=State.CONFIRMED).order_by("start")


def runtimes(of_lanes: list[Lane]) -> QuerySet[Runtime]:
    """The newest runtime of each lane."""
    return Runtime.objects.filter(pk__in=_keys(of_lanes, RUNTIME_NAME))


def choices(lane_pks: list[int], now: datetime) -> QuerySet[ManualChoice]:
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
    return ManualChoice.objects.filter(lane__in=lane_pks, ended_at=None).annotate(
        **{OVER_NAME: Q(until__lte=now) | Exists(begun_after)}
    )


def failures(lane_pks: list[int], now: datetime) -> QuerySet[PresetFailure]:
    """Failures in a row; `is_over`: the booking they were for has ended or left the lane."""
    booking = Booking.objects.filter(
        pk=OuterRef("booking_id_for"), lane=OuterRef("lane"), state=State.CONFIRMED, end__gt=now
    )
    return PresetFailure.objects.filter(lane__in=lane_pks, count__gt=0).annotate(
        **{OVER_NAME: Q(booking_id_for__isnull=False) & ~Exists(booking)}
    )


def revisions(
    of_lanes: list[Lane],
    of_bookings: Mapping[int, list[Booking]],
    of_choices: Mapping[int, list[ManualChoice]],
) -> Revisions:
    """Every revision that these rows name, or that is the current one of a preset they name."""
    orders = [order for lane in of_lanes if (order := getattr(lane, "order", None))]
    booked = [booking for group in of_bookings.values() for booking in group]
    chosen = [choice for group in of_choices.values() for choice in group]
    named = {order.target_id for order in orders} | {b.pinned_revision_id for b in booked}
    named |= {each.revision_id for each in chosen}
    presets = {booking.preset_id for booking in booked} | {each.preset_id for each in chosen}
    presets |= {lane.default_preset_id for lane in of_lanes}
    rows = PresetRevision.objects.filter(
        Q(pk__in=named - {None}) | Q(preset__in=presets - {None}, pk=F("preset__current"))
    ).values_list("pk", "preset", "preset__slug", "model_file__size_bytes", "preset__current")
    known = [(KnownRevision(*row[:4]), row[4]) for row in rows.order_by()]
    return Revisions(
        by_pk={each.pk: each for each, _ in known},
        current={each.preset_id: each for each, current in known if each.pk == current},
    )


def pairs(
    of_lanes: list[Lane],
    of_bookings: Mapping[int, list[Booking]],
    of_choices: Mapping[int, list[ManualChoice]],
    known: Revisions,
) -> set[Pair]:
    """Every (lane, preset) whose load estimate a decision may need."""
    found: set[tuple[int, int | None]] = set()
    for lane in of_lanes:
        order = getattr(lane, "order", None)
        ordered = known.by_pk.get(order.target_id or 0) if order else None
        found.add((lane.pk, lane.default_preset_id))
        found.add((lane.pk, ordered.preset_id if ordered else None))
        found.update((lane.pk, booking.preset_id) for booking in of_bookings.get(lane.pk, ()))
        found.update((lane.pk, choice.preset_id) for choice in of_choices.get(lane.pk, ()))
    return {(lane, preset) for lane, preset in found if preset is not None}


def by_lane(rows: Iterable[Row]) -> dict[int, list[Row]]:
    """The rows of each lane, in their order."""
    grouped: dict[int, list[Row]] = {}
    for row in rows:
        grouped.setdefault(row.lane_id, []).append(row)
    return grouped


def is_over(row: Model) -> bool:
    """What `choices` and `failures` annotate."""
    return bool(getattr(row, OVER_NAME))


def _keys(of_lanes: list[Lane], *names: str) -> set[int]:
    keys = (getattr(lane, name) for lane in of_lanes for name in names)
    return {key for key in keys if key is not None}
