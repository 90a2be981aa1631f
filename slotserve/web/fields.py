"""Fields and widgets that several forms of the pages use."""

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms.utils import pretty_name
from django.utils.translation import gettext as _

from lanes.models import Gpu, Lane, ModelFile, Preset
from lanes.plain_words import plain
from slotserve.calendar.moving import YEARS


class LocalDateTimeInput(forms.DateTimeInput):
    """The browser's own date and time picker, in the viewer's zone."""

    input_type = "datetime-local"

    def __init__(self) -> None:
        super().__init__(format="%Y-%m-%dT%H:%M", attrs={"step": 60})


class MomentField(forms.DateTimeField):
    """A time in the viewer's zone, of the years that can be reckoned with."""

    widget = LocalDateTimeInput

    def to_python(self, value: Any) -> datetime | None:
        """The moment."""
        found = super().to_python(value)
        if found is not None and found.year not in YEARS:
            raise ValidationError(self.error_messages["invalid"], code="invalid")
        return found


class HostSelect(forms.Select):
    """Options that carry their host, so that the page offers only what fits the chosen lane."""

    hosts: dict[str, str] = {}

    def create_option(self, name: str, value: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """An option; one without a host fits everywhere."""
        option = super().create_option(name, value, *args, **kwargs)
        host = self.hosts.get(str(value))
        if host:
            option["attrs"]["data-host"] = host
        return option


class NamedField(forms.ModelChoiceField):  # type: ignore[type-arg]
    """Lanes and presets by the names that people gave them."""

    def label_from_instance(self, obj: Lane | Preset) -> str:
        """What the list says."""
        return obj.name


class PresetField(NamedField):
    """Presets by their names, and whether their files are there. Give it `current__model_file`."""

    def label_from_instance(self, obj: Lane | Preset) -> str:
        """What the list says."""
        return marked_name(obj) if isinstance(obj, Preset) else super().label_from_instance(obj)


class ModelFileField(forms.ModelChoiceField):  # type: ignore[type-arg]
    """Models by their names and kinds, by which people know what can load them."""

    def label_from_instance(self, obj: ModelFile) -> str:
        """What the list says."""
        return f"{obj.name} ({obj.get_kind_display()})"


class GpuField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]
    """Cards to tick, by name, memory and the end of their UUID."""

    widget = forms.CheckboxSelectMultiple

    def label_from_instance(self, obj: Gpu) -> str:
        """What the list says: two cards of a host often have one name."""
        memory = f", {obj.memory_bytes / 2**30:.0f} GiB" if obj.memory_bytes else ""
        return f"{obj.name}{memory} (…{obj.uuid[-8:]}, {obj.host.name})"


class StyledForm(forms.Form):
    """A form whose widgets carry the looks' classes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            field.widget.attrs.setdefault("class", class_of(field.widget))
            field.label = field.label or _(pretty_name(name))

    def add_error(self, field: str | None, error: Any) -> None:
        """Frameworks' sentences in plain ones."""
        if isinstance(error, ValidationError) and not hasattr(error, "error_dict"):
            error = ValidationError([plain(words) for words in error.messages])
        super().add_error(field, error)


def marked_name(preset: Preset) -> str:
    """The preset's name, with a word about its file when something is wrong with it."""
    file = preset.current.model_file if preset.current else None
    if file is None or not file.warning:
        return preset.name
    trouble = _("file is gone") if file.missing_since else _("file has trouble")
    return f"{preset.name} ({trouble})"


def next_quarter(now: datetime) -> datetime:
    """The next quarter of an hour, for times to begin with."""
    whole = now.replace(minute=0, second=0, microsecond=0)
    return whole + timedelta(minutes=15 * (now.minute // 15 + 1))


def class_of(widget: forms.Widget) -> str:
    """The looks' class of a widget."""
    if isinstance(widget, forms.CheckboxInput | forms.RadioSelect | forms.CheckboxSelectMultiple):
        return "form-check-input"
    return "form-select" if isinstance(widget, forms.Select) else "form-control"
