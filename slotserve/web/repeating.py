"""The part of the booking form that repeats a slot, and what its occurrences are in words."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.utils import timezone
from django.utils.dates import WEEKDAYS
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from bookings.models import Kind
from bookings.recurrence import MOST, Doubt, Every, Note, Occurrence, Pattern
from bookings.series import AskedSeries
from bookings.series_judging import Judged
from bookings.series_rows import Repeat
from bookings.wall_clock import Reading, wall_of
from slotserve.calendar.moving import Asked, parsed, question
from slotserve.calendar.moving import choices as moving_choices
from slotserve.web.fields import StyledForm
from slotserve.web.rows import picked

MINUTE = timedelta(minutes=1)
MEANT = "meant-"  # fields that say which moment is meant
NOTES = {
    Note.START_MOVED: gettext_lazy("Clocks skip this start that night: it begins later."),
    Note.END_MOVED: gettext_lazy("Clocks skip this end that night: it ends later."),
    Note.START_EARLIER: gettext_lazy("Clocks skip this start that night: it begins earlier."),
    Note.END_EARLIER: gettext_lazy("Clocks skip this end that night: it ends earlier."),
    Note.START_FIRST: gettext_lazy("Clocks show this start twice that night: the first is meant."),
    Note.END_FIRST: gettext_lazy("Clocks show this end twice that night: the first is meant."),
    Note.START_SECOND: gettext_lazy(
        "Clocks show this start twice that night: the second is meant."
    ),
    Note.END_SECOND: gettext_lazy("Clocks show this end twice that night: the second is meant."),
}


class RepeatForm(StyledForm):
    """How often, if at all."""

    repeat = forms.ChoiceField(
        label=gettext_lazy("Repeat"),
        choices=[("", gettext_lazy("Never")), *Repeat.choices],
        required=False,
    )
    days = forms.TypedMultipleChoiceField(
        label=gettext_lazy("On (if every week)"),
        choices=list(WEEKDAYS.items()),
        coerce=int,
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    until = forms.DateField(
        label=gettext_lazy("Until (the last day)"),
        required=False,
        widget=forms.DateInput(format="%Y-%m-%d", attrs={"type": "date"}),
    )
    count = forms.IntegerField(
        label=gettext_lazy("Or how many times"), required=False, min_value=1, max_value=MOST
    )
    leave_out = forms.BooleanField(
        label=gettext_lazy("Leave out those that cannot be booked"), required=False
    )

    @property
    def is_wanted(self) -> bool:
        """Whether it repeats at all."""
        return bool(self.data.get("repeat"))

    def asked(self, wish: dict[str, Any], now: datetime) -> AskedSeries:
        """The series that starts with this wish; from now is from the next minute on."""
        zone = timezone.get_current_timezone()
        start = wish["start"] or (now + MINUTE).replace(second=0, microsecond=0)
        first, last = wall_of(start, zone), wall_of(wish["end"], zone)
        if self.data.get("length"):  # on the clock, as every occurrence is
            last = first + timedelta(minutes=int(self.data["length"]))
        return AskedSeries(
            lane=wish["lane"],
            kind=Kind.MODEL if wish["preset"] else Kind.GPU,
            preset=wish["preset"],
            start=first,
            end=last,
            zone=timezone.get_current_timezone_name(),
            pattern=self._pattern(),
            purpose=wish.get("purpose", ""),
            meant=self._meant({"start": (first, start), "end": (last, wish["end"])}),
        )

    def _meant(self, first: Mapping[str, tuple[datetime, datetime]]) -> frozenset[datetime]:
        """The moments that were chosen where clocks leave a choice: of the first day (its start and
        end on the clock, and as moments) in the form, of the others below it."""
        said = [value for name, value in self.data.items() if name.startswith(MEANT)]
        moments = [parsed(value) for value in said]
        moments += [
            moment
            for field, (wall, moment) in first.items()
            if f"{MEANT}{field}-{wall:%Y%m%d}" not in self.data
        ]
        return frozenset(
            each.astimezone(UTC) for each in moments if each and timezone.is_aware(each)
        )

    def _pattern(self) -> Pattern:
        said = self.cleaned_data
        until: date | None = said.get("until")
        days = frozenset(said.get("days") or ())
        return Pattern(Every(said["repeat"]), days, until, said.get("count"))


@dataclass(frozen=True, slots=True)
class OccurrenceRow:
    """An occurrence as the page lists it."""

    start: datetime
    end: datetime
    is_fine: bool
    words: str  # what stands against it, or what is to be known
    questions: tuple["Question", ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """Which moment is meant by a time that clocks leave out or show twice: the field that answers,
    and each choice's value, words, and whether it is the one."""

    name: str
    words: str
    choices: tuple[tuple[str, str, bool], ...]


@dataclass(frozen=True, slots=True)
class SeriesOffer:
    """Other times for all of a series, as on its first day, and the query that fills the form."""

    start: datetime
    end: datetime
    query: str


def series_offers(found: Iterable[Occurrence], data: Mapping[str, Any]) -> list[SeriesOffer]:
    """The nearest free times as links that keep what else was typed."""
    kept = {name: data.get(name, "") for name in ("lane", "what", "purpose", "repeat")}
    kept |= {name: data[name] for name in ("until", "count") if data.get(name)}
    days = data.getlist("days") if hasattr(data, "getlist") else data.get("days", [])
    return [SeriesOffer(each.start, each.end, _query(each, kept, list(days))) for each in found]


def _query(each: Occurrence, kept: Mapping[str, str], days: list[str]) -> str:
    times = {"begins": "later", "start": picked(each.start), "end": picked(each.end)}
    return urlencode([*kept.items(), *times.items(), *(("days", day) for day in days)])


def occurrence_rows(judged: Iterable[Judged]) -> list[OccurrenceRow]:
    """Each with its verdict in words."""
    return [_row(each) for each in judged]


def _row(judged: Judged) -> OccurrenceRow:
    occurrence, refusal = judged.occurrence, judged.refusal
    said = [str(NOTES[note]) for note in occurrence.notes]
    if refusal:
        said.append(refusal.words)
    elif judged.is_asked:
        said.append(_("Free; an administrator must approve it."))
    else:
        said.append(_("Free."))
    start = occurrence.start
    questions = tuple(_question(each) for each in occurrence.doubts)
    end = max(start, occurrence.end)
    return OccurrenceRow(start, end, refusal is None, " ".join(said), questions)


def _question(doubt: Doubt) -> Question:
    asked = Asked(
        "end" if doubt.is_end else "start", doubt.wall, Reading(doubt.shown, doubt.choices)
    )
    choices = moving_choices(asked, timezone.get_current_timezone())
    return Question(
        name=f"{MEANT}{asked.field}-{doubt.wall:%Y%m%d}",
        words=question(asked),
        choices=tuple(
            (moment.isoformat(), words, moment == doubt.meant) for moment, words in choices
        ),
    )
