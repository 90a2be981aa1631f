"""/api/v1/lanes/."""

from collections.abc import Sequence
from typing import Any, cast

from django.contrib.auth.models import User
from django.http import StreamingHttpResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status, viewsets
from rest_framework.decorators import action
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from bookings import choices, deleting, explaining
from gateway.models import Scope
from lanes import clock, log_reading, services
from lanes.models import Lane
from lanes.refusals import Refusal
from lanes.telling import tell
from slotserve.api import lane_logs
from slotserve.api import lane_serializers as shapes
from slotserve.api.bodies import check_empty
from slotserve.api.errors import refuse
from slotserve.api.fields import AwareDateTimeField
from slotserve.api.permissions import OTHER_LANE, may_use_lane
from slotserve.overview import lanes_for_people, overviews, recent_events

AT = OpenApiParameter("at", str, description="another moment, ISO 8601 with a zone")


class LaneViewSet(viewsets.GenericViewSet[Lane]):
    """Lanes: what they run and why; administrators choose, reload and edit."""

    queryset = Lane.objects.none()
    serializer_class = shapes.LaneOverviewSerializer  # type: ignore[assignment]
    lookup_field = "slug"
    lookup_value_regex = r"[a-z0-9][a-z0-9._-]*"
    read_scope = Scope.READ
    write_scope = Scope.ADMIN

    def list(self, request: Request) -> Response:
        """Every lane."""
        page = self.paginate_queryset(lanes_for_people().order_by("slug")) or []
        return self.get_paginated_response(self._shown(list(page)))

    def retrieve(self, request: Request, slug: str) -> Response:
        """One lane with its decision, bookings and runtime."""
        return Response(self._shown([self._lane(slug)])[0])

    @extend_schema(
        request=shapes.LaneWriteSerializer, responses={201: shapes.LaneOverviewSerializer}
    )
    def create(self, request: Request) -> Response:
        """Make a lane (administrators)."""
        asked = shapes.LaneWriteSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        return self._save(None, asked.validated_data, status.HTTP_201_CREATED)

    @extend_schema(request=shapes.LaneWriteSerializer, responses=shapes.LaneOverviewSerializer)
    def partial_update(self, request: Request, slug: str) -> Response:
        """Change a lane (administrators)."""
        lane = self._lane(slug)
        asked = shapes.LaneWriteSerializer(data=request.data, partial=True)
        asked.is_valid(raise_exception=True)
        return self._save(lane, asked.validated_data, status.HTTP_200_OK)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, slug: str) -> Response:
        """Delete a lane that has neither a model server nor bookings (administrators)."""
        refusal = deleting.delete_lane(self._lane(slug), actor=self._actor)
        return refuse(refusal) if refusal else Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(request=shapes.ChooseSerializer, responses=shapes.ChosenSerializer)
    @action(detail=True, methods=["post"])
    def choose(self, request: Request, slug: str) -> Response:
        """Load a preset, or unload, until a time (administrators)."""
        lane = self._lane(slug)
        asked = shapes.ChooseSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        made = choices.choose(lane, actor=self._actor, **asked.validated_data)
        if isinstance(made, Refusal):
            return refuse(made)
        preset = asked.validated_data["preset"]
        return Response(
            {
                "preset": preset.slug if preset else None,
                "ends_at": made.ends_at,
                "detail": tell(made.words),
            }
        )

    @extend_schema(request=None, responses=shapes.DetailSerializer)
    @action(detail=True, methods=["post"], url_path="clear-choice")
    def clear_choice(self, request: Request, slug: str) -> Response:
        """End the choice in force (administrators)."""
        check_empty(request)
        refusal = choices.clear_choice(self._lane(slug), actor=self._actor)
        return refuse(refusal) if refusal else Response({"detail": "The choice has ended."})

    @extend_schema(request=None, responses=shapes.DetailSerializer)
    @action(detail=True, methods=["post"])
    def reload(self, request: Request, slug: str) -> Response:
        """Restart the model server at once, without a drain; forget failures (administrators)."""
        check_empty(request)
        refusal = choices.reload(self._lane(slug), actor=self._actor)
        return refuse(refusal) if refusal else Response({"detail": "Restarting the model server."})

    @extend_schema(request=None, responses=shapes.DetailSerializer)
    @action(detail=True, methods=["post"], write_scope=Scope.BOOKINGS)
    def retry(self, request: Request, slug: str) -> Response:
        """Try what failed at once (administrators, and whoever has the lane booked now)."""
        check_empty(request)
        lane = self._lane(slug)
        if not may_use_lane(request, lane.pk):
            return refuse(OTHER_LANE)
        refusal = choices.retry(lane, actor=self._actor)
        return refuse(refusal) if refusal else Response({"detail": "It is tried again now."})

    @extend_schema(
        parameters=[lane_logs.LogQuerySerializer],
        responses={(200, "application/json"): lane_logs.LogSerializer, (200, "text/plain"): str},
    )
    @action(detail=True, renderer_classes=[JSONRenderer, lane_logs.PlainTextRenderer])
    def log(self, request: Request, slug: str) -> Response | StreamingHttpResponse:
        """The model server's own output, of this run or an earlier one (administrators)."""
        lane = self._lane(slug)
        if not log_reading.may_read(self._actor):
            return refuse(lane_logs.ADMINISTRATORS)
        return lane_logs.read_log(lane, request)

    @extend_schema(responses=lane_logs.RunSerializer(many=True))
    @action(detail=True)
    def runs(self, request: Request, slug: str) -> Response:
        """The newest runs of the model server, whose logs are kept (administrators)."""
        lane = self._lane(slug)
        if not log_reading.may_read(self._actor):
            return refuse(lane_logs.ADMINISTRATORS)
        return Response(lane_logs.RunSerializer([*log_reading.runs(lane)], many=True).data)

    @extend_schema(responses=shapes.EventSerializer(many=True))
    @action(detail=True)
    def events(self, request: Request, slug: str) -> Response:
        """The newest sentences about the lane."""
        events = recent_events(self._lane(slug), limit=100)
        shown = shapes.EventSerializer(events, many=True, context={"request": request})
        return Response(shown.data)

    @extend_schema(parameters=[AT], responses=shapes.ExplainSerializer)
    @action(detail=True)
    def explain(self, request: Request, slug: str) -> Response:
        """The facts and the decision they lead to, now or at another moment."""
        lane = self._lane(slug)
        at = request.query_params.get("at")
        moment = AwareDateTimeField().run_validation(at) if at else clock.database_now()
        return Response({"text": explaining.explain(lane, moment)})

    @property
    def _actor(self) -> User:
        return cast(User, self.request.user)

    def _lane(self, slug: str) -> Lane:
        return get_object_or_404(lanes_for_people(), slug=slug)

    def _shown(self, lanes: Sequence[Lane]) -> Any:
        context = {"is_administrator": self._actor.is_staff, "request": self.request}
        found = overviews(lanes, clock.database_now(), self._actor)
        return [shapes.LaneOverviewSerializer(view, context=context).data for view in found]

    def _save(self, lane: Lane | None, wish: dict[str, Any], code: int) -> Response:
        if "default" in wish:
            wish["default_preset"] = wish.pop("default")
        saved = services.save_lane(lane, actor=self._actor, **wish)
        if isinstance(saved, Refusal):
            return refuse(saved)
        return Response(self._shown([self._lane(saved.slug)])[0], status=code)
