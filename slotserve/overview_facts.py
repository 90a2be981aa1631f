"""What overviews of lanes are made of: one read for each kind of row."""

from collections.abc import Iterable
from datetime import datetime
from itertools import chain

from django.db.models import OuterRef, Subquery

from bookings.models import Booking, State
from lanes.maintenance import not_over
from lanes.models import Lane, LaneEvent, Maintenance, Order, PresetFailure, Runtime
from lanes.reporting import REFUSED

CLAIMS_SHOWN = 2  # the one in progress and the next
# What overviews say nothing of, and so do not read: making it takes most of a row's time.
HOST = ("created_at", "asked_at", "alarms", "alarm_times")
PRESET = ("created_at", "archived_at")
REVISION = (
    *("engine", "arguments", "environment", "options", "image", "notes", "aliases", "is_draft"),
    *("created_at", "created_by"),
)
MODEL_FILE = (
    *("path", "added_at", "folder", "kind", "parts", "projector_path", "architecture"),
    *("parameters", "quantisation", "context_length", "vocabulary_size", "has_chat_template"),
    *("fingerprint", "digests", "digests_of", "is_hashed", "forgotten_at"),
)
READING = ("processes", "verdict", "trouble", "words")
PERSON = ("password", "last_login", "date_joined")
CLAIM = (
    *("pinned_revision", "original_end", "purpose", "created_at", "released_at"),
    *("asked_at", "first_request_at", "lapse", "owner_since", "decided_by", "decision_comment"),
    *("held_until", "series"),
)


def left_out(**columns: Iterable[str]) -> list[str]:
    """For `defer`: columns by the path to their row."""
    return [f"{path}__{name}" for path, names in columns.items() for name in names]


def maintenance(lanes: list[Lane], now: datetime) -> dict[int, list[Maintenance]]:
    """What is not over, by start."""
    found: dict[int, list[Maintenance]] = {}
    for row in not_over(now, [lane.pk for lane in lanes]):
        found.setdefault(row.lane_id, []).append(row)
    return found


def newest_runtimes(lanes: list[Lane]) -> dict[int, Runtime]:
    """Of each lane the newest, living or not; two queries."""
    newest = (
        Runtime.objects.filter(lane=OuterRef("pk")).order_by("-generation", "-pk").values("pk")[:1]
    )
    pks = Lane.objects.filter(pk__in=[lane.pk for lane in lanes]).values_list(Subquery(newest))
    runtimes = Runtime.objects.filter(pk__in=[pk for (pk,) in pks if pk is not None])
    unsaid = left_out(revision=REVISION, revision__preset=PRESET)
    rows = runtimes.select_related("revision__preset").defer("sealed_key", "log_path", *unsaid)
    return {r.lane_id: r for r in rows}


def claims(lanes: list[Lane], now: datetime) -> dict[int, list[Booking]]:
    """The booking in progress and the next; two queries, which find them by an index."""
    mine = Booking.objects.filter(lane=OuterRef("pk"), state=State.CONFIRMED, end__gt=now)
    ahead = mine.order_by("end").values("pk")  # no two of a lane overlap
    soonest = (Subquery(ahead[nth : nth + 1]) for nth in range(CLAIMS_SHOWN))
    pks = Lane.objects.filter(pk__in=[lane.pk for lane in lanes]).values_list(*soonest)
    unsaid = left_out(owner=PERSON, preset=PRESET)
    rows = Booking.objects.filter(pk__in=[pk for pk in chain.from_iterable(pks) if pk is not None])
    rows = rows.select_related("owner", "preset").defer(*CLAIM, *unsaid)
    found: dict[int, list[Booking]] = {}
    for booking in rows:
        found.setdefault(booking.lane_id, []).append(booking)
    return found


def is_waited_for(order: Order, runtimes: dict[int, Runtime]) -> bool:
    """Whether a server is wanted where none lives."""
    runtime = runtimes.get(order.lane_id)
    return order.target_id is not None and (runtime is None or runtime.ended_at is not None)


def refusals(orders: list[Order]) -> dict[int, LaneEvent]:
    """Of these lanes the newest event, where it is since the order and says that nothing starts."""
    if not orders:
        return {}
    newest = LaneEvent.objects.filter(lane=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    lanes = Lane.objects.filter(pk__in=[order.lane_id for order in orders])
    since = {order.lane_id: order.ordered_at for order in orders}
    events = LaneEvent.objects.filter(pk__in=lanes.values(event=Subquery(newest)), kind=REFUSED)
    return {event.lane_id: event for event in events if event.at >= since[event.lane_id]}


def failures(lanes: list[Lane]) -> dict[int, list[PresetFailure]]:
    """Those in force, the oldest first."""
    in_force = PresetFailure.objects.filter(lane__in=lanes, count__gt=0).order_by("failed_at")
    found: dict[int, list[PresetFailure]] = {}
    for failure in in_force.select_related("revision__preset"):
        found.setdefault(failure.lane_id, []).append(failure)
    return found
