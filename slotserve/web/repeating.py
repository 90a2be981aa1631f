"""The part of the booking form that repeats a slot, and what its occurrences are in words."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.dates import WEEKDAYS
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from bookings.models import Kind
from bookings.recurrence import MOST, Every, Note, Pattern
from bookings.series import AskedSeries
from bookings.series_judging import Judged
from bookings.series_rows import Repeat
from bookings.wall_clock import wall_of
from slotserve.web.fields import StyledForm

MINUTE = timedelta(minutes=1)
NOTES = {
    Note.START_MOVED: gettext_lazy("Clocks skip this start that night: it begins later."),
    Note.END_MOVED: gettext_lazy("Clocks skip this end that night: it ends later."),
    Note.START_FIRST: gettext_lazy("Clocks show this start twice that night: the first is meant."),
    Note.END_FIRST: gettext_lazy("Clocks show this end twice that night: the first is meant."),
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
        start, end = wish["start"], wish["end"]
        if start is None:
            start = (now + MINUTE).replace(second=0, microsecond=0)
            end += MINUTE if self.data.get("length") else timedelta()
        return AskedSeries(
            lane=wish["lane"],
            kind=Kind.MODEL if wish["preset"] else Kind.GPU,
            preset=wish["preset"],
            start=wall_of(start, zone),
            end=wall_of(end, zone),
            zone=timezone.get_current_timezone_name(),
            pattern=self._pattern(),
            purpose=wish.get("purpose", ""),
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
    return OccurrenceRow(start, max(start, occurrence.end), refusal is None, " ".join(said))
