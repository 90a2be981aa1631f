"""/api/v1/announcements/: what everybody is told."""

from typing import Any, cast

from django.contrib.auth.models import User
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.models import Scope
from lanes import announcements, clock
from lanes.models import Announcement, Level
from lanes.refusals import Refusal
from slotserve.api.bodies import StrictBody, check_empty
from slotserve.api.errors import refuse
from slotserve.api.fields import AwareDateTimeField


class AnnouncementSerializer(serializers.ModelSerializer[Announcement]):
    """One line over every page; no end: until it is ended."""

    class Meta:
        model = Announcement
        fields = ("id", "text", "level", "starts_at", "ends_at")


class NewAnnouncementSerializer(StrictBody):
    """A wish for one; without a start it begins at once."""

    text = serializers.CharField(max_length=300)
    level = serializers.ChoiceField(choices=Level.choices, default=Level.INFO)
    starts_at = AwareDateTimeField(required=False, allow_null=True, default=None)
    ends_at = AwareDateTimeField(required=False, allow_null=True, default=None)


class AnnouncementViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Announcement]
):
    """Those in force; administrators also see those to come, make and end them."""

    queryset = Announcement.objects.none()
    serializer_class = AnnouncementSerializer
    lookup_value_regex = r"\d{1,18}"
    read_scope = Scope.READ
    write_scope = Scope.ADMIN

    def get_queryset(self) -> QuerySet[Announcement]:
        """The newest first."""
        now = clock.database_now()
        is_staff = cast(User, self.request.user).is_staff
        return announcements.not_over(now) if is_staff else announcements.in_force(now)

    @extend_schema(request=NewAnnouncementSerializer, responses={201: AnnouncementSerializer})
    def create(self, request: Request) -> Response:
        """Announce something."""
        wish = NewAnnouncementSerializer(data=request.data)
        wish.is_valid(raise_exception=True)
        actor = cast(User, request.user)
        made = announcements.announce(actor=actor, **wish.validated_data)
        if isinstance(made, Refusal):
            return refuse(made)
        return Response(AnnouncementSerializer(made).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=None, responses={204: None})
    @action(detail=True, methods=["post"])
    def end(self, request: Request, pk: str, **_: Any) -> Response:
        """Show it no more; one that is still to come is dropped."""
        check_empty(request)
        refusal = announcements.end(self.get_object(), actor=cast(User, request.user))
        return refuse(refusal) if refusal else Response(status=status.HTTP_204_NO_CONTENT)
