"""What a preset's revision says, read from what somebody wishes."""

from dataclasses import dataclass, fields
from typing import Any, TypedDict

from django.utils.translation import override

from lanes.engines import forms
from lanes.engines.base import EngineAdapter
from lanes.engines.options import Options, check_options
from lanes.engines.options import as_said as options_as_said
from lanes.engines.registry import engine as engine_named
from lanes.engines.well_formed import check_arguments, check_environment, check_image
from lanes.models import A_PROJECTOR, Engine, ModelFile, ModelKind, PresetRevision
from lanes.preset_names import check_aliases
from lanes.refusals import Refusal
from wire.words import Words, said


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
class Content:
    """What makes one revision another."""

    model_file: ModelFile
    engine: str
    arguments: list[str]
    environment: dict[str, str]
    options: dict[str, Any]
    image: str
    aliases: list[str]


def read(model_file: ModelFile, wish: PresetWish) -> tuple[Content, list[str]] | Refusal:
    """What the revision would say, and notes on what it leaves out.

    Refusals: invalid, bad_arguments, wrong_model, and those of each part's check.
    """
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
    content = Content(model_file, engine, kept, variables, told, image, aliases)
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


def content_of(revision: PresetRevision) -> Content:
    """What this revision says."""
    return Content(
        revision.model_file,
        revision.engine,
        revision.arguments,
        revision.environment,
        revision.options,
        revision.image,
        revision.aliases,
    )


def fields_of(content: Content) -> dict[str, Any]:
    """By the names of the revision's columns."""
    return {field.name: getattr(content, field.name) for field in fields(content)}
