"""Limits a minute, as bodies say and answers show them."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from django.contrib.auth.models import User
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from gateway.limits import MOST, RateLimits, limits_of
from slotserve.api.bodies import StrictBody


class RateLimitsSerializer(StrictBody):
    """Requests, and tokens of prompts and answers, in a minute; null: no limit of its own."""

    kept = frozenset({"name", "scopes", "lanes", "expires_at"})  # of a token that is made
    requests_per_minute = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=MOST
    )
    tokens_per_minute = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=MOST
    )


class MemberLimitsSerializer(StrictBody):
    """What was set for a person; null: as everybody, 0: no limit."""

    requests_per_minute = serializers.IntegerField(
        allow_null=True, default=None, min_value=0, max_value=MOST
    )
    tokens_per_minute = serializers.IntegerField(
        allow_null=True, default=None, min_value=0, max_value=MOST
    )


@extend_schema_field(RateLimitsSerializer)
class LimitsInForceField(serializers.ReadOnlyField):
    """What a person may use with all tokens together; null: without limit."""

    def to_representation(self, member: User) -> dict[str, int | None]:
        """Both numbers."""
        return asdict(limits_of(member))


def changed_limits(held: RateLimits, wish: Mapping[str, Any]) -> RateLimits:
    """The limits with what the body says of them; what it leaves out stays."""
    return replace(held, **{name: wish[name] for name in asdict(held) if name in wish})
