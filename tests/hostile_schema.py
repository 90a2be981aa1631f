"""What REST's schema says can be sent, as requests that somebody could mean."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from drf_spectacular.generators import SchemaGenerator

from tests import audiences
from tests.audiences import Call
from tests.every_page import Site

MOMENTS = {"date-time": "2031-01-01T10:00:00Z", "date": "2031-01-01", "time": "10:00"}
SIMPLE = {"integer": 1, "number": 1.5, "boolean": True, "string": "x", "object": {}}


@dataclass(frozen=True, slots=True)
class Operation:
    """One call, where it is sent, the names of its query and body, and a body that is complete."""

    call: Call
    path: str
    query: list[str]
    names: list[str]
    body: dict[str, Any] = field(default_factory=dict)


def operations(site: Site) -> Iterator[Operation]:
    """All of REST, by its schema."""
    schema: Any = SchemaGenerator().get_schema(None, public=True)  # type: ignore[no-untyped-call]
    reader = _Reader(schema, site)
    for call in audiences.calls():
        path = audiences.address(site, call.name)
        found = reader.operation(path, call.method)
        names = reader.properties(found)
        needed = reader.component(found).get("required", [])
        yield Operation(
            call,
            path,
            [each["name"] for each in found.get("parameters", []) if each["in"] == "query"],
            list(names),
            {name: reader.usual(name, names[name]) for name in needed if name in names},
        )


@dataclass(frozen=True, slots=True)
class _Reader:
    schema: Any
    site: Site

    def operation(self, path: str, method: str) -> Any:
        """What the schema says of a method at an address; nothing of what it leaves out."""
        fitting = [
            each
            for each in self.schema["paths"]
            if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", each), path)
        ]
        best = min(fitting, key=lambda each: each.count("{"), default=None)
        return self.schema["paths"].get(best, {}).get(method, {})

    def component(self, operation: Any) -> Any:
        content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        return self._resolved(content.get("schema", {}))

    def properties(self, operation: Any) -> dict[str, Any]:
        found = self.component(operation).get("properties", {})
        return {name: said for name, said in found.items() if not said.get("readOnly")}

    def usual(self, name: str, said: Any) -> Any:
        """Something that is of this type, and known where it is the name of a thing."""
        said = self._resolved(said)
        if name in {"lane", "preset", "host"} and said.get("type") == "string":
            return self.site.parts[name]
        if "enum" in said:
            return said["enum"][0]
        if said.get("type") == "array":
            return [self.usual(name, said.get("items", {}))]
        return MOMENTS.get(said.get("format", "")) or SIMPLE.get(said.get("type", ""))

    def _resolved(self, said: Any) -> Any:
        for several in ("allOf", "oneOf", "anyOf"):
            if several in said:
                return self._resolved(said[several][0])
        if "$ref" not in said:
            return said
        return self._resolved(self.schema["components"]["schemas"][said["$ref"].split("/")[-1]])
