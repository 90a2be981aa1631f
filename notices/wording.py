"""Notices of bookings in words: in the language and zone that are in force, with the zone named."""

from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from bookings.models import Booking, Lapse
from lanes.models import Lane, Maintenance
from lanes.telling import tell


@dataclass(frozen=True, slots=True)
class Words:
    """What a person reads."""

    sentence: str
    advice: str = ""


def words_of(event: str, booking: Booking, *, has_comment: bool = True) -> Words:
    """What an event of a booking is in words; what was said with a decision is for its owner and
    administrators alone."""
    sentences = {
        "confirmed": _("Your booking of %(what)s on %(lane)s is confirmed: %(slot)s."),
        "changed": _("Your booking of %(what)s on %(lane)s is now: %(slot)s."),
        "decision_needed": _("%(owner)s asks for %(what)s on %(lane)s: %(slot)s."),
        "approved": _("Your booking of %(what)s on %(lane)s was approved: %(slot)s."),
        "rejected": _("Your booking of %(what)s on %(lane)s was rejected: %(slot)s."),
        "cancelled": _("Your booking of %(what)s on %(lane)s was cancelled: %(slot)s."),
        "expired": _("Nobody approved your booking of %(what)s on %(lane)s in time: %(slot)s."),
        "warm": _("%(what)s is loaded on %(lane)s for your slot: %(slot)s."),
        "starting": _("Your slot with %(what)s on %(lane)s begins at %(start)s."),
        "ending": _("Your slot with %(what)s on %(lane)s ends at %(end)s."),
        "offered": _(
            "%(lane)s is held for you with %(what)s until %(held)s: %(slot)s. Take it, or it "
            "passes on."
        ),
        "released": _("Your slot with %(what)s on %(lane)s was released; it ended at %(end)s."),
    }
    if event == "released" and booking.lapse == Lapse.NO_SHOW:
        sentences["released"] = _(
            "Your slot with %(what)s on %(lane)s was released, as nobody sent a request in time; "
            "it ended at %(end)s."
        )
    comment = _decision(event, booking) if has_comment else ""
    return Words(sentences[event] % _values(booking), comment or _advice(event))


def freed_words(lane: Lane, start: datetime, end: datetime) -> Words:
    """That time has become free."""
    values = {"lane": lane.name, "slot": slot(start, end)}
    return Words(
        _("%(lane)s has become free: %(slot)s.") % values,
        _("Whoever books it first has it."),
    )


def recovered_words(lane: Lane, preset: str) -> Words:
    """That what had failed runs."""
    return Words(
        _("%(preset)s runs on %(lane)s again.") % {"preset": preset, "lane": lane.name},
    )


def maintenance_words(told: str, booking: Booking, row: Maintenance) -> Words:
    """What maintenance means for a booking: `told` is planned, changed or over."""
    ends = slot(row.start, row.end) if row.end else _("from %s on") % moment(row.start)
    values = {**_values(booking), "when": ends, "why": f" ({row.reason})" if row.reason else ""}
    sentences = {
        "planned": _("%(lane)s is under maintenance %(when)s%(why)s: your slot is %(slot)s."),
        "changed": _("The maintenance of %(lane)s is now %(when)s%(why)s: your slot is %(slot)s."),
        "over": _("No maintenance of %(lane)s is in the way of your slot any more: %(slot)s."),
    }
    advice = _("The booking stays: what lies outside the maintenance is yours. Move it if you can.")
    return Words(sentences[told] % values, "" if told == "over" else advice)


def moment(value: datetime) -> str:
    """A time with its day and its zone's name, for somebody who may read it another day."""
    local = timezone.localtime(value)
    return f"{date_format(local, _('D j M Y, H:i'))} {zone_name(local)}"


def slot(start: datetime, end: datetime) -> str:
    """A slot with its zone's name; the second day only where it is another, and both names where
    the clocks change within it."""
    first, last = timezone.localtime(start), timezone.localtime(end)
    is_one_day, is_one_zone = first.date() == last.date(), first.tzname() == last.tzname()
    begin = date_format(first, _("D j M Y, H:i"))
    if not is_one_zone:
        begin += f" {zone_name(first)}"
    close = date_format(last, "H:i" if is_one_day else _("D j M Y, H:i"))
    return f"{begin} – {close} {zone_name(last)}"  # noqa: RUF001 - an interval's dash


def zone_name(local: datetime) -> str:
    """CET, EST …; where a zone has no name but its offset, its place and that."""
    name = local.tzname() or ""
    if name[:1] not in {"+", "-"}:
        return name
    place = getattr(local.tzinfo, "key", "").rpartition("/")[2].replace("_", " ")
    hours = local.strftime("%z")
    return f"{place} UTC{hours[:3]}:{hours[3:5]}".strip()


def _values(booking: Booking) -> dict[str, str]:
    return {
        "what": tell(booking.called),
        "lane": booking.lane.name,
        "owner": booking.owner.get_username(),
        "slot": slot(booking.start, booking.end),
        "start": moment(booking.start),
        "end": moment(booking.end),
        "held": moment(booking.held_until or booking.end),
    }


def _decision(event: str, booking: Booking) -> str:
    """What was said by whoever decided; empty if nothing was."""
    if event not in {"approved", "rejected"} or not booking.decision_comment:
        return ""
    by = booking.decided_by.get_username() if booking.decided_by else _("An administrator")
    return _("%(by)s says: %(comment)s") % {"by": by, "comment": booking.decision_comment}


def _advice(event: str) -> str:
    advice = {
        "decision_needed": _("Approve or reject it under Administration, Approvals."),
        "rejected": _("Ask an administrator why, or book another time."),
        "ending": _(
            "What still runs then is ended. Extend the slot if nobody has the time after it."
        ),
        "offered": _("Take it under My bookings."),
        "starting": _("Release it if you do not need it: others can have the time."),
    }
    return advice.get(event, "")
