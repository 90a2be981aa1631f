"""/api/v1/groups/: for administrators; a member's groups are set at the member."""

from typing import Any, cast

from django.contrib.auth.models import Group, User
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.models import Scope
from lanes.refusals import Refusal
from slotserve.api.bodies import StrictBody
from slotserve.api.errors import refuse
from slotserve.groups import LONGEST_NAME, delete_group, groups, save_group


class GroupSerializer(serializers.ModelSerializer[Group]):
    """A group, and how many of its members may log in."""

    members = serializers.IntegerField(source="size", read_only=True)

    class Meta:
        model = Group
        fields = ("id", "name", "members")


class GroupNameSerializer(StrictBody):
    """What a group is called."""

    kept = frozenset({"id", "members"})
    name = serializers.CharField(max_length=LONGEST_NAME)


class GroupViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Group]
):
    """Groups of members (administrators)."""

    queryset = Group.objects.none()
    serializer_class = GroupSerializer
    lookup_value_regex = r"\d{1,18}"
    read_scope = write_scope = Scope.ADMIN

    def get_queryset(self) -> QuerySet[Group]:
        """By name."""
        return groups()

    @extend_schema(request=GroupNameSerializer, responses={201: GroupSerializer})
    def create(self, request: Request) -> Response:
        """Make a group without members."""
        return self._save(None, status.HTTP_201_CREATED)

    @extend_schema(request=GroupNameSerializer, responses=GroupSerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Give it another name."""
        return self._save(self.get_object(), status.HTTP_200_OK)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Delete it; its members stay. Refused while rules of booking name it."""
        refusal = delete_group(self.get_object(), actor=cast(User, request.user))
        return refuse(refusal) if refusal else Response(status=status.HTTP_204_NO_CONTENT)

    def _save(self, group: Group | None, code: int) -> Response:
        asked = GroupNameSerializer(data=self.request.data)
        asked.is_valid(raise_exception=True)
        wish: dict[str, Any] = asked.validated_data
        saved = save_group(group, wish["name"], actor=cast(User, self.request.user))
        if isinstance(saved, Refusal):
            return refuse(saved)
        return Response(GroupSerializer(groups().get(pk=saved.pk)).data, status=code)
