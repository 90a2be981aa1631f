"""Fields of a preset's body that its service judges."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from lanes.engines.options import MOST_SLOTS


class OptionsSerializer(serializers.Serializer[Any]):
    """What only a training service and any command take; other engines have their own."""

    health_path = serializers.CharField(
        required=False, help_text="Answers 200 without a key when it is ready; empty: /health."
    )
    protected_path = serializers.CharField(
        required=False,
        help_text="Answers 200 with the server's key and 401 without; empty: it has no keys.",
    )
    stop_command = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="In place of the first TERM, with macros as the arguments; empty: TERM.",
    )
    slots = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=MOST_SLOTS,
        help_text="Requests it works on at once; null: as many as come.",
    )


@extend_schema_field(serializers.ListField(child=serializers.CharField()))
class TextsField(serializers.JSONField):
    """A list of texts; the service says what is wrong with one."""


@extend_schema_field(serializers.DictField(child=serializers.CharField()))
class VariablesField(serializers.JSONField):
    """Names and texts; the service says what is wrong with one."""


@extend_schema_field(OptionsSerializer)
class OptionsField(serializers.JSONField):
    """Options by name; the service says what is wrong with one."""
