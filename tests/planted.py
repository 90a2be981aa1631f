"""Markup in every text that anybody, a model's file, a log or another server may have given."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.apps import apps
from django.db import DatabaseError, models, transaction

TAG = "planted-here"
MARKUP = f"<{TAG} onclick=alert(1)></{TAG}>"
OURS = ("auth", "lanes", "bookings", "notices", "gateway", "slotserve")
# What is no text for people: names in addresses, kinds, states, secrets, digests and the like.
NOT_TEXT = (
    "slug key state kind phase outcome level engine rule digest prefix secret password zone "
    "language every uuid driver_version address socket boot_id python_version sealed sealed_url "
    "sealed_secret sealed_key scope channel event timezone code permission codename session_key "
    "subject verb action source target api_key lapses model app_label"
)


def plant() -> set[str]:
    """Put it at the end of each; the columns that have it now."""
    return {
        f"{model._meta.label}.{field.name}"
        for model in apps.get_models()
        if model._meta.app_label in OURS and not model._meta.proxy
        for field in _texts(model)
        if _planted(model, field)
    }


def _texts(model: type[models.Model]) -> Iterator[Any]:
    for field in model._meta.concrete_fields:
        is_text = isinstance(field, models.CharField | models.TextField | models.JSONField)
        if (
            is_text
            and not field.choices
            and not field.primary_key
            and field.name not in NOT_TEXT.split()
        ):
            yield field


def _planted(model: type[models.Model], field: Any) -> bool:
    """False where no row is, or the database keeps what it has, as it does the audit trail."""
    done = False
    for row in model._default_manager.all():
        value = _with_markup(getattr(row, field.name), field.max_length)
        try:
            with transaction.atomic():
                changed = model._default_manager.filter(pk=row.pk).update(**{field.name: value})
        except DatabaseError:
            continue
        done |= bool(changed) and TAG in str(value)
    return done


def _with_markup(value: Any, most: int | None = None) -> Any:
    """The same, every text in it ending in markup; of a kept sentence only what was put into it."""
    if isinstance(value, str):
        return value[: most - len(MARKUP)] + MARKUP if most else value + MARKUP
    if isinstance(value, Mapping):
        return {name: _of(name, each) for name, each in value.items()}
    if isinstance(value, list):
        return [_with_markup(each) for each in value]
    return value


def _of(name: str, value: Any) -> Any:
    kept = {"text", "moment", "day", "start", "end", "code", "kind"}
    return value if name in kept else _with_markup(value)
