"""/api/v1/waitlist/."""

from typing import Any, cast

from django.contrib.auth.models import User
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from bookings import waitlist
from bookings.models import Kind, Waiting
from bookings.waitlist import Wanted
from gateway.models import Scope
from lanes import clock
from lanes.models import Lane, Preset
from lanes.refusals import Refusal
from slotserve.api.bodies import StrictBody
from slotserve.api.errors import refuse
from slotserve.api.fields import AwareDateTimeField
from slotserve.api.permissions import OTHER_LANE, may_use_lane


class WaitingSerializer(serializers.ModelSerializer[Waiting]):
    """What somebody waits for."""

    owner = serializers.CharField(source="owner.username")
    lanes = serializers.SlugRelatedField[Lane](slug_field="slug", many=True, read_only=True)
    preset = serializers.CharField(source="preset.slug", default=None, allow_null=True)
    place = serializers.SerializerMethodField()

    def get_place(self, waiting: Waiting) -> int:
        """Among all who wait for one of its lanes; 1: the next who fits."""
        context = cast(dict[str, Any], self.context)
        if "places" not in context:
            found = waitlist.places(clock.database_now())
            context["places"] = {each.waiting.pk: each.number for each in found}
        return cast(int, context["places"].get(waiting.pk, 1))

    class Meta:
        model = Waiting
        fields = (
            *("id", "owner", "lanes", "kind", "preset", "minutes", "opens", "closes", "purpose"),
            *("created_at", "place"),
        )


class NewWaitingSerializer(StrictBody):
    """So many minutes somewhere in [opens, closes) on one of the lanes."""

    lanes = serializers.SlugRelatedField(
        slug_field="slug", queryset=Lane.objects.all(), many=True, allow_empty=False
    )
    kind = serializers.ChoiceField(choices=Kind.choices, default=Kind.MODEL)
    preset = serializers.SlugRelatedField(
        slug_field="slug", queryset=Preset.objects.all(), required=False, allow_null=True
    )
    minutes = serializers.IntegerField(min_value=1, max_value=1_000_000)
    opens = AwareDateTimeField()
    closes = AwareDateTimeField()
    purpose = serializers.CharField(max_length=200, required=False, allow_blank=True, default="")


class WaitlistViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Waiting]
):
    """The waitlist: see what one waits for, wait, wait no more."""

    serializer_class = WaitingSerializer
    queryset = Waiting.objects.none()
    lookup_value_regex = r"\d{1,18}"
    read_scope = write_scope = Scope.BOOKINGS

    def get_queryset(self) -> QuerySet[Waiting]:
        """The caller's; for administrators everybody's."""
        user = cast(User, self.request.user)
        found = Waiting.objects.unserved(clock.database_now())
        found = found.select_related("owner", "preset").prefetch_related("lanes")
        return found if user.is_staff else found.filter(owner=user.pk)

    @extend_schema(request=NewWaitingSerializer, responses={201: WaitingSerializer})
    def create(self, request: Request) -> Response:
        """Wait: what becomes free is held for the first who fits, who is told."""
        body = NewWaitingSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        said = body.validated_data
        if not all(may_use_lane(request, lane.pk) for lane in said["lanes"]):
            return refuse(OTHER_LANE)
        wanted = Wanted(**({"preset": None} | said))
        made = waitlist.wait(owner=cast(User, request.user), wanted=wanted)
        if isinstance(made, Refusal):
            return refuse(made)
        return Response(self.get_serializer(made).data, status=status.HTTP_201_CREATED)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Wait no more."""
        waiting = self.get_object()
        if not all(may_use_lane(request, lane.pk) for lane in waiting.lanes.all()):
            return refuse(OTHER_LANE)
        done = waitlist.leave(waiting, actor=cast(User, request.user))
        if isinstance(done, Refusal):
            return refuse(done)
        return Response(status=status.HTTP_204_NO_CONTENT)
