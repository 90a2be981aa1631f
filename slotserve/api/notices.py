"""/api/v1/notices/: what the caller should know."""

from typing import Any, cast

from django.contrib.auth.models import User
from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import mixins, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.models import Scope
from lanes import clock, notices
from lanes.models import Notice
from slotserve.api.fields import is_true

UNREAD = OpenApiParameter("unread", bool, description="true: only those not read yet")


class NoticeSerializer(serializers.ModelSerializer[Notice]):
    """One thing to know."""

    lane = serializers.CharField(source="lane.slug", default=None, allow_null=True)
    sentence = serializers.CharField(source="told_sentence")
    advice = serializers.CharField(source="told_advice")

    class Meta:
        model = Notice
        fields = ("id", "kind", "lane", "sentence", "advice", "at", "read_at")


class ReadSerializer(serializers.Serializer[Any]):
    """How many became read."""

    read = serializers.IntegerField()


class NoticeViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Notice]
):
    """The caller's notices, the newest first."""

    queryset = Notice.objects.none()
    serializer_class = NoticeSerializer
    lookup_value_regex = r"\d{1,18}"
    filters = ("unread",)
    read_scope = write_scope = Scope.READ

    def get_queryset(self) -> QuerySet[Notice]:
        """Their own; with ?unread=true those not read yet."""
        found = notices.notices_of(self._person)
        is_unread = is_true(self.request.query_params.get("unread", ""))
        return found.filter(read_at=None) if is_unread else found

    @extend_schema(parameters=[UNREAD])
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """The caller's notices."""
        return super().list(request, *args, **kwargs)

    @extend_schema(request=None, responses=NoticeSerializer)
    @action(detail=True, methods=["post"])
    def read(self, request: Request, pk: str) -> Response:
        """Take one as read."""
        notice = self.get_object()
        notices.mark_read(self._person, clock.database_now(), pk=notice.pk)
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(request=None, responses=ReadSerializer, operation_id="notices_read_all")
    @action(detail=False, methods=["post"], url_path="read", url_name="read-all")
    def read_all(self, request: Request) -> Response:
        """Take all as read."""
        count = notices.mark_read(self._person, clock.database_now())
        return Response({"read": count})

    @property
    def _person(self) -> User:
        return cast(User, self.request.user)
