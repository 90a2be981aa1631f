"""Bodies that are refused where they say what nobody reads."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, ClassVar

from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.request import Request

KEPT = "This cannot be changed: leave it out."


class StrictBody(serializers.Serializer[Any]):
    """Base of what reads a body: a name that it does not know is wrong, not nothing.

    `kept` are names that answers have and that this body cannot change.
    """

    kept: ClassVar[frozenset[str]] = frozenset()

    def get_fields(self) -> dict[str, Any]:
        """The fields; where one is a choice its refusal names what can be chosen."""
        fields = super().get_fields()
        for field in fields.values():
            if isinstance(field, serializers.ChoiceField):
                known = ", ".join(str(each) for each in field.choices)
                field.error_messages["invalid_choice"] = f"{{input}} is none of {known}."
        return fields

    def to_internal_value(self, data: Any) -> Any:
        """The values; ValidationError with all that is wrong, unknown names among it."""
        unread = self._unread(data) if isinstance(data, Mapping) else {}
        try:
            values = super().to_internal_value(data)
        except serializers.ValidationError as error:
            if not isinstance(error.detail, dict):
                raise
            raise serializers.ValidationError({**error.detail, **unread}) from None
        if unread:
            raise serializers.ValidationError(unread)
        return values

    def _unread(self, data: Mapping[str, Any]) -> dict[str, str]:
        """Names that nobody reads, with what to do about each."""
        read = [name for name, field in self.fields.items() if not field.read_only]
        kept = self.kept | (set(self.fields) - set(read))
        return {
            str(name): KEPT if name in kept else no_such("field", str(name), read)
            for name in data
            if name not in read
        }


def check_empty(request: Request) -> None:
    """ValidationError for a body where the address says it all."""
    StrictBody(data=request.data).is_valid(raise_exception=True)


def no_such(what: str, name: str, known: Iterable[str]) -> str:
    """That there is no field or parameter of this name, and the nearest or all that there are."""
    known = list(known)
    nearest = get_close_matches(name, known, n=1, cutoff=0.5)
    if nearest:
        return _("There is no %(what)s of this name: did you mean %(name)s?") % {
            "what": what,
            "name": nearest[0],
        }
    if not known:
        return _("There is no %(what)s of this name: none is read here.") % {"what": what}
    return _("There is no %(what)s of this name: %(names)s are known.") % {
        "what": what,
        "names": ", ".join(known),
    }
