"""Reading what the decision about notices needs: the same few queries, however many bookings."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db.models import Exists, F, Max, OuterRef, Q

from bookings.models import Booking, State
from bookings.querysets import BookingQuerySet
from lanes.models import Notice, Phase, Runtime
from notices.deciding import OVER_ANYWAY, Facts, Was
from notices.models import Entry, Preference
from notices.preferences import preference_of


@dataclass(frozen=True, slots=True)
class Read:
    """A booking, the facts about it, and what its people were told of it before."""

    booking: Booking
    facts: Facts
    told: frozenset[tuple[int, str]]  # recipient and key


def read_changed(now: datetime) -> list[Read]:
    """Those that are other than they were told; three queries at most."""
    return _read(_with_neighbours().filter(_is_recent(now)).exclude(_IS_TOLD))


def read_near(now: datetime) -> list[Read]:
    """Those in progress or near enough for a reminder; four queries."""
    longest = Preference.objects.aggregate(most=Max("reminder_minutes"))["most"] or 0
    ahead = timedelta(minutes=max(longest, Preference().reminder_minutes))
    near = Q(state=State.CONFIRMED, end__gt=now, start__lte=now + ahead)
    warm = Q(pk__in=warm_bookings())
    return _read(_with_neighbours().filter(near | (warm & Q(end__gt=now))))


def read_one(pk: int) -> Facts | None:
    """The facts about one; None: it is gone."""
    found = _read(_with_neighbours().filter(pk=pk))
    return found[0].facts if found else None


def entry_of(booking: Booking) -> Entry | None:
    """What it was when it was last told of."""
    try:
        found: Entry = booking.entry
    except Entry.DoesNotExist:
        return None
    return found


def dated_facts(booking: Booking) -> tuple[int, datetime]:
    """SEQUENCE of a booking as it is now, told or not yet, and when that began to be so."""
    entry = entry_of(booking)
    sequence = _facts(booking).sequence
    return sequence, entry.changed_at if entry else booking.created_at


_IS_TOLD = Q(
    entry__lane_id_then=F("lane_id"),
    entry__start=F("start"),
    entry__end=F("end"),
    entry__state=F("state"),
) & (
    Q(entry__preset_id_then=F("preset_id"))
    | Q(entry__preset_id_then__isnull=True, preset_id__isnull=True)
)
_IS_TOLD &= Q(entry__owner_id_then=F("owner_id")) | Q(entry__owner_id_then=None)


def _is_recent(now: datetime) -> Q:
    return Q(end__gt=now - OVER_ANYWAY)


def _with_neighbours() -> BookingQuerySet:
    """With all that facts need. `goes_on`: its member's next slot there is of the same target."""
    following = Booking.objects.filter(
        Q(preset_id=OuterRef("preset_id")) | Q(preset_id=None, kind="gpu"),
        lane_id=OuterRef("lane_id"),
        owner_id=OuterRef("owner_id"),
        kind=OuterRef("kind"),
        start=OuterRef("end"),
        state=State.CONFIRMED,
    )
    related = ("lane__host", "owner__preference", "preset", "decided_by", "entry")
    return Booking.objects.select_related(*related).annotate(goes_on=Exists(following))


def _read(found: Iterable[Booking]) -> list[Read]:
    bookings = list(found)
    if not bookings:
        return []
    pks = [booking.pk for booking in bookings]
    warm = set(warm_bookings())
    told: dict[int, set[tuple[int, str]]] = {}
    notices = Notice.objects.filter(booking_id_for__in=pks)
    for pk, recipient, key in notices.values_list("booking_id_for", "recipient_id", "key"):
        told.setdefault(pk or 0, set()).add((recipient, key))
    return [_one(booking, warm, told) for booking in bookings]


def _one(booking: Booking, warm: set[int], told: Mapping[int, set[tuple[int, str]]]) -> Read:
    around = replace(
        _facts(booking),
        is_warm=booking.pk in warm,
        goes_on=bool(getattr(booking, "goes_on", False)),
        reminder=timedelta(minutes=preference_of(booking.owner).reminder_minutes),
    )
    return Read(booking, around, frozenset(told.get(booking.pk, ())))


def _facts(booking: Booking) -> Facts:
    """The booking's own."""
    return Facts(
        booking=booking.pk,
        lane=booking.lane_id,
        preset=booking.preset_id,
        start=booking.start,
        end=booking.end,
        state=booking.state,
        confirmed_at=booking.confirmed_at,
        released_at=booking.released_at,
        owner=booking.owner_id,
        is_decided=booking.decided_by_id is not None,
        was=_was(entry_of(booking)),
    )


def _was(entry: Entry | None) -> Was | None:
    if entry is None:
        return None
    return Was(
        entry.lane_id_then,
        entry.preset_id_then,
        entry.start,
        entry.end,
        entry.state,
        entry.sequence,
        entry.owner_id_then,
    )


def warm_bookings() -> list[int]:
    """The bookings whose own model is loaded: not the lane's default in its place."""
    ready = Runtime.objects.filter(
        ended_at=None,
        phase=Phase.READY,
        revision_id=F("lane__order__target_id"),
        lane__order__is_fallback=False,
        lane__order__booking_id_for__isnull=False,
    )
    pks = ready.values_list("lane__order__booking_id_for", flat=True)
    return [pk for pk in pks if pk is not None]
