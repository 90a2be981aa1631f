"""Forms of the pages. They read and explain; services decide."""

import shlex
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.db.models import QuerySet

from bookings.models import Kind
from gateway.models import Scope
from lanes.engines.flags import split_line
from lanes.models import Gpu, Host, Lane, ModelFile, Preset
from lanes.refusals import Refusal

WHOLE_GPU = "gpu"


class LocalDateTimeInput(forms.DateTimeInput):
    """The browser's own date and time picker, in the viewer's zone."""

    input_type = "datetime-local"

    def __init__(self) -> None:
        super().__init__(format="%Y-%m-%dT%H:%M", attrs={"step": 60})


class StyledForm(forms.Form):
    """A form whose widgets carry the looks' classes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs.setdefault("class", _class_of(field.widget))


def _class_of(widget: forms.Widget) -> str:
    if isinstance(widget, forms.CheckboxInput | forms.RadioSelect | forms.CheckboxSelectMultiple):
        return "form-check-input"
    return "form-select" if isinstance(widget, forms.Select) else "form-control"


class LaneField(forms.ModelChoiceField):  # type: ignore[type-arg]
    """Lanes by their names."""

    def label_from_instance(self, obj: Lane) -> str:
        """What the list says."""
        return obj.name


class BookForm(StyledForm):
    """A wish to book."""

    lane = LaneField(Lane.objects.none(), to_field_name="slug", empty_label=None)
    what = forms.ChoiceField(label="Load")
    begins = forms.ChoiceField(
        label="Start",
        choices=[("now", "Now"), ("later", "Later")],
        initial="now",
        widget=forms.RadioSelect,
    )
    start = forms.DateTimeField(label="Start at", required=False, widget=LocalDateTimeInput())
    end = forms.DateTimeField(label="End", widget=LocalDateTimeInput())
    purpose = forms.CharField(max_length=200, required=False, label="What for (optional)")

    def __init__(self, *args: Any, now: datetime, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lanes: QuerySet[Lane] = Lane.objects.filter(enabled=True).order_by("name")
        self.fields["lane"].queryset = self.lanes  # type: ignore[attr-defined]
        presets = Preset.objects.filter(current__isnull=False)
        choices = [(f"preset:{preset.slug}", preset.name) for preset in presets]
        choices.append((WHOLE_GPU, "The whole GPU, without a model server"))
        self.fields["what"].choices = choices  # type: ignore[attr-defined]
        self.fields["end"].initial = now + timedelta(hours=1)
        self.fields["start"].initial = now + timedelta(hours=1)

    def clean(self) -> dict[str, Any]:
        """Start later needs a time."""
        cleaned = super().clean() or {}
        if cleaned.get("begins") == "later" and not cleaned.get("start"):
            self.add_error("start", "Say when it starts, or choose to start now.")
        return cleaned

    def wish(self) -> dict[str, Any]:
        """The arguments of the booking service."""
        cleaned = self.cleaned_data
        is_gpu = cleaned["what"] == WHOLE_GPU
        slug = cleaned["what"].removeprefix("preset:")
        return {
            "lane": cleaned["lane"],
            "kind": Kind.GPU if is_gpu else Kind.MODEL,
            "preset": None if is_gpu else Preset.objects.get(slug=slug),
            "start": cleaned["start"] if cleaned["begins"] == "later" else None,
            "end": cleaned["end"],
            "purpose": cleaned["purpose"],
        }


class ExtendForm(StyledForm):
    """Another end for a booking."""

    end = forms.DateTimeField(widget=LocalDateTimeInput())


class TokenForm(StyledForm):
    """A wish for a token."""

    name = forms.CharField(max_length=100, help_text="What uses it, such as “laptop” or “CI”.")
    scopes = forms.MultipleChoiceField(
        choices=Scope.choices,
        initial=[Scope.INFERENCE, Scope.BOOKINGS, Scope.READ],
        widget=forms.CheckboxSelectMultiple,
    )
    days = forms.IntegerField(
        min_value=1, max_value=3650, required=False, label="Expires after days (optional)"
    )


class ChooseForm(StyledForm):
    """A manual target until a time."""

    preset = forms.ModelChoiceField(
        Preset.objects.filter(current__isnull=False),
        to_field_name="slug",
        required=False,
        empty_label="Unload: no model server",
    )
    until = forms.DateTimeField(widget=LocalDateTimeInput())

    @staticmethod
    def initial_at(now: datetime) -> dict[str, Any]:
        """An hour from now."""
        return {"until": now + timedelta(hours=1)}


class LaneForm(StyledForm):
    """What an administrator says of a lane."""

    slug = forms.CharField(max_length=63, help_text="Part of addresses: small letters, digits, -.")
    name = forms.CharField(max_length=100)
    host = forms.ModelChoiceField(Host.objects.all(), to_field_name="key", empty_label=None)
    gpus = forms.ModelMultipleChoiceField(
        Gpu.objects.all(), to_field_name="uuid", required=False, label="GPUs (none: CPU)"
    )
    default_preset = forms.ModelChoiceField(
        Preset.objects.filter(current__isnull=False),
        to_field_name="slug",
        required=False,
        empty_label="Nothing",
        label="Default between bookings",
    )
    enabled = forms.BooleanField(required=False, initial=True)
    needs_approval = forms.BooleanField(
        required=False, label="Bookings need an administrator's approval"
    )
    restart_on_owner_change = forms.BooleanField(
        required=False, label="Restart the model server when the owner changes"
    )

    @staticmethod
    def initial_of(lane: Lane) -> dict[str, Any]:
        """The form's values for a lane."""
        return {
            "slug": lane.slug,
            "name": lane.name,
            "host": lane.host.key,
            "gpus": [gpu.uuid for gpu in lane.gpus.all()],
            "default_preset": lane.default_preset.slug if lane.default_preset else None,
            "enabled": lane.enabled,
            "needs_approval": lane.needs_approval,
            "restart_on_owner_change": lane.restart_on_owner_change,
        }


class ModelFileForm(StyledForm):
    """A file to register."""

    host = forms.ModelChoiceField(Host.objects.all(), to_field_name="key", empty_label=None)
    path = forms.CharField(max_length=1024, help_text="Absolute path of a GGUF file on that host.")
    name = forms.CharField(max_length=200)


class PresetForm(StyledForm):
    """What an administrator says of a preset."""

    slug = forms.CharField(max_length=63, help_text="The model name that callers use.")
    name = forms.CharField(max_length=100)
    model_file = forms.ModelChoiceField(ModelFile.objects.all(), empty_label=None, label="Model")
    arguments = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false", "class": "form-control"}),
        help_text="Options of the model server, such as: -c 8192 -np 2 -ngl 99",
    )
    environment = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false", "class": "form-control"}),
        help_text="NAME=value, one a line.",
    )
    aliases = forms.CharField(required=False, help_text="Other model names, separated by spaces.")

    @staticmethod
    def initial_of(preset: Preset) -> dict[str, Any]:
        """The form's values for a preset's newest revision."""
        revision = preset.current
        if revision is None:
            return {"slug": preset.slug, "name": preset.name}
        environment = "\n".join(f"{k}={v}" for k, v in revision.environment.items())
        return {
            "slug": preset.slug,
            "name": preset.name,
            "model_file": revision.model_file_id,
            "arguments": shlex.join(revision.arguments),
            "environment": environment,
            "aliases": " ".join(revision.aliases),
        }

    def clean_arguments(self) -> list[str]:
        """An argv list, split as a shell would."""
        words = split_line(self.cleaned_data["arguments"])
        if isinstance(words, Refusal):
            raise forms.ValidationError(words.words)
        return words

    def clean_environment(self) -> dict[str, str]:
        """Names and values."""
        lines = [line for line in self.cleaned_data["environment"].splitlines() if line.strip()]
        if any("=" not in line for line in lines):
            raise forms.ValidationError("Write NAME=value, one a line.")
        return {name.strip(): value for name, _, value in (line.partition("=") for line in lines)}

    def clean_aliases(self) -> list[str]:
        """A list of names."""
        return str(self.cleaned_data["aliases"]).split()


def gateway_address() -> str:
    """Where programs call, as people should write it."""
    return str(settings.SLOTSERVE_GATEWAY_URL)
