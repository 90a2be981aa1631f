"""/api/v1/members/: for administrators."""

from dataclasses import asdict
from typing import Any, cast

from django.contrib.auth.models import User
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, permissions, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.limits import RateLimits, own_limits, set_member_limits
from gateway.models import Scope
from lanes.refusals import NOT_ADMINISTRATOR, Refusal
from slotserve.api.errors import refuse
from slotserve.api.limits import LimitsInForceField, MemberLimitsSerializer
from slotserve.api.permissions import HasScope


class ForAdministrators(permissions.BasePermission):
    """Members are told whom it is for."""

    message = NOT_ADMINISTRATOR.words
    code = NOT_ADMINISTRATOR.code

    def has_permission(self, request: Request, view: object) -> bool:
        """Whether the caller is an administrator."""
        return bool(getattr(request.user, "is_staff", False))


class MemberSerializer(serializers.ModelSerializer[User]):
    """A person, and what is in force for all tokens together."""

    is_administrator = serializers.BooleanField(source="is_staff")
    limits = LimitsInForceField(source="*")

    class Meta:
        model = User
        fields = ("id", "username", "is_administrator", "is_active", "limits")


class MemberViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[User]
):
    """Members and their limits (administrators)."""

    queryset = User.objects.select_related("rate_limit").order_by("pk")
    serializer_class = MemberSerializer
    permission_classes = (HasScope, ForAdministrators)
    lookup_value_regex = r"\d{1,18}"
    read_scope = write_scope = Scope.ADMIN

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
