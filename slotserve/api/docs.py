"""/api/v1/docs/: the schema as a page, made on the server so that no script is needed."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from django.utils.translation import get_language
from django.views.generic import TemplateView
from drf_spectacular.generators import SchemaGenerator


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one address."""

    method: str
    path: str
    words: str
    parameters: tuple[str, ...]
    body: tuple[str, ...]
    statuses: tuple[str, ...]


class SchemaPage(TemplateView):
    """Every operation with what it takes and answers."""

    template_name = "api_docs.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The operations by tag, in the schema's order."""
        return super().get_context_data(groups=operations(get_language() or "en").items(), **kwargs)


@cache
def operations(language: str) -> dict[str, list[Operation]]:
    """By tag, in words of this language, which is the active one; made once a process."""
    schema = _generate()
    groups: dict[str, list[Operation]] = {}
    for path, methods in schema["paths"].items():
        for method, raw in methods.items():
            tag = path.removeprefix("/api/v1/").split("/")[0]
            groups.setdefault(tag, []).append(_operation(schema, path, method, raw))
    return groups


def _generate() -> dict[str, Any]:
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]
    return dict(generator.get_schema(request=None, public=True))  # type: ignore[no-untyped-call]


def _operation(schema: dict[str, Any], path: str, method: str, raw: dict[str, Any]) -> Operation:
    names = (p["name"] + ("" if p.get("required") else "?") for p in raw.get("parameters", []))
    return Operation(
        method=method.upper(),
        path=path,
        words=raw.get("description", ""),
        parameters=tuple(names),
        body=_body_fields(schema, raw),
        statuses=tuple(raw.get("responses", {})),
    )


def _body_fields(schema: dict[str, Any], raw: dict[str, Any]) -> tuple[str, ...]:
    content = raw.get("requestBody", {}).get("content", {}).get("application/json", {})
    name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
    component = schema["components"]["schemas"].get(name, {})
    needed = component.get("required", [])
    return tuple(f + ("" if f in needed else "?") for f in component.get("properties", {}))
