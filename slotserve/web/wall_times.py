"""Times that a form is told as clocks on the wall show them. One that does not exist, or comes
twice as clocks go back, is asked: a choice of moments below it."""

from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext as _

from bookings.wall_clock import Reading, read
from slotserve.calendar import moving
from slotserve.calendar.telling import exact

WHICH = "which_"  # before a field's name: the moment that was chosen


class WallClockField(forms.DateTimeField):
    """A time on the viewer's wall, without a zone: which moment it is is asked later."""

    def to_python(self, value: Any) -> datetime | None:
        """The naive time."""
        if value in self.empty_values:
            return None
        found = value if isinstance(value, datetime) else moving.parsed(value)
        if found is None or timezone.is_aware(found):
            raise forms.ValidationError(_("Enter a date and a time."), code="invalid")
        return found


class AskingForm(forms.Form):
    """A form that can ask which moment is meant by a time. `which_*` are the answers."""

    def ask(self, asked: moving.Asked, label: str) -> None:
        """Let the member choose, right below the time."""
        choices = moving.choices(asked, timezone.get_current_timezone())
        name = WHICH + asked.field
        self.fields[name] = forms.ChoiceField(
            label=label,
            choices=[(exact(moment), said) for moment, said in choices],
            widget=forms.RadioSelect(attrs={"class": "form-check-input"}),
        )
        order = [each for each in self.fields if each != name]
        order.insert(order.index(asked.field) + 1, name)
        self.order_fields(order)

    def ask_of_initial(self, names: Sequence[str]) -> None:
        """Of times that the form begins with, before anything is sent."""
        zone = timezone.get_current_timezone()
        for name in () if self.is_bound else names:
            wall = moving.parsed(self.initial.get(name, ""))
            if wall is not None and timezone.is_naive(wall):
                self._read(name, wall, zone)

    def moment(self, name: str) -> datetime | None:
        """Which moment a time is that was sent; None where it is asked now, or there is none."""
        wall = self.cleaned_data.get(name)
        if not isinstance(wall, datetime):
            return None
        found = self._read(name, wall, timezone.get_current_timezone())
        chosen = moving.parsed(self.data.get(WHICH + name, ""))
        moment = found.moment or next((each for each in found.choices if each == chosen), None)
        if moment is None:
            self.add_error(name, _("Choose below which time is meant."))
        return moment

    def _read(self, name: str, wall: datetime, zone: tzinfo) -> Reading:
        found = read(wall, zone)
        if found.moment is None:
            asked = moving.Asked(name, wall, found)
            self.ask(asked, f"{self.fields[name].label}: {moving.question(asked)}")
        return found
