"""/api/v1/members/: for administrators."""

from dataclasses import asdict
from typing import Any, cast

from django.contrib.auth.models import Group, User
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.limits import RateLimits, own_limits, set_member_limits
from gateway.models import Scope
from lanes.refusals import Refusal
from slotserve.api.bodies import StrictBody
from slotserve.api.errors import refuse
from slotserve.api.limits import LimitsInForceField, MemberLimitsSerializer
from slotserve.members import Member, remove_member, save_member


class MemberSerializer(serializers.ModelSerializer[User]):
    """A person, and what is in force for all tokens together."""

    is_administrator = serializers.BooleanField(source="is_staff")
    groups = serializers.SlugRelatedField[Group](slug_field="name", many=True, read_only=True)
    limits = LimitsInForceField(source="*")

    class Meta:
        model = User
        fields = (
            "id",
            "username",
            "first_name",
            "last_name",
            "email",
            "groups",
            "is_administrator",
            "is_active",
            "limits",
        )


class MemberChangeSerializer(StrictBody):
    """What to change; what is left out stays."""

    username = serializers.CharField(max_length=150, required=False)
    first_name = serializers.CharField(max_length=150, required=False, allow_blank=True)
    last_name = serializers.CharField(max_length=150, required=False, allow_blank=True)
    email = serializers.EmailField(required=False, allow_blank=True)
    groups = serializers.SlugRelatedField(
        slug_field="name", queryset=Group.objects.all(), many=True, required=False
    )
    is_administrator = serializers.BooleanField(required=False)
    is_active = serializers.BooleanField(required=False)


class RemovalSerializer(StrictBody):
    """Whether the booking in progress ends, too."""

    release = serializers.BooleanField(default=False)


class RemovedSerializer(serializers.Serializer[Any]):
    """What became of a removed member's things."""

    given_back = serializers.IntegerField(help_text="Bookings cancelled or released.")
    kept = serializers.IntegerField(help_text="Bookings that go on.")
    revoked = serializers.IntegerField(help_text="Tokens.")


class MemberViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[User]
):
    """Members and their limits (administrators)."""

    queryset = User.objects.select_related("rate_limit").prefetch_related("groups").order_by("pk")
    serializer_class = MemberSerializer
    lookup_value_regex = r"\d{1,18}"
    read_scope = write_scope = Scope.ADMIN

    @extend_schema(request=MemberChangeSerializer, responses=MemberSerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change a member; the last administrator stays one."""
        person = self.get_object()
        asked = MemberChangeSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        wish: dict[str, Any] = dict(asked.validated_data)
        groups = wish.pop("groups", list(person.groups.all()))
        held = {
            "username": person.username,
            "email": person.email,
            "first_name": person.first_name,
            "last_name": person.last_name,
            "is_administrator": person.is_staff,
            "is_active": person.is_active,
        }
        saved = save_member(
            person, Member(**{**held, **wish}), groups, actor=cast(User, request.user)
        )
        return (
            refuse(saved) if isinstance(saved, Refusal) else Response(MemberSerializer(saved).data)
        )

    @extend_schema(request=RemovalSerializer, responses=RemovedSerializer)
    @action(detail=True, methods=["post"], filter_backends=(), pagination_class=None)
    def remove(self, request: Request, pk: str) -> Response:
        """End log-in, sessions and tokens, and cancel what is booked; history stays."""
        asked = RemovalSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        releases = asked.validated_data["release"]
        done = remove_member(self.get_object(), actor=cast(User, request.user), releases=releases)
        return refuse(done) if isinstance(done, Refusal) else Response(asdict(done))

    @extend_schema(responses=MemberLimitsSerializer)
    @action(detail=True, filter_backends=(), pagination_class=None)
    def limits(self, request: Request, pk: str) -> Response:
        """What was set for this person; null: as everybody, 0: no limit."""
        return Response(asdict(own_limits(self.get_object())))

    @extend_schema(request=MemberLimitsSerializer, responses=MemberLimitsSerializer)
    @limits.mapping.put
    def set_limits(self, request: Request, pk: str) -> Response:
        """Set both; one that is left out is as everybody's."""
        asked = MemberLimitsSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        wish: dict[str, Any] = asked.validated_data
        actor = cast(User, request.user)
        made = set_member_limits(self.get_object(), RateLimits(**wish), actor=actor)
        return refuse(made) if isinstance(made, Refusal) else Response(wish)
