"""/api/v1/gpus/, and what the cards of one lane do and did."""

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, viewsets
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from gateway.models import Scope
from lanes import clock
from lanes.models import Gpu, Lane
from slotserve import gpus

HIDDEN = "empty for all but administrators"


class GpuProcessSerializer(serializers.Serializer[gpus.CardProcess]):
    """A process on a card. `lane`: whose server it is of; null and `is_outsider`: no lane's."""

    pid = serializers.IntegerField(source="holder.pid")
    user = serializers.CharField(source="holder.user", help_text=HIDDEN)
    command = serializers.CharField(source="holder.command", help_text=HIDDEN)
    memory_bytes = serializers.IntegerField(source="holder.memory_bytes", allow_null=True)
    is_compute = serializers.BooleanField(source="holder.is_compute")
    lane = serializers.SerializerMethodField()
    is_outsider = serializers.BooleanField()

    def get_lane(self, process: gpus.CardProcess) -> str | None:
        """Its short name."""
        return process.holder.lane or None


class GpuReadingSerializer(serializers.Serializer[gpus.CardView]):
    """A card with its newest reading; null is what the driver does not tell."""

    uuid = serializers.CharField(source="gpu.uuid")
    name = serializers.CharField(source="gpu.name")
    host = serializers.CharField(source="gpu.host.key")
    lane = serializers.CharField(source="lane.slug", default=None, allow_null=True)
    memory_bytes = serializers.IntegerField(source="gpu.memory_bytes")
    read_at = serializers.DateTimeField(source="state.read_at", default=None, allow_null=True)
    index = serializers.IntegerField(source="state.number", default=None, allow_null=True)
    used_bytes = serializers.IntegerField(source="state.used_bytes", default=None, allow_null=True)
    utilisation = serializers.IntegerField(
        source="state.utilisation", default=None, allow_null=True, help_text="percent"
    )
    power_watts = serializers.FloatField(source="state.power_watts", default=None, allow_null=True)
    temperature = serializers.IntegerField(
        source="state.temperature", default=None, allow_null=True, help_text="degrees Celsius"
    )
    outside_bytes = serializers.IntegerField(
        source="verdict.outside_bytes", help_text="held by processes that no lane owns"
    )
    unseen_bytes = serializers.IntegerField(
        source="verdict.unseen_bytes", help_text="of that, by processes that cannot be seen"
    )
    trouble = serializers.CharField()
    processes = GpuProcessSerializer(many=True, allow_null=True)


class LaneMinuteSerializer(serializers.Serializer[Any]):
    """One minute, or five: the most memory, the mean of the rest."""

    minute = serializers.DateTimeField()
    used_bytes = serializers.IntegerField()
    outside_bytes = serializers.IntegerField()
    utilisation = serializers.FloatField(allow_null=True)
    power_watts = serializers.FloatField(allow_null=True)
    samples = serializers.IntegerField()


class HistoryQuerySerializer(serializers.Serializer[Any]):
    """How far back."""

    days = serializers.ChoiceField(
        (1, 7), default=1, help_text="1: a day, by minutes; 7: a week, by five minutes"
    )


class GpuViewSet(viewsets.GenericViewSet[Gpu]):
    """Cards of all hosts: what they do now, and who is on them."""

    queryset = Gpu.objects.order_by("pk")
    serializer_class = GpuReadingSerializer  # type: ignore[assignment]
    lookup_field = "uuid"
    lookup_value_regex = r"[A-Za-z0-9._-]+"
    read_scope = Scope.READ

    def list(self, request: Request) -> Response:
        """Every card."""
        page = self.paginate_queryset(self.get_queryset()) or []
        found = Gpu.objects.filter(pk__in=[gpu.pk for gpu in page])
        return self.get_paginated_response(_shown(found, request))

    def retrieve(self, request: Request, uuid: str) -> Response:
        """One card."""
        card = get_object_or_404(Gpu, uuid=uuid)
        return Response(_shown(Gpu.objects.filter(pk=card.pk), request)[0])


class LaneGpusView(APIView):
    """The cards of one lane."""

    read_scope = Scope.READ

    @extend_schema(responses=GpuReadingSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """What the lane's cards do now, and who is on them; empty: the lane runs on the CPU."""
        return Response(_shown(get_object_or_404(Lane, slug=slug).gpus.all(), request))


class LaneGpuHistoryView(APIView):
    """A day or a week of one lane's cards."""

    read_scope = Scope.READ

    @extend_schema(parameters=[HistoryQuerySerializer], responses=LaneMinuteSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """The last days, oldest first; times in which nobody read are missing."""
        lane = get_object_or_404(Lane, slug=slug)
        asked = HistoryQuerySerializer(data=request.query_params)
        asked.is_valid(raise_exception=True)
        is_week = asked.validated_data["days"] > 1
        rows_of = gpus.week_of_lane if is_week else gpus.day_of_lane
        rows = rows_of(lane, clock.database_now())
        return Response(LaneMinuteSerializer(rows, many=True).data)


def _shown(found: QuerySet[Gpu], request: Request) -> list[Any]:
    cards = gpus.cards(found, clock.database_now())
    if not request.user.is_staff:
        cards = [gpus.without_names(card) for card in cards]
    return [GpuReadingSerializer(card).data for card in cards]
