"""What a booking's page shows: where it stands, what can be done, what came of it. Reads only."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from bookings.models import Booking, BookingShare, Kind, State, Status
from bookings.policy_words import length_words
from gateway.receipts import PersonUse, Ran, Receipt, receipt_of, use_by_person
from lanes.models import LaneEvent
from lanes.secret_names import MASK, is_secret
from slotserve.overview import LaneOverview, lanes_for_people, overviews
from slotserve.web.outlook import maintenance_words
from slotserve.web.rows import Row, picked, rows

STEPS = (15, 30, 60, 120)  # minutes by which a tap makes a slot longer or shorter
EVENTS_SHOWN = 50
OPEN = (Status.PENDING, Status.HELD, Status.UPCOMING, Status.IN_PROGRESS)
HELD = (Status.IN_PROGRESS, Status.ENDED, Status.RELEASED)
HIDDEN = "…"


@dataclass(frozen=True, slots=True)
class Step:
    """An end that one tap gives the booking, and by how much that is more or less."""

    end: datetime
    words: str


@dataclass(frozen=True, slots=True)
class BookingView:
    """A booking at one moment, as one person may see it."""

    booking: Booking
    row: Row
    is_guest: bool  # shared with the viewer
    now: datetime
    lane: LaneOverview
    guests: tuple[BookingShare, ...]
    following: Booking | None  # the next one on its lane
    events: tuple[LaneEvent, ...]
    receipt: Receipt | None
    uses: tuple[PersonUse, ...]
    ran: tuple[tuple[Ran, str], ...]  # each with its flags, as this person may see them
    closed: tuple[str, ...]  # maintenance in what is left of it, in sentences

    @property
    def is_open(self) -> bool:
        """Whether something can still be done."""
        return self.row.status in OPEN

    @property
    def is_on_lane(self) -> bool:
        """Whether what the lane does now is done for it."""
        order = self.lane.order
        is_ordered = order is not None and order.booking_id_for == self.booking.pk
        return self.row.status is Status.IN_PROGRESS or (self.is_open and is_ordered)

    @property
    def longer(self) -> list[Step]:
        """Later ends that nobody else's booking is in the way of."""
        free_until = self.following.start if self.following else None
        ends = ((each, self.booking.end + timedelta(minutes=each)) for each in STEPS)
        return [
            Step(end, f"+ {length_words(each)}")
            for each, end in ends
            if free_until is None or end <= free_until
        ]

    @property
    def shorter(self) -> list[Step]:
        """Earlier ends that leave some of the slot."""
        begins = max(self.booking.start, self.now)
        ends = ((each, self.booking.end - timedelta(minutes=each)) for each in STEPS)
        return [Step(end, f"− {length_words(each)}") for each, end in ends if end > begins]  # noqa: RUF001

    @property
    def sentence(self) -> str:
        """Where it stands, in words; what the lane does for it is the lane's sentence."""
        return _sentence(self)

    @property
    def again(self) -> str:
        """The query that fills the form with the same for as long, from now."""
        booking = self.booking
        what = f"preset:{booking.preset.slug}" if booking.preset else "gpu"
        end = self.now + (booking.original_end - booking.start)
        wish = {"lane": booking.lane.slug, "what": what, "begins": "now", "end": picked(end)}
        return urlencode(wish | {"purpose": booking.purpose if self.row.is_changeable else ""})


def view_of(booking: Booking, viewer: User, now: datetime) -> BookingView:
    """All of it; eighteen queries, six more once it has begun."""
    row = rows([booking], viewer, now)[0]
    (lane,) = overviews(lanes_for_people().filter(pk=booking.lane_id), now, viewer)
    guests = tuple(booking.shares.select_related("member"))
    is_held = booking.state == State.CONFIRMED and row.status in HELD
    receipt = receipt_of(booking, now) if is_held else None
    uses = use_by_person(receipt) if receipt else ()
    return BookingView(
        booking=booking,
        row=row,
        is_guest=any(each.member_id == viewer.pk for each in guests),
        now=now,
        lane=lane,
        guests=guests,
        following=booking.lane.bookings.current(booking.end).exclude(pk=booking.pk).first(),
        events=tuple(_events(booking)[:EVENTS_SHOWN]),
        receipt=receipt,
        uses=tuple(each for each in uses if row.is_changeable or each.name == viewer.username),
        ran=tuple((each, flags_shown(each, viewer)) for each in receipt.ran) if receipt else (),
        closed=tuple(_closed(booking, now)) if row.status in OPEN else (),
    )


def _closed(booking: Booking, now: datetime) -> list[str]:
    return maintenance_words(booking.lane, max(booking.start, now), booking.end, now)


def _events(booking: Booking) -> QuerySet[LaneEvent]:
    """What was done to it; of a series, also that it was booked, which is told of its first."""
    about = Q(booking_id_for=booking.pk)
    if booking.series_id is not None:
        series = Booking.objects.filter(series=booking.series_id).values("pk")
        about |= Q(kind="series.created", booking_id_for__in=series)
    return LaneEvent.objects.filter(about)


def flags_shown(ran: Ran, viewer: User) -> str:
    """The arguments of what ran; what may tell of the host, or is secret, for administrators."""
    given = ran.revision.arguments
    return " ".join(given if viewer.is_staff else masked(given))


def masked(arguments: Sequence[str]) -> list[str]:
    """Arguments without paths and secrets."""
    found, is_value_secret = [], False
    for argument in arguments:
        name, is_joined, _value = argument.partition("=")
        if is_value_secret:
            found.append(MASK)
        elif is_joined and is_secret(_name(name)):
            found.append(f"{name}={MASK}")
        elif "/" in argument or "\\" in argument:
            found.append(f"{name}={HIDDEN}" if is_joined and "/" not in name else HIDDEN)
        else:
            found.append(argument)
        is_value_secret = argument.startswith("-") and not is_joined and is_secret(_name(argument))
    return found


def _name(flag: str) -> str:
    """Of --api-key, what tells that it is secret; --max-tokens and --tokenizer are not."""
    words = flag.strip("-").replace("_", "-").split("-")
    return words[-1] if words[-1].upper() not in {"TOKENS", "TOKENIZER", "KEYS"} else ""


def _sentence(view: BookingView) -> str:
    booking, order = view.booking, view.lane.order
    if view.is_on_lane and order is not None:
        return order.told
    if view.row.status is Status.UPCOMING and booking.kind == Kind.GPU:
        return _("No model server runs on the lane when the slot begins.")
    sentences = {
        Status.PENDING: _("An administrator decides. Until then the time is kept for it."),
        Status.HELD: _("It was waited for: take it in time, or the next who waits gets it."),
        Status.UPCOMING: _("%(model)s is loaded before the slot begins, as far as that is free."),
        Status.IN_PROGRESS: _("The slot is in progress."),
        Status.ENDED: _("The slot is over."),
        Status.RELEASED: _("The slot was released early."),
        Status.CANCELLED: _("It was cancelled, and its time is free for others."),
        Status.REJECTED: _("It was turned down, and its time is free for others."),
        Status.LAPSED: _("It was not taken in time, and its time is free for others."),
        Status.EXPIRED: _("Nobody approved it in time, and its time is free for others."),
    }
    model = booking.preset.name if booking.preset else ""
    return sentences[view.row.status] % {"model": model}
