"""/api/v1/maintenance/: times in which nothing runs on lanes."""

from typing import Any, cast

from django.contrib.auth.models import User
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from bookings import maintenance
from gateway.models import Scope
from lanes import clock
from lanes.maintenance import not_over
from lanes.models import Host, Lane, Maintenance
from lanes.refusals import Refusal
from slotserve.api.bodies import StrictBody, check_empty
from slotserve.api.errors import refuse
from slotserve.api.fields import AwareDateTimeField


class MaintenanceSerializer(serializers.ModelSerializer[Maintenance]):
    """One lane's; no end: until it is ended."""

    lane = serializers.CharField(source="lane.slug")

    class Meta:
        model = Maintenance
        fields = ("id", "lane", "start", "end", "reason", "ended_at")


class NewMaintenanceSerializer(StrictBody):
    """A wish for some: of lanes, or of all lanes of a host. Without a start it begins at once."""

    lanes = serializers.SlugRelatedField(
        slug_field="slug", queryset=Lane.objects.all(), many=True, required=False
    )
    host = serializers.SlugRelatedField(
        slug_field="key", queryset=Host.objects.all(), required=False, allow_null=True, default=None
    )
    start = AwareDateTimeField(required=False, allow_null=True, default=None)
    end = AwareDateTimeField(required=False, allow_null=True, default=None)
    reason = serializers.CharField(required=False, allow_blank=True, default="")


class MaintenanceChangeSerializer(StrictBody):
    """Another end (null: until it is ended) and, if it is said, another reason."""

    end = AwareDateTimeField(allow_null=True)
    reason = serializers.CharField(required=False, allow_blank=True)


class MaintenanceViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Maintenance]
):
    """That which is in force or to come; administrators plan, change and end it."""

    queryset = Maintenance.objects.none()
    serializer_class = MaintenanceSerializer
    lookup_value_regex = r"\d{1,18}"
    read_scope = Scope.READ
    write_scope = Scope.ADMIN

    def get_queryset(self) -> QuerySet[Maintenance]:
        """By start."""
        return not_over(clock.database_now()).select_related("lane")

    @extend_schema(
        request=NewMaintenanceSerializer, responses={201: MaintenanceSerializer(many=True)}
    )
    def create(self, request: Request) -> Response:
        """Plan maintenance of lanes: one for each, all or none."""
        wish = NewMaintenanceSerializer(data=request.data)
        wish.is_valid(raise_exception=True)
        said = wish.validated_data
        host = said.pop("host")
        lanes = [*said.pop("lanes", ()), *(host.lanes.all() if host else ())]
        made = maintenance.plan(lanes, actor=self._actor, **said)
        if isinstance(made, Refusal):
            return refuse(made)
        rows = MaintenanceSerializer(made, many=True).data
        return Response(rows, status=status.HTTP_201_CREATED)

    @extend_schema(request=MaintenanceChangeSerializer, responses=MaintenanceSerializer)
    def partial_update(self, request: Request, pk: str, **_: Any) -> Response:
        """Give it another end."""
        wish = MaintenanceChangeSerializer(data=request.data)
        wish.is_valid(raise_exception=True)
        changed = maintenance.change(self.get_object(), actor=self._actor, **wish.validated_data)
        if isinstance(changed, Refusal):
            return refuse(changed)
        return Response(MaintenanceSerializer(changed).data)

    @extend_schema(request=None, responses={204: None})
    @action(detail=True, methods=["post"])
    def end(self, request: Request, pk: str, **_: Any) -> Response:
        """Open the lane again now, or call off what has not begun."""
        check_empty(request)
        refusal = maintenance.end(self.get_object(), actor=self._actor)
        return refuse(refusal) if refusal else Response(status=status.HTTP_204_NO_CONTENT)

    @property
    def _actor(self) -> User:
        return cast(User, self.request.user)
