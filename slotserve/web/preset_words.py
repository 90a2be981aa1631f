"""What changed in a preset, in sentences."""

from collections.abc import Mapping

from django.utils.translation import gettext as _

from lanes.models import Engine, ModelFile
from lanes.preset_history import LOOSE, Change


def sentence(change: Change, files: Mapping[str, str]) -> str:
    """One change as a person reads it; `files` are the names of models by their keys."""
    what = _what(change)
    old, new = (_value(change, each, files) for each in (change.old, change.new))
    if change.field == "order":
        return _("the arguments are in another order")
    if change.old is None:
        words = _("%(what)s %(new)s added") if new else _("%(what)s added")
        return words % {"what": what, "new": new}
    if change.new is None:
        words = _("%(what)s removed (was %(old)s)") if old else _("%(what)s removed")
        return words % {"what": what, "old": old}
    values = {"what": what, "old": old or _("nothing"), "new": new or _("nothing")}
    return _("%(what)s from %(old)s to %(new)s") % values


def area(change: Change) -> str:
    """What it is about, without names and values: for those who do not see these."""
    areas = {
        "model": _("the model"),
        "engine": _("the engine"),
        "image": _("the container image"),
        "argument": _("the arguments"),
        "order": _("the arguments"),
        "variable": _("the environment"),
        "option": _("the options"),
        "alias": _("the other names"),
    }
    return areas[change.field]


def model_names(pks: set[str]) -> dict[str, str]:
    """The names of these models, by their keys as texts; one query."""
    rows = ModelFile.objects.filter(pk__in=pks).values_list("pk", "name")
    return {str(pk): name for pk, name in rows}


def _what(change: Change) -> str:
    if change.field == "argument":
        return _("words without a flag") if change.name == LOOSE else change.name
    if change.field == "alias":
        return _("the other name %(name)s") % {"name": change.name}
    return change.name or area(change)


def _value(change: Change, value: str | None, files: Mapping[str, str]) -> str:
    if change.field == "model":
        return files.get(value or "", _("a model that is gone"))
    if change.field == "engine" and value in Engine.values:
        return str(Engine(value).label)
    return value or ""
