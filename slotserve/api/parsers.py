"""JSON bodies that every database can keep."""

import re
from collections.abc import Iterator, Mapping
from typing import IO, Any

from rest_framework.exceptions import ParseError, ValidationError
from rest_framework.parsers import JSONParser

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_NESTED = "This body is nested too deeply."
_UNKEPT = "A text in this body holds a NUL or half of a surrogate pair, which cannot be kept."


class StorableJSONParser(JSONParser):
    """JSON, refused where a text could be neither kept nor shown again."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """The value; ParseError when it is not JSON, ValidationError when it is not storable."""
        try:
            value = super().parse(stream, media_type, parser_context)
        except RecursionError:
            raise ParseError(_NESTED) from None
        if not is_storable(value):
            raise ValidationError(_UNKEPT)
        return value


def is_storable(value: Any) -> bool:
    """Whether every text in a value of JSON can be kept."""
    return not any(map(_UNSTORABLE.search, _texts(value)))


def _texts(value: Any) -> Iterator[str]:
    """Every text in it, names included."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, list):
            waiting += one
