"""What the calendar says of bookings, bands and days on which clocks are changed."""

from collections.abc import Iterable
from datetime import datetime, tzinfo

from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from bookings.wall_clock import Change, changes, wall_of
from bookings.warmth import Band, BandKind
from slotserve.calendar.condensing import Block, Entry
from slotserve.calendar.spans import Span, View

DASH = "\N{EN DASH}"


def title(span: Span) -> str:
    """The days in words, such as 30 November - 6 December 2026."""
    if span.view is View.MONTH:
        return date_format(span.first, "F Y")
    if span.view is View.WEEK:
        day = "j F" if span.first.year == span.last.year else "j F Y"
        return f"{date_format(span.first, day)} {DASH} {date_format(span.last, 'j F Y')}"
    return date_format(span.first, "l, j F Y")


def entry_title(entry: Entry | Block) -> str:
    """What stands in the picture."""
    if isinstance(entry, Block):
        return ngettext("%(count)s booking", "%(count)s bookings", entry.count) % {
            "count": entry.count
        }
    who = _("You") if entry.is_mine else entry.who
    return f"{who} · {entry.what or _('whole GPU')}"


def entry_label(entry: Entry | Block, lane: str, zone: tzinfo) -> str:
    """The same with lane and times, for those who hear it."""
    parts = [entry_title(entry), lane, times(entry.start, entry.end, zone)]
    if isinstance(entry, Block):
        parts.append(_("%(hours).1f hours booked") % {"hours": entry.seconds / 3600})
    elif entry.is_pending:
        parts.append(_("waits for approval"))
    return ", ".join(parts)


def times(start: datetime, end: datetime, zone: tzinfo) -> str:
    """From when to when, with the day."""
    return f"{date_format(start.astimezone(zone), 'j M')} {clocks(start, end, zone)}"


def clocks(start: datetime, end: datetime, zone: tzinfo) -> str:
    """Without the first day; zones' names where they differ, the last day where it does."""
    one, other = start.astimezone(zone), end.astimezone(zone)
    is_changed = one.utcoffset() != other.utcoffset()
    pattern = "%H:%M %Z" if is_changed else "%H:%M"
    last = other.strftime(pattern)
    if one.date() != other.date():
        last = f"{date_format(other, 'j M')} {last}"
    return f"{one.strftime(pattern)} {DASH} {last}"


def band_words(band: Band, zone: tzinfo) -> str:
    """What goes on in a band."""
    start, end = (moment.astimezone(zone).strftime("%H:%M:%S") for moment in (band.start, band.end))
    patterns = {
        BandKind.DRAIN: _("Running requests may finish, %(start)s to %(end)s at the latest"),
        BandKind.LOAD: _("%(preset)s loads, %(start)s to %(end)s"),
        BandKind.WARM: _("%(preset)s is warm, %(start)s to %(end)s"),
    }
    return patterns[band.kind] % {"preset": band.preset, "start": start, "end": end}


def slot_words(found: Iterable[Band], start: datetime, zone: tzinfo) -> str:
    """When the model of a slot is warm, by the slot's bands; empty: it is loaded already."""
    for band in found:
        if band.kind is BandKind.LOAD:
            late = (band.end - start).total_seconds()
            if late > 0:
                said = ngettext(
                    "loads for the first %(seconds)d second",
                    "loads for the first %(seconds)d seconds",
                    round(late),
                )
                return said % {"seconds": round(late)}
            return _("warm at %(time)s") % {"time": band.end.astimezone(zone).strftime("%H:%M")}
    return ""


def notes(span: Span) -> list[str]:
    """A sentence for each day of the span on which the clocks are changed."""
    return [_note(change, span.zone) for change in changes(span.first, span.last, span.zone)]


def _note(change: Change, zone: tzinfo) -> str:
    after = wall_of(change.at, zone)
    minutes = round(change.by.total_seconds() / 60)
    values = {
        "day": date_format(after, "j F"),
        "before": f"{after - change.by:%H:%M}",
        "after": f"{after:%H:%M}",
        "minutes": abs(minutes),
    }
    if minutes > 0:
        return (
            _("On %(day)s clocks go forward from %(before)s to %(after)s: no time between exists.")
            % values
        )
    return (
        _(
            "On %(day)s clocks go back from %(before)s to %(after)s: the %(minutes)d minutes "
            "before come twice, and share their place here."
        )
        % values
    )
