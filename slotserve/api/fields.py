"""Fields that refuse what Django would silently guess."""

from datetime import UTC, datetime
from typing import Any

from django.utils.dateparse import parse_datetime
from rest_framework import serializers

from lanes.telling import tell
from slotserve.names import names_of

FIRST, LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
NAIVE_WORDS = "Give the time with its zone, such as 2030-01-15T14:00:00Z or 2030-01-15T15:00+01:00."


class AwareDateTimeField(serializers.DateTimeField):
    """An ISO 8601 time with a zone; a time without one is refused, not guessed."""

    def __init__(self, **kwargs: object) -> None:
        super().__init__(default_timezone=UTC, **kwargs)  # type: ignore[arg-type]

    def to_internal_value(self, value: object) -> datetime:
        """The moment in UTC."""
        if not isinstance(value, str):
            self.fail("invalid", format="ISO 8601")
        try:
            parsed = parse_datetime(value.strip())
        except ValueError as error:
            raise serializers.ValidationError(f"{value!r} is no such time: {error}.") from None
        if parsed is None:
            raise serializers.ValidationError(f"{value[:40]!r} is not a time. {NAIVE_WORDS}")
        if parsed.tzinfo is None:
            raise serializers.ValidationError(NAIVE_WORDS, code="naive_time")
        if not FIRST <= parsed < LAST:  # what lies beyond cannot be reckoned with
            raise serializers.ValidationError("This time is out of range.")
        return parsed.astimezone(UTC)


def is_true(text: str) -> bool:
    """A yes in an address, such as `?mine=true`."""
    return text.lower() in {"1", "true", "yes"}


class ToldField(serializers.CharField):
    """A sentence of a pure module, in the reader's language."""

    def to_representation(self, value: object) -> str:
        """Also of a plain string, which stays as it is."""
        return tell(str(value) if not isinstance(value, str) else value)


class NameField(serializers.CharField):
    """A person's name; null where the caller is not shown it. Needs the request."""

    def __init__(self, **options: Any) -> None:
        super().__init__(read_only=True, allow_null=True, **options)

    def to_representation(self, value: str) -> str | None:  # type: ignore[override]
        """The name, or None."""
        return value if names_of(self.context["request"]).are_shown(value) else None
