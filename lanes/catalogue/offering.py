"""A preset from a model in one step: a name that is free, and arguments that fit its facts."""

import re
from collections.abc import Collection

from django.contrib.auth.models import User

from lanes.models import Engine, ModelFile, ModelKind, Preset
from lanes.preset_names import LOADED_NOW, names_of
from lanes.presets import SavedPreset, as_said, save_preset
from lanes.refusals import Refusal
from lanes.validation import not_administrator
from wire.words import said

LONGEST_SLUG = 63
# A model's whole context can take more memory than its weights: more is for whoever asks for it.
USUAL_CONTEXT = 8192
# By what a model's form can be loaded, the first that is here.
ENGINES = {
    ModelKind.GGUF: ("llama.cpp",),
    ModelKind.HUGGING_FACE: ("vllm", "sglang"),
    ModelKind.OTHER: (),  # only people know what it is for
}


def preset_of(file: ModelFile, *, actor: User, slug: str = "") -> SavedPreset | Refusal:
    """Make a preset of this model under this name, or one made from the model's."""
    if not actor.is_staff:
        return not_administrator()
    if file.missing_since is not None:
        return Refusal("no_such_file", file.warning)
    engine = engine_of(file.kind, Engine.values)
    if engine is None:
        return Refusal(
            "no_engine",
            said(
                "Several engines may be meant for {file}: make a new preset and choose one.",
                file=file.name,
            ),
        )
    taken = taken_names()
    if slug.lower() in taken:
        return Refusal(
            "name_taken", said("{slug} is the name of a preset already: take another.", slug=slug)
        )
    return save_preset(
        slug=slug or suggested_slug(file.name, taken),
        name=file.name[:100],
        model_file=file,
        actor=actor,
        engine=engine,
        arguments=suggested_arguments(file) if engine == Engine.LLAMA_CPP else [],
    )


def clone(preset: Preset, *, actor: User, slug: str = "", name: str = "") -> SavedPreset | Refusal:
    """Make a preset of another name that says the same; its other names lead to the first alone."""
    if not actor.is_staff:
        return not_administrator()
    taken = taken_names()
    if slug.lower() in taken:
        return Refusal(
            "name_taken", said("{slug} is the name of a preset already: take another.", slug=slug)
        )
    wish = {**as_said(preset), "aliases": [], "name": name or preset.name}
    return save_preset(
        slug=slug or suggested_slug(f"{preset.slug}-copy", taken), actor=actor, **wish
    )


def engine_of(kind: str, known: Collection[str]) -> str | None:
    """The engine for a model of this kind; None: none is known."""
    return next((name for name in ENGINES[ModelKind(kind)] if name in known), None)


def taken_names() -> set[str]:
    """Every name that a new preset cannot have, in small letters; one query."""
    presets = Preset.objects.select_related("current")
    return {name.lower() for preset in presets for name in names_of(preset)} | {LOADED_NOW}


def suggested_slug(name: str, taken: Collection[str]) -> str:
    """A preset's name like this model's that is not taken."""
    words = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._")[:LONGEST_SLUG] or "model"
    slug, number = words, 1
    while slug in taken:
        number += 1
        slug = f"{words[: LONGEST_SLUG - len(str(number)) - 1]}-{number}"
    return slug


def suggested_arguments(file: ModelFile) -> list[str]:
    """What llama-server should be told of a model besides where it is."""
    arguments = []
    if file.context_length and file.context_length > USUAL_CONTEXT:
        arguments += ["-c", str(USUAL_CONTEXT)]
    if file.projector_path:
        arguments += ["--mmproj", file.projector_path]
    return arguments
