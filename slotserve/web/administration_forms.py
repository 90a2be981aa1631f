"""Forms for administrators. They read and explain; services decide."""

from typing import Any

from django import forms
from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from lanes.catalogue.offering import suggested_slug, taken_names
from lanes.engines.options import MOST_SLOTS
from lanes.engines.well_formed import MOST_IMAGE, join_line, split_line
from lanes.models import Engine, Gpu, Host, Lane, ModelFile, Preset, PresetRevision, slug_validator
from lanes.refusals import Refusal
from slotserve.web.fields import GpuField, ModelFileField, PresetField, StyledForm

OPTION_FIELDS = ("health_path", "protected_path", "stop_command", "slots")
TAKE_OPTIONS = (Engine.TRAINING, Engine.COMMAND)  # the page shows the fields for these alone


class LaneForm(StyledForm):
    """What an administrator says of a lane, which keeps its short name and its host for good."""

    slug = forms.CharField(
        max_length=63,
        validators=[slug_validator],
        label=gettext_lazy("Short name"),
        help_text=gettext_lazy(
            "Part of addresses: small letters, digits, hyphens. It stays for good."
        ),
    )
    name = forms.CharField(max_length=100)
    host = forms.ModelChoiceField(Host.objects.all(), to_field_name="key", empty_label=None)
    gpus = GpuField(
        Gpu.objects.none(), to_field_name="uuid", required=False, label=gettext_lazy("GPUs")
    )
    default_preset = PresetField(
        Preset.objects.none(),
        to_field_name="slug",
        required=False,
        empty_label=gettext_lazy("Nothing"),
        label=gettext_lazy("Default between bookings"),
    )
    enabled = forms.BooleanField(required=False, initial=True)
    needs_approval = forms.BooleanField(
        required=False, label=gettext_lazy("Bookings need an administrator's approval")
    )
    restart_on_owner_change = forms.BooleanField(
        required=False,
        label=gettext_lazy("Restart the model server when the owner changes"),
        help_text=gettext_lazy(
            "A server's prefix cache can tell the next owner what the last one asked."
        ),
    )

    def __init__(self, *args: Any, lane: Lane | None, **kwargs: Any) -> None:
        initial = self.initial_of(lane) if lane else None
        super().__init__(*args, initial=initial, **kwargs)
        gpus = Gpu.objects.filter(Q(lanes=None) | Q(lanes=lane)).distinct()
        presets = Preset.objects.offered().select_related("current__model_file")
        if lane:
            gpus = gpus.filter(host=lane.host_id)
            presets = presets.filter(current__model_file__host=lane.host_id)
            self.fields["slug"].disabled = self.fields["host"].disabled = True
        self.fields["gpus"].queryset = gpus.select_related("host")  # type: ignore[attr-defined]
        self.fields["default_preset"].queryset = presets  # type: ignore[attr-defined]
        if not gpus:
            self.fields["gpus"].help_text = _("No GPU is left to choose: the lane runs on the CPU.")

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


class ModelFolderForm(StyledForm):
    """A folder to look through."""

    host = forms.ModelChoiceField(Host.objects.all(), to_field_name="key", empty_label=None)
    path = forms.CharField(
        max_length=1024,
        label=gettext_lazy("Folder"),
        help_text=gettext_lazy(
            "Its whole path on that host. GGUF files and Hugging Face folders below it "
            "are found by themselves."
        ),
    )


class ModelFileForm(StyledForm):
    """A file to register."""

    host = forms.ModelChoiceField(Host.objects.all(), to_field_name="key", empty_label=None)
    path = forms.CharField(
        max_length=1024,
        help_text=gettext_lazy(
            "Whole path on that host: a GGUF file, a Hugging Face folder, or what "
            "another engine takes, such as a workflow or the base directory of ComfyUI."
        ),
    )
    name = forms.CharField(max_length=200)


class PresetForm(StyledForm):
    """What an administrator says of a preset."""

    slug = forms.CharField(
        max_length=63,
        validators=[slug_validator],
        label=gettext_lazy("Model name"),
        help_text=gettext_lazy(
            "What callers write as “model”: small letters, digits, dots, hyphens."
        ),
    )
    name = forms.CharField(max_length=100, help_text=gettext_lazy("What people read."))
    model_file = ModelFileField(
        ModelFile.objects.listed(),
        empty_label=None,
        label=gettext_lazy("Model file"),
        help_text=gettext_lazy(
            "What the program loads, and the host where it runs. For a command or a "
            "training service that loads none choose any of that host."
        ),
    )
    engine = forms.ChoiceField(
        choices=Engine.choices, help_text=gettext_lazy("Which program loads the file.")
    )
    arguments = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false", "class": "form-control"}),
        help_text=gettext_lazy(
            "Options of the program, such as -c 8192 -np 2 -ngl 99 for llama.cpp or "
            "--max-model-len 8192 for vLLM; of any command, its whole command line with "
            "${PORT}."
        ),
    )
    environment = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false", "class": "form-control"}),
        help_text=gettext_lazy("NAME=value, one a line."),
    )
    image = forms.CharField(
        required=False,
        max_length=MOST_IMAGE,
        label=gettext_lazy("Container image"),
        help_text=gettext_lazy(
            "Runs it in a container of this image, which the host must have already; "
            "its entry point takes the place of the program. Empty: a process of the "
            "host."
        ),
    )
    aliases = forms.CharField(
        required=False, help_text=gettext_lazy("Other model names, separated by spaces.")
    )
    health_path = forms.CharField(
        required=False,
        label=gettext_lazy("Health path"),
        help_text=gettext_lazy(
            "Answers 200 without a key when the server is ready; empty: /health."
        ),
    )
    protected_path = forms.CharField(
        required=False,
        label=gettext_lazy("Protected path"),
        help_text=gettext_lazy(
            "Answers 200 with the key of the server and 401 without; empty: it has no keys."
        ),
    )
    stop_command = forms.CharField(
        required=False,
        label=gettext_lazy("Stop command"),
        help_text=gettext_lazy(
            "Asks the server to end, in place of the first TERM; empty: TERM does."
        ),
    )
    slots = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_SLOTS,
        label=gettext_lazy("Requests at once"),
        help_text=gettext_lazy(
            "More wait in the queue of the lane; empty: it takes as many as come."
        ),
    )

    def __init__(
        self,
        *args: Any,
        preset: Preset | None,
        revision: PresetRevision | None = None,
        initial: Any = None,
        **kwargs: Any,
    ) -> None:
        initial = self.initial_of(preset, revision) if preset else initial
        super().__init__(*args, initial=initial, **kwargs)
        self._is_new = preset is None
        if preset and preset.current:
            file = preset.current.model_file
            files = ModelFile.objects.filter(
                Q(forgotten_at=None) | Q(pk=file.pk), host=file.host_id
            )
            self.fields["model_file"].queryset = files  # type: ignore[attr-defined]
        self.fields["slug"].disabled = not self._is_new

    @staticmethod
    def initial_of(preset: Preset, revision: PresetRevision | None = None) -> dict[str, Any]:
        """The form's values for one of a preset's revisions, or its newest."""
        revision = revision or preset.current
        if revision is None:
            return {"slug": preset.slug, "name": preset.name}
        environment = "\n".join(f"{k}={v}" for k, v in revision.environment.items())
        return {
            "slug": preset.slug,
            "name": preset.name,
            "model_file": revision.model_file_id,
            "engine": revision.engine,
            "arguments": join_line(revision.arguments),
            "environment": environment,
            "image": revision.image,
            "aliases": " ".join(revision.aliases),
            **revision.options,
            "stop_command": join_line(revision.options.get("stop_command", [])),
        }

    @classmethod
    def initial_of_clone(cls, preset: Preset) -> dict[str, Any]:
        """The same for another preset: with a free name, and without the other names, which lead
        to one preset only."""
        slug = suggested_slug(f"{preset.slug}-copy", taken_names())
        return {**cls.initial_of(preset), "slug": slug, "aliases": ""}

    def clean_slug(self) -> str:
        """A name that no preset has yet, for a new one: its service would edit that preset."""
        slug = str(self.cleaned_data["slug"])
        if self._is_new and Preset.objects.filter(slug=slug).exists():
            raise forms.ValidationError(_("A preset has this name: edit it, or take another name."))
        return slug

    def clean_arguments(self) -> list[str]:
        """An argv list, split as a shell would."""
        return _split(self.cleaned_data["arguments"])

    def clean_stop_command(self) -> list[str]:
        """The same."""
        return _split(self.cleaned_data["stop_command"])

    def clean_environment(self) -> dict[str, str]:
        """Names and values."""
        lines = [line for line in self.cleaned_data["environment"].splitlines() if line.strip()]
        if any("=" not in line for line in lines):
            raise forms.ValidationError(_("Write NAME=value, one a line."))
        return {name.strip(): value for name, _, value in (line.partition("=") for line in lines)}

    def clean(self) -> dict[str, Any]:
        """What only some engines take as one value; others have their own."""
        cleaned = super().clean() or {}
        told = {name: cleaned.pop(name, None) for name in OPTION_FIELDS}
        is_taken = cleaned.get("engine") in TAKE_OPTIONS
        return {**cleaned, "options": told if is_taken else {}}

    def clean_aliases(self) -> list[str]:
        """A list of names."""
        return str(self.cleaned_data["aliases"]).split()


def _split(line: str) -> list[str]:
    words = split_line(line)
    if isinstance(words, Refusal):
        raise forms.ValidationError(words.words)
    return words
