"""/api/v1/webhooks/ and /api/v1/deliveries/, for administrators."""

from typing import Any, cast

from django.contrib.auth.models import User
from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.models import Scope
from lanes import clock
from lanes.refusals import Refusal
from notices import endpoint_services
from notices.events import Event
from notices.models import Delivery, Endpoint, EndpointKind
from slotserve.api.bodies import StrictBody, check_empty
from slotserve.api.errors import refuse

WEBHOOK = OpenApiParameter("webhook", int, description="the id of one: its deliveries alone")


class WebhookSerializer(serializers.ModelSerializer[Endpoint]):
    """A webhook or chat room; of its address what may be shown."""

    address = serializers.CharField(source="shown")

    class Meta:
        model = Endpoint
        fields = ("id", "name", "kind", "address", "events", "is_on", "created_at")


class NewlyMadeWebhookSerializer(WebhookSerializer):
    """One with its secret, shown this once; a chat room has none."""

    secret = serializers.CharField(allow_blank=True)

    class Meta(WebhookSerializer.Meta):
        fields = (*WebhookSerializer.Meta.fields, "secret")  # type: ignore[assignment]


class NewWebhookSerializer(StrictBody):
    """A wish for one."""

    name = serializers.CharField(max_length=100)
    kind = serializers.ChoiceField(EndpointKind.choices, default=EndpointKind.WEBHOOK)
    url = serializers.CharField(max_length=endpoint_services.LONGEST_URL)
    events = serializers.ListField(child=serializers.ChoiceField(Event.choices))


class WebhookWriteSerializer(StrictBody):
    """What is to be other; what is left out stays."""

    kept = frozenset({"kind", "url", "address"})
    name = serializers.CharField(max_length=100, required=False)
    events = serializers.ListField(child=serializers.ChoiceField(Event.choices), required=False)
    is_on = serializers.BooleanField(required=False)


class DeliverySerializer(serializers.ModelSerializer[Delivery]):
    """One telling of an endpoint. `send_from`: when it is tried next."""

    webhook = serializers.IntegerField(source="endpoint_id")

    class Meta:
        model = Delivery
        fields = (
            *("id", "webhook", "event", "key", "payload", "state", "status", "reason"),
            *("attempts", "created_at", "tried_at", "send_from"),
        )


class WebhookViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Endpoint]
):
    """Webhooks and chat rooms."""

    queryset = Endpoint.objects.all()
    serializer_class = WebhookSerializer
    lookup_value_regex = r"\d{1,18}"
    read_scope = write_scope = Scope.ADMIN

    @extend_schema(request=NewWebhookSerializer, responses={201: NewlyMadeWebhookSerializer})
    def create(self, request: Request) -> Response:
        """Add one; a webhook's secret is in this answer and never shown again."""
        asked = NewWebhookSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        made = endpoint_services.add(
            **asked.validated_data, actor=self._actor, now=clock.database_now()
        )
        if isinstance(made, Refusal):
            return refuse(made)
        endpoint, secret = made
        shown = {**WebhookSerializer(endpoint).data, "secret": secret}
        return Response(shown, status=status.HTTP_201_CREATED)

    @extend_schema(request=WebhookWriteSerializer, responses=WebhookSerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change its name, what it is told of, or turn it on or off."""
        asked = WebhookWriteSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        wish = cast(Any, asked.validated_data)
        changed = endpoint_services.change(self.get_object(), actor=self._actor, **wish)
        return refuse(changed) if isinstance(changed, Refusal) else self._shown(changed)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Delete it with its log."""
        refusal = endpoint_services.remove(self.get_object(), actor=self._actor)
        return refuse(refusal) if refusal else Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(request=None, responses={202: DeliverySerializer})
    @action(detail=True, methods=["post"])
    def test(self, request: Request, pk: str) -> Response:
        """Have it told of a test."""
        check_empty(request)
        now = clock.database_now()
        sent = endpoint_services.send_test(self.get_object(), actor=self._actor, now=now)
        if isinstance(sent, Refusal):
            return refuse(sent)
        return Response(DeliverySerializer(sent).data, status=status.HTTP_202_ACCEPTED)

    @property
    def _actor(self) -> User:
        return cast(User, self.request.user)

    def _shown(self, endpoint: Endpoint) -> Response:
        return Response(WebhookSerializer(endpoint).data)


class DeliveryViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Delivery]
):
    """What endpoints were told, the newest first."""

    queryset = Delivery.objects.filter(endpoint__isnull=False)
    serializer_class = DeliverySerializer
    lookup_value_regex = r"\d{1,18}"
    filters = ("webhook",)
    read_scope = write_scope = Scope.ADMIN

    def get_queryset(self) -> QuerySet[Delivery]:
        """All, or with ?webhook= one's."""
        found, wanted = super().get_queryset(), self.request.query_params.get("webhook", "")
        if not wanted:
            return found
        is_number = wanted.isascii() and wanted.isdecimal() and len(wanted) < 19
        return found.filter(endpoint=int(wanted)) if is_number else found.none()

    @extend_schema(parameters=[WEBHOOK])
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """What endpoints were told."""
        return super().list(request, *args, **kwargs)

    @extend_schema(request=None, responses={202: DeliverySerializer})
    @action(detail=True, methods=["post"])
    def replay(self, request: Request, pk: str) -> Response:
        """Send it anew, under the same id."""
        check_empty(request)
        actor, now = cast(User, request.user), clock.database_now()
        sent = endpoint_services.send_again(self.get_object(), actor=actor, now=now)
        if isinstance(sent, Refusal):
            return refuse(sent)
        return Response(DeliverySerializer(sent).data, status=status.HTTP_202_ACCEPTED)
