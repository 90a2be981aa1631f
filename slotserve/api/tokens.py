"""/api/v1/tokens/, /api/v1/usage/ and /api/v1/me/."""

from typing import Any, cast

from django.contrib.auth.models import User
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from gateway import tokens
from gateway.limits import NO_LIMITS, RateLimits, set_token_limits
from gateway.models import ApiToken, Scope, UsageRecord
from lanes.models import Lane
from lanes.refusals import Refusal
from slotserve.api.errors import refuse
from slotserve.api.fields import AwareDateTimeField
from slotserve.api.limits import LimitsInForceField, RateLimitsSerializer, changed_limits


class TokenSerializer(serializers.ModelSerializer[ApiToken]):
    """A token without its secret."""

    owner = serializers.CharField(source="owner.username")
    lanes = serializers.SlugRelatedField[Lane](slug_field="slug", many=True, read_only=True)
    booking = serializers.IntegerField(
        source="booking_id",
        allow_null=True,
        read_only=True,
        help_text="Works on this booking's lane, from its start to its end.",
    )

    class Meta:
        model = ApiToken
        fields = (
            "id",
            "owner",
            "name",
            "prefix",
            "scopes",
            "lanes",
            "booking",
            "requests_per_minute",
            "tokens_per_minute",
            "created_at",
            "expires_at",
            "last_used_at",
            "revoked_at",
        )


class NewTokenSerializer(RateLimitsSerializer):
    """A wish for a token. Without limits it may use all that its owner may."""

    name = serializers.CharField(max_length=100)
    scopes = serializers.MultipleChoiceField(
        choices=Scope.choices,
        default={scope.value for scope in tokens.DEFAULT_SCOPES},
    )
    lanes = serializers.SlugRelatedField(
        slug_field="slug", queryset=Lane.objects.all(), many=True, required=False
    )
    expires_at = AwareDateTimeField(required=False, allow_null=True)


class MadeTokenSerializer(TokenSerializer):
    """A token with its text, shown this once."""

    token = serializers.CharField()

    class Meta(TokenSerializer.Meta):
        fields = (*TokenSerializer.Meta.fields, "token")  # type: ignore[assignment]


class TokenViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Any]):
    """The caller's tokens."""

    serializer_class = TokenSerializer
    queryset = ApiToken.objects.none()
    lookup_value_regex = r"\d{1,18}"
    read_scope = write_scope = Scope.ADMIN
    is_for_members = True

    def get_queryset(self) -> QuerySet[ApiToken]:
        """Those that the caller may see."""
        found = ApiToken.objects.visible_to(self.request.user)
        return found.select_related("owner").prefetch_related("lanes")

    @extend_schema(request=NewTokenSerializer, responses={201: MadeTokenSerializer})
    def create(self, request: Request) -> Response:
        """Make a token; its text is in this answer and never shown again."""
        asked = NewTokenSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        wish = asked.validated_data
        made = tokens.create_token(
            owner=cast(User, request.user),
            name=wish["name"],
            scopes=sorted(wish["scopes"]),
            lanes=wish.get("lanes", []),
            expires_at=wish.get("expires_at"),
            rate_limits=changed_limits(NO_LIMITS, wish),
        )
        if isinstance(made, Refusal):
            return refuse(made)
        token, text = made
        shown = {**TokenSerializer(token).data, "token": text}
        return Response(shown, status=status.HTTP_201_CREATED)

    @extend_schema(request=RateLimitsSerializer, responses=TokenSerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Lower a token's limits; administrators may set any. What is left out stays."""
        token = self.get_object()
        asked = RateLimitsSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        held = RateLimits(token.requests_per_minute, token.tokens_per_minute)
        wish = changed_limits(held, asked.validated_data)
        refusal = set_token_limits(token, wish, actor=cast(User, request.user))
        return refuse(refusal) if refusal else Response(TokenSerializer(token).data)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Revoke a token: every edge refuses it within a second."""
        refusal = tokens.revoke(self.get_object(), actor=cast(User, request.user))
        return refuse(refusal) if refusal else Response(status=status.HTTP_204_NO_CONTENT)


class UsageSerializer(serializers.ModelSerializer[UsageRecord]):
    """One request, without what was asked or answered."""

    lane = serializers.CharField(source="lane.slug", default=None, allow_null=True)

    class Meta:
        model = UsageRecord
        fields = (
            "request_id",
            "at",
            "lane",
            "booking_id_for",
            "preset",
            "route",
            "status",
            "code",
            "duration_ms",
            "queue_ms",
            "first_byte_ms",
            "bytes_in",
            "bytes_out",
            "is_aborted",
            "prompt_tokens",
            "completion_tokens",
            "cached_tokens",
            "is_estimated",
        )


class UsageViewSet(mixins.ListModelMixin, viewsets.GenericViewSet[UsageRecord]):
    """The caller's requests, newest first."""

    serializer_class = UsageSerializer
    queryset = UsageRecord.objects.none()
    read_scope = Scope.READ

    def get_queryset(self) -> QuerySet[UsageRecord]:
        """The caller's own."""
        own = UsageRecord.objects.filter(owner=cast(User, self.request.user))
        return own.select_related("lane")


class MeSerializer(serializers.ModelSerializer[User]):
    """Who calls."""

    is_administrator = serializers.BooleanField(source="is_staff")
    limits = LimitsInForceField(source="*")

    class Meta:
        model = User
        fields = ("id", "username", "email", "is_administrator", "limits")


class MeView(APIView):
    """The caller."""

    read_scope = Scope.READ

    @extend_schema(responses=MeSerializer)
    def get(self, request: Request) -> Response:
        """Name, role, and what all tokens together may use in a minute."""
        return Response(MeSerializer(cast(User, request.user)).data)
