"""What the calendar says of bookings and bands: thousands of times alike, so that what recurs is
translated and formatted once."""

from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo
from functools import cache

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from bookings.warmth import Band, BandKind
from slotserve.calendar import words
from slotserve.calendar.entries import Block, Entry

_WALL = len("2026-11-30T08:57:00")  # of what isoformat says: without the offset
_TIME = slice(len("2026-11-30T"), _WALL)


class Teller:
    """Says bookings and bands of one answer, in its language and zone."""

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone
        self._you, self._gpu, self._waits = _("You"), _("whole GPU"), _("waits for approval")
        self._held = _("held for whoever waited, until it is confirmed")
        self._hours, self._warm = _("%(hours).1f hours booked"), _("warm at %(time)s")
        self._bands = {
            BandKind.DRAIN: _("Running requests may finish, %(start)s to %(end)s at the latest"),
            BandKind.LOAD: _("%(preset)s loads, %(start)s to %(end)s"),
            BandKind.WARM: _("%(preset)s is warm, %(start)s to %(end)s"),
        }
        self._clock = cache(self._clock_of)
        self.wall = cache(self._wall)
        self.exact = cache(exact)
        self._count = cache(_count)
        self._late = cache(_late)

    def title(self, one: Entry | Block) -> str:
        """What stands in the picture."""
        if isinstance(one, Block):
            return self._count(one.count)
        return f"{self._you if one.is_mine else one.who} · {one.what or self._gpu}"

    def label(self, one: Entry | Block, lane: str) -> str:
        """The same with lane and times, for those who hear it."""
        said = f"{self.title(one)}, {lane}, {self.times(one.start, one.end)}"
        if isinstance(one, Block):
            return f"{said}, {self._hours % {'hours': one.seconds / 3600}}"
        state = self._waits if one.is_pending else self._held if one.is_held else ""
        return f"{said}, {state}" if state else said

    def times(self, start: datetime, end: datetime) -> str:
        """From when to when, with the day."""
        one = self._clock(start)
        return f"{one.day_words} {words.clocks_between(one, self._clock(end))}"

    def warm(self, found: Iterable[Band], start: datetime) -> str:
        """When the model of a slot is warm, by the slot's bands; empty: it is loaded already."""
        for band in found:
            if band.kind is BandKind.LOAD:
                late = (band.end - start).total_seconds()
                clock = self._clock(band.end)
                return self._late(round(late)) if late > 0 else self._warm % {"time": clock.time}
        return ""

    def band(self, band: Band) -> str:
        """What goes on in a band."""
        start, end = self.wall(band.start), self.wall(band.end)
        values = {"preset": band.preset, "start": start[_TIME], "end": end[_TIME]}
        return self._bands[band.kind] % values

    def _wall(self, moment: datetime) -> str:
        """What clocks of the zone show, to the second: no offset."""
        return moment.astimezone(self._zone).isoformat(timespec="seconds")[:_WALL]

    def _clock_of(self, moment: datetime) -> words.Clock:
        return words.clock(moment.astimezone(self._zone))


def exact(moment: datetime) -> str:
    """A moment as its row has it."""
    return moment.astimezone(UTC).isoformat()


def _count(count: int) -> str:
    return ngettext("%(count)s booking", "%(count)s bookings", count) % {"count": count}


def _late(seconds: int) -> str:
    said = ngettext(
        "loads for the first %(seconds)d second",
        "loads for the first %(seconds)d seconds",
        seconds,
    )
    return said % {"seconds": seconds}
