"""/api/v1/invitations/: for administrators."""

from datetime import timedelta
from typing import Any, cast

from django.contrib.auth.models import Group, User
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.models import Scope
from lanes import clock
from lanes.refusals import Refusal
from slotserve import invitations
from slotserve.api.bodies import StrictBody, check_empty
from slotserve.api.errors import refuse
from slotserve.models import Invitation, InvitationState


class InvitationSerializer(serializers.ModelSerializer[Invitation]):
    """A link that makes one account, without its secret."""

    groups = serializers.SlugRelatedField[Group](slug_field="name", many=True, read_only=True)
    state = serializers.SerializerMethodField()
    created_by = serializers.CharField(source="created_by.username", default=None, allow_null=True)
    used_by = serializers.CharField(source="used_by.username", default=None, allow_null=True)

    class Meta:
        model = Invitation
        fields: tuple[str, ...] = (
            *("id", "email", "groups", "is_administrator", "state"),
            *("created_by", "created_at", "expires_at", "used_by", "used_at"),
        )

    def get_state(self, invitation: Invitation) -> InvitationState:
        """Where it stands."""
        return invitation.state(clock.database_now())


class NewInvitationSerializer(StrictBody):
    """Whom to invite, and as what; without an address: whoever has the link."""

    email = serializers.EmailField(required=False, allow_blank=True, default="")
    groups = serializers.SlugRelatedField(
        slug_field="name", queryset=Group.objects.all(), many=True, required=False
    )
    is_administrator = serializers.BooleanField(default=False)
    days = serializers.IntegerField(
        min_value=1, max_value=invitations.LONGEST.days, default=invitations.USUAL.days
    )


class MadeInvitationSerializer(InvitationSerializer):
    """An invitation, once with its link."""

    link = serializers.CharField(help_text="Shown this once.")
    is_mailed = serializers.BooleanField(help_text="Whether the link goes to the address.")

    class Meta(InvitationSerializer.Meta):
        fields = (*InvitationSerializer.Meta.fields, "link", "is_mailed")


class InvitationViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Invitation]
):
    """Invitations, the newest first (administrators)."""

    queryset = Invitation.objects.select_related("created_by", "used_by").prefetch_related("groups")
    serializer_class = InvitationSerializer
    lookup_value_regex = r"\d{1,18}"
    read_scope = write_scope = Scope.ADMIN

    @extend_schema(request=NewInvitationSerializer, responses={201: MadeInvitationSerializer})
    def create(self, request: Request) -> Response:
        """Invite somebody; the link is in this answer and never again."""
        asked = NewInvitationSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        wish: dict[str, Any] = {"groups": [], **asked.validated_data}
        lifetime = timedelta(days=wish.pop("days"))
        made = invitations.invite(actor=cast(User, request.user), lifetime=lifetime, **wish)
        if isinstance(made, Refusal):
            return refuse(made)
        invitation, text = made
        link = invitations.link_of(text, request.build_absolute_uri("/"))
        is_mailed = bool(invitation.email) and invitations.send(invitation, link)
        shown = InvitationSerializer(invitation).data
        once = {"link": link, "is_mailed": is_mailed}
        return Response({**shown, **once}, status=status.HTTP_201_CREATED)

    @extend_schema(request=None, responses={204: None})
    @action(detail=True, methods=["post"], filter_backends=(), pagination_class=None)
    def revoke(self, request: Request, pk: str) -> Response:
        """It opens nothing any more."""
        check_empty(request)
        refusal = invitations.revoke(self.get_object(), actor=cast(User, request.user))
        return refuse(refusal) if refusal else Response(status=status.HTTP_204_NO_CONTENT)
