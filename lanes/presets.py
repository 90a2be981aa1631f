"""Making presets and giving them new revisions."""

from dataclasses import dataclass, fields
from typing import Any, TypedDict, Unpack

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max, Q
from django.utils.translation import override

from lanes import audit, ticks
from lanes.catalogue.forgetting import take_back
from lanes.engines import forms
from lanes.engines.base import EngineAdapter
from lanes.engines.options import Options, check_options
from lanes.engines.options import as_said as options_as_said
from lanes.engines.registry import engine as engine_named
from lanes.engines.well_formed import check_arguments, check_environment, check_image
from lanes.locking import one_edit_at_a_time
from lanes.models import (
    A_PROJECTOR,
    Engine,
    Lane,
    ModelFile,
    ModelKind,
    Preset,
    PresetRevision,
    Subject,
)
from lanes.preset_names import check_aliases, taken
from lanes.refusals import Refusal
from lanes.services import tell_lanes
from lanes.validation import not_administrator, refusal_of
from wire.words import Words, kept_of, said


class PresetWish(TypedDict, total=False):
    """What may be said of a preset besides its name and file; left out: nothing."""

    name: str
    engine: str
    arguments: object  # a list of texts
    environment: object  # names and texts
    options: object  # names and values of lanes.engines.options
    image: object  # of a container, a text
    aliases: object  # a list of texts


@dataclass(frozen=True, slots=True)
class SavedPreset:
    """The preset's newest revision, and what this save left out of it."""

    revision: PresetRevision
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Content:
    """What makes one revision another."""

    model_file: ModelFile
    engine: str
    arguments: list[str]
    environment: dict[str, str]
    options: dict[str, Any]
    image: str
    aliases: list[str]


def draft(
    slug: str, model_file: ModelFile, **wish: Unpack[PresetWish]
) -> tuple[PresetRevision, tuple[str, ...]] | Refusal:
    """The revision that saving this would make, unsaved, and notes on what it leaves out."""
    read = _read(model_file, wish)
    if isinstance(read, Refusal):
        return read
    content, notes = read
    preset = Preset(slug=slug, name=wish.get("name") or slug)
    return PresetRevision(preset=preset, number=0, notes=notes, **_fields(content)), tuple(notes)


@transaction.atomic
def save_draft(
    preset: Preset, model_file: ModelFile, *, actor: User, **wish: Unpack[PresetWish]
) -> SavedPreset | Refusal:
    """A revision for a test load, which nothing else runs: the current one, or the newest draft,
    when it says the same. Refusals: those of `save_preset`."""
    if not actor.is_staff:
        return not_administrator()
    read = _read(model_file, wish)
    if isinstance(read, Refusal):
        return read
    content, notes = read
    one_edit_at_a_time()
    refusal = _moved(preset, model_file) or taken(preset.slug, content.aliases)
    if refusal:
        return refusal
    known = preset.current if _says(preset.current, content) else _draft_of(preset, content)
    made = known or _made(preset, content, notes, actor, is_draft=True)
    return SavedPreset(made, tuple(notes))


@transaction.atomic
def save_preset(
    *, slug: str, model_file: ModelFile, actor: User | None, **wish: Unpack[PresetWish]
) -> SavedPreset | Refusal:
    """Make this preset, or a new revision when anything but its display name differs.

    `actor` None is SlotServe itself.
    """
    if actor is not None and not actor.is_staff:
        return not_administrator()
    read = _read(model_file, wish)
    if isinstance(read, Refusal):
        return read
    content, notes = read
    one_edit_at_a_time()
    preset = Preset.objects.filter(slug=slug).first() or Preset(slug=slug)
    before = _audited(preset) if preset.pk else audit.NOTHING
    preset.name = wish.get("name") or preset.name or slug
    refusal = refusal_of(preset) or _moved(preset, model_file) or taken(slug, content.aliases)
    if refusal:
        return refusal
    preset.save()
    newest = _newest(preset, content, notes, actor)
    audit.note(
        "preset.changed" if before else "preset.made",
        actor,
        audit.About(Subject.PRESET, preset.pk, preset.slug),
        before=before,
        after=_audited(preset),
    )
    return SavedPreset(newest, tuple(notes))


def _audited(preset: Preset) -> audit.Facts:
    return {"name": preset.name, "revision": preset.current.number if preset.current else None}


def as_said(preset: Preset) -> dict[str, Any]:
    """The newest revision in the words of `save_preset`, without slug and actor."""
    if preset.current is None:
        return {"name": preset.name}
    return {"name": preset.name, **_fields(_content_of(preset.current))}


def _read(model_file: ModelFile, wish: PresetWish) -> tuple[_Content, list[str]] | Refusal:
    engine = wish.get("engine") or Engine.LLAMA_CPP
    if engine not in Engine.values:
        return Refusal(
            "invalid",
            said(
                "{engine} is no engine: {names} are known.",
                engine=engine,
                names=", ".join(Engine.values),
            ),
        )
    arguments = check_arguments(wish.get("arguments", []))
    if isinstance(arguments, Refusal):
        return arguments
    environment = check_environment(wish.get("environment", {}))
    if isinstance(environment, Refusal):
        return environment
    aliases = check_aliases(wish.get("aliases", []))
    if isinstance(aliases, Refusal):
        return aliases
    options = check_options(wish.get("options", {}))
    if isinstance(options, Refusal):
        return options
    image = check_image(wish.get("image"))
    if isinstance(image, Refusal):
        return image
    adapter = engine_named(engine).with_options(options)
    kept, notes = adapter.arguments(arguments)
    variables, more_notes = adapter.variables(environment)
    refusal = _unfit(engine, adapter, model_file) or _objection(adapter, kept, variables)
    if refusal:
        return refusal
    told, last_notes = _options_of(adapter, engine, options)
    content = _Content(model_file, engine, kept, variables, told, image, aliases)
    return content, notes + more_notes + last_notes


def _objection(
    adapter: EngineAdapter, arguments: list[str], variables: dict[str, str]
) -> Refusal | None:
    words = adapter.objection(arguments, variables)
    return Refusal("bad_arguments", words) if words else None


def _unfit(engine: str, adapter: EngineAdapter, file: ModelFile) -> Refusal | None:
    """A model that this engine cannot load, as far as its form is known."""
    form = forms.form_of(
        file.path,
        is_hugging_face=file.kind == ModelKind.HUGGING_FACE,
        is_other=file.kind == ModelKind.OTHER,
        is_projector=file.trouble == A_PROJECTOR,
        architecture=file.architecture,
    )
    words = forms.objection(_name_of(engine), adapter.loads, file.name, form)
    return Refusal("wrong_model", words) if words else None


def _name_of(engine: str) -> Words:
    """An engine for people of any language."""
    with override("en"):
        return said(str(Engine(engine).label))


def _options_of(
    adapter: EngineAdapter, engine: str, options: Options
) -> tuple[dict[str, Any], list[str]]:
    """The options where the engine takes them; else a note for each."""
    told = options_as_said(options)
    if adapter is not engine_named(engine):
        return told, []
    return {}, [
        said("{name} was left out: {engine} has its own.", name=name, engine=_name_of(engine))
        for name in told
    ]


def _moved(preset: Preset, model_file: ModelFile) -> Refusal | None:
    """A preset stays on its host: lanes, choices and bookings of that host name it."""
    if preset.current is None or preset.current.model_file.host_id == model_file.host_id:
        return None
    home = preset.current.model_file.host.name
    return Refusal(
        "wrong_host",
        said(
            "{preset} stays on {home}: make a new preset for this file.",
            preset=preset.slug,
            home=home,
        ),
    )


def _newest(
    preset: Preset, content: _Content, notes: list[str], actor: User | None
) -> PresetRevision:
    """The current revision when it says the same, else a new one, made current."""
    current = preset.current
    if current is not None and _says(current, content):
        return current
    made = _draft_of(preset, content) or _made(preset, content, notes, actor, is_draft=False)
    PresetRevision.objects.filter(pk=made.pk).update(is_draft=False)
    preset.current = made
    preset.save(update_fields=["current"])
    take_back(content.model_file)
    lanes = Lane.objects.filter(Q(default_preset=preset) | Q(order__target__preset=preset))
    what = said("made revision {number} of {preset}", number=made.number, preset=preset.slug)
    tell_lanes(lanes.distinct(), actor, what)
    ticks.plan_soon()
    return made


def _made(
    preset: Preset, content: _Content, notes: list[str], actor: User | None, *, is_draft: bool
) -> PresetRevision:
    newest = preset.revisions.aggregate(newest=Max("number"))["newest"]
    return PresetRevision.objects.create(
        preset=preset,
        number=(newest or 0) + 1,
        notes=[kept_of(note) or note for note in notes],
        created_by=actor,
        is_draft=is_draft,
        **_fields(content),
    )


def _draft_of(preset: Preset, content: _Content) -> PresetRevision | None:
    """The newest revision, if it is a draft that says this: what was tested is what is saved."""
    newest = preset.revisions.order_by("-number").first()
    return newest if newest and newest.is_draft and _says(newest, content) else None


def _says(revision: PresetRevision | None, content: _Content) -> bool:
    return revision is not None and _content_of(revision) == content


def _content_of(revision: PresetRevision) -> _Content:
    return _Content(
        revision.model_file,
        revision.engine,
        revision.arguments,
        revision.environment,
        revision.options,
        revision.image,
        revision.aliases,
    )


def _fields(content: _Content) -> dict[str, Any]:
    return {field.name: getattr(content, field.name) for field in fields(content)}
