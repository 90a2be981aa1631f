"""Forms for members. They read and explain; services decide."""

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from bookings.models import Kind
from lanes.fitting import fits_nowhere, too_large
from lanes.models import Lane, Preset
from slotserve.web.fields import (
    HostSelect,
    LocalDateTimeInput,
    MomentField,
    NamedField,
    PresetField,
    StyledForm,
    marked_name,
    next_quarter,
)
from slotserve.web.wall_times import AskingForm, WallClockField

WHOLE_GPU = "gpu"
PRESET = "preset:"


LENGTHS = [
    ("30", gettext_lazy("30 min")),
    ("60", gettext_lazy("1 h")),
    ("120", gettext_lazy("2 h")),
    ("240", gettext_lazy("4 h")),
    ("480", gettext_lazy("8 h")),
    ("", gettext_lazy("Until …")),
]


class BookForm(AskingForm, StyledForm):
    """A wish to book. Its end is chosen, or its length; a time that is not one moment is asked."""

    lane = NamedField(
        Lane.objects.none(), to_field_name="slug", empty_label=None, widget=HostSelect
    )
    what = forms.ChoiceField(label=gettext_lazy("Load"), widget=HostSelect)
    begins = forms.ChoiceField(
        label=gettext_lazy("Start"),
        choices=[("now", gettext_lazy("Now")), ("later", gettext_lazy("Later"))],
        initial="now",
        widget=forms.RadioSelect,
    )
    start = WallClockField(
        label=gettext_lazy("Start at"), required=False, widget=LocalDateTimeInput()
    )
    length = forms.ChoiceField(
        label=gettext_lazy("Length"), choices=LENGTHS, required=False, widget=forms.RadioSelect
    )
    end = WallClockField(label=gettext_lazy("End"), required=False, widget=LocalDateTimeInput())
    purpose = forms.CharField(
        max_length=200,
        required=False,
        label=gettext_lazy("What for (optional)"),
        help_text=gettext_lazy("Only you and administrators see it."),
    )

    def __init__(self, *args: Any, now: datetime, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._offer_lanes()
        self._offer_presets()
        start = next_quarter(now)
        self.fields["start"].initial = start
        self.fields["end"].initial = start + timedelta(hours=1)
        self.fields["length"].initial = "" if self.initial.get("end") else "60"
        if self.initial.get("start"):
            self.initial.setdefault("begins", "later")
        self.ask_of_initial(("start", "end"))
        self._now = now

    def clean(self) -> dict[str, Any]:
        """Start later needs a time; the length makes the end, in whole minutes."""
        cleaned = super().clean() or {}
        is_later, length = cleaned.get("begins") == "later", cleaned.get("length")
        if is_later and cleaned.get("start", "") is None:
            self.add_error("start", _("Say when it starts, or choose to start now."))
        cleaned["start"] = self.moment("start") if is_later else None
        start = cleaned["start"] if is_later else self._now
        if length and start:
            end = start + timedelta(minutes=int(length))
            cleaned["end"] = end.replace(second=0, microsecond=0)
        elif length:
            cleaned["end"] = None
        elif cleaned.get("end", "") is None:
            self.add_error("end", _("Say how long, or until when."))
        else:
            cleaned["end"] = self.moment("end")
        return cleaned

    def clean_what(self) -> Preset | None:
        """The preset to load; None: the whole GPU."""
        slug = self.cleaned_data["what"].removeprefix(PRESET)
        return None if slug == WHOLE_GPU else Preset.objects.get(slug=slug)

    def wish(self) -> dict[str, Any]:
        """The arguments of the booking service."""
        cleaned = self.cleaned_data
        return {
            "lane": cleaned["lane"],
            "kind": Kind.MODEL if cleaned["what"] else Kind.GPU,
            "preset": cleaned["what"],
            "start": cleaned["start"] if cleaned["begins"] == "later" else None,
            "end": cleaned["end"],
            "purpose": cleaned["purpose"],
        }

    def _offer_lanes(self) -> None:
        lanes = Lane.objects.filter(enabled=True).order_by("name")
        self.fields["lane"].queryset = lanes  # type: ignore[attr-defined]
        self.fields["lane"].widget.hosts = {lane.slug: str(lane.host_id) for lane in lanes}

    def _offer_presets(self) -> None:
        """Of every host: the page shows those of the lane's, the service refuses the others."""
        presets = Preset.objects.offered().select_related("current__model_file")
        lanes = list(Lane.objects.filter(enabled=True).prefetch_related("gpus"))
        choices = [(PRESET + preset.slug, _offered(preset, lanes)) for preset in presets]
        choices.append((WHOLE_GPU, _("The whole GPU, without a model server")))
        self.fields["what"].choices = choices  # type: ignore[attr-defined]
        self.fields["what"].widget.hosts = {
            PRESET + preset.slug: str(preset.current.model_file.host_id)
            for preset in presets
            if preset.current
        }


def _offered(preset: Preset, lanes: list[Lane]) -> str:
    """Its name, marked where it fits no lane of its host; for one lane the page says it below."""
    is_marked = preset.current is not None and fits_nowhere(lanes, preset.current.model_file)
    name = marked_name(preset)
    return f"{name} · {too_large()}" if is_marked else name


class ExtendForm(StyledForm):
    """Another end for a booking."""

    end = MomentField(label=gettext_lazy("New end"))


class ChooseForm(StyledForm):
    """A manual target until a time."""

    preset = PresetField(
        Preset.objects.none(),
        to_field_name="slug",
        required=False,
        empty_label=gettext_lazy("Unload: no model server"),
        label=gettext_lazy("Load"),
    )
    until = MomentField()

    def __init__(self, *args: Any, lane: Lane, now: datetime, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fitting = Preset.objects.offered().filter(current__model_file__host=lane.host_id)
        fitting = fitting.select_related("current__model_file")
        self.fields["preset"].queryset = fitting  # type: ignore[attr-defined]
        self.fields["preset"].initial = lane.default_preset  # nobody unloads by mere pressing
        self.fields["until"].initial = next_quarter(now) + timedelta(hours=1)


class DefaultForm(StyledForm):
    """What a lane runs between bookings."""

    default_preset = PresetField(
        Preset.objects.none(),
        to_field_name="slug",
        required=False,
        empty_label=gettext_lazy("Nothing"),
        label=gettext_lazy("Default between bookings"),
    )

    def __init__(self, *args: Any, lane: Lane, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fitting = Preset.objects.offered().filter(current__model_file__host=lane.host_id)
        fitting = fitting.select_related("current__model_file")
        self.fields["default_preset"].queryset = fitting  # type: ignore[attr-defined]
        self.fields["default_preset"].initial = lane.default_preset
