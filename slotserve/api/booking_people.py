"""REST: giving bookings to others, and sharing them."""

from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import User
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from bookings import services
from slotserve.api.bodies import StrictBody

PERSON = OpenApiParameter("username", str, OpenApiParameter.PATH, description="the guest's name")


class MemberField(serializers.SlugRelatedField[User]):
    """A member who may log in, by name."""

    def __init__(self, **options: Any) -> None:
        members = User.objects.filter(is_active=True)
        super().__init__(slug_field="username", queryset=members, **options)


class TransferSerializer(StrictBody):
    """Who is to have the booking."""

    member = MemberField()


class ShareSerializer(StrictBody):
    """Who may use the slot beside its owner."""

    member = MemberField()


class PeopleActions:
    """What a view set of bookings offers about people; it has `_change`."""

    _change: Callable[..., Response]

    @extend_schema(request=TransferSerializer)
    @action(detail=True, methods=["post"])
    def transfer(self, request: Request, pk: str) -> Response:
        """Give a booking that is not over to another member, whose rules judge it."""
        asked = TransferSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        return self._change(services.transfer, to=asked.validated_data["member"])

    @extend_schema(request=ShareSerializer)
    @action(detail=True, methods=["post"])
    def shares(self, request: Request, pk: str) -> Response:
        """Let another member use the slot as its owner does, until that is ended."""
        asked = ShareSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        return self._change(services.share, member=asked.validated_data["member"])

    @extend_schema(request=None, parameters=[PERSON])
    @action(detail=True, methods=["delete"], url_path=r"shares/(?P<username>[^/]{1,150})")
    def end_share(self, request: Request, pk: str, username: str) -> Response:
        """End that; the answer is the booking. Guests may leave by themselves."""
        member = get_object_or_404(User, username=username)
        return self._change(services.end_share, member=member)
