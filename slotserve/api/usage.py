"""/api/v1/usage/summary/: usage by day, member, lane or preset."""

from typing import Any, cast

from django.conf import settings
from django.contrib.auth.models import User
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.views import APIView

from gateway import usage_tables
from gateway.models import Scope
from gateway.usage_tables import Group, Sums
from lanes import clock
from slotserve.api.bodies import no_such
from slotserve.usage_question import NAMES, read_question


class UsageSumsSerializer(serializers.Serializer[Sums]):
    """Seconds of bookings and what became of them; requests and tokens, in bookings or not."""

    booked_seconds = serializers.FloatField(source="booked")
    used_seconds = serializers.FloatField(source="used")
    loading_seconds = serializers.FloatField(source="loading")
    idle_seconds = serializers.FloatField(source="idle")
    whole_gpu_seconds = serializers.FloatField(source="unmeasured")
    requests = serializers.IntegerField()
    refused = serializers.IntegerField()
    prompt_tokens = serializers.IntegerField()
    completion_tokens = serializers.IntegerField()


class UsageGroupSerializer(serializers.Serializer[Group]):
    """One day, member, lane or preset; an empty name: no lane was asked, or nothing answered."""

    name = serializers.CharField()
    usage = UsageSumsSerializer(source="sums")


class UsageSummarySerializer(serializers.Serializer[Any]):
    """The period, in days of the site's zone, and its usage."""

    zone = serializers.CharField()
    first = serializers.DateField()
    last = serializers.DateField()
    by = serializers.CharField()
    groups = UsageGroupSerializer(many=True)
    total = UsageSumsSerializer()


class UsageSummaryView(APIView):
    """Usage in sums: the caller's own; of all, for administrators."""

    read_scope = Scope.READ

    @extend_schema(
        parameters=[OpenApiParameter(name, str) for name in NAMES],
        responses=UsageSummarySerializer,
    )
    def get(self, request: Request) -> Response:
        """Of the days `from` to `to` (the last 30), of a `member`, `lane` or `preset`, divided
        `by` day, member, lane or preset."""
        viewer = cast(User, request.user)
        asked = read_question(_strict(request), viewer, clock.database_now())
        if asked.errors:
            raise ValidationError(dict(asked.errors))
        groups = usage_tables.grouped(viewer, asked.question, asked.by)
        answer = {
            "zone": settings.TIME_ZONE,
            "first": asked.question.first,
            "last": asked.question.last,
            "by": asked.by,
            "groups": groups,
            "total": usage_tables.total(groups),
        }
        return Response(UsageSummarySerializer(answer).data)


def _strict(request: Request) -> dict[str, str]:
    """The parameters; ValidationError for one that nobody reads."""
    values = {name: str(value) for name, value in request.query_params.items()}
    unknown = set(values) - {*NAMES, api_settings.URL_FORMAT_OVERRIDE}
    wrong = {name: no_such("parameter", name, NAMES) for name in sorted(unknown)}
    if wrong:
        raise ValidationError(wrong)
    return values
