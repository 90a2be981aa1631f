"""/api/v1/bookings/."""

from collections.abc import Callable
from typing import Any, cast

from django.contrib.auth.models import User
from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from bookings import services, waitlist
from bookings.models import Booking, Kind
from bookings.states import LONGEST_COMMENT
from gateway.models import Scope
from gateway.slot_tokens import make_slot_token
from lanes import clock, fitting
from lanes.models import Lane, Preset
from lanes.refusals import Refusal
from slotserve.api.bodies import StrictBody, check_empty
from slotserve.api.booking_people import PeopleActions
from slotserve.api.errors import refuse
from slotserve.api.fields import AwareDateTimeField, NameField, is_true
from slotserve.api.permissions import OTHER_LANE, may_use_lane
from slotserve.api.tokens import MadeTokenSerializer, TokenSerializer

Service = Callable[..., Booking | Refusal]
NO_LANE = "There is no lane of this name: lanes/ lists those that there are."


HIDDEN = {"purpose": "", "decision_comment": "", "first_request_at": None, "lapse": ""}


class BookingSerializer(serializers.ModelSerializer[Booking]):
    """A booking; `status` is derived from state and time."""

    lane = serializers.CharField(source="lane.slug")
    owner = NameField(source="owner.username")
    preset = serializers.CharField(source="preset.slug", default=None, allow_null=True)
    status = serializers.SerializerMethodField()
    warnings = serializers.SerializerMethodField()
    shared_with = serializers.SerializerMethodField()

    class Meta:
        model = Booking
        fields = (
            "id",
            "lane",
            "owner",
            "kind",
            "preset",
            "start",
            "end",
            "original_end",
            "state",
            "status",
            "purpose",
            "decision_comment",
            "confirmed_at",
            "released_at",
            "held_until",
            "series",
            "first_request_at",
            "lapse",
            "shared_with",
            "warnings",
        )
        read_only_fields = fields

    def to_representation(self, booking: Booking) -> dict[str, Any]:
        """All of it for its owner and administrators."""
        shown: dict[str, Any] = super().to_representation(booking)
        is_all = booking.is_changeable_by(self.context["request"].user)
        return shown if is_all else shown | HIDDEN

    def get_warnings(self, booking: Booking) -> list[str]:
        """What may go wrong, in sentences; it is booked all the same."""
        return fitting.warnings(booking.lane, booking.preset)

    def get_shared_with(self, booking: Booking) -> list[str]:
        """Names, for its owner, administrators and those who are among them; else none."""
        user, people = self.context["request"].user, [each.member for each in booking.shares.all()]
        is_shown = booking.is_changeable_by(user) or user in people
        return [each.username for each in people] if is_shown else []

    def get_status(self, booking: Booking) -> str:
        """Where it stands at the view's moment."""
        return booking.status(self.context["now"])


class NewBookingSerializer(StrictBody):
    """A wish to book; without `start` it begins now."""

    lane = serializers.SlugRelatedField(slug_field="slug", queryset=Lane.objects.all())
    kind = serializers.ChoiceField(choices=Kind.choices, default=Kind.MODEL)
    preset = serializers.SlugRelatedField(
        slug_field="slug", queryset=Preset.objects.all(), required=False, allow_null=True
    )
    start = AwareDateTimeField(required=False, allow_null=True)
    end = AwareDateTimeField()
    purpose = serializers.CharField(max_length=200, required=False, allow_blank=True, default="")


class MoveSerializer(StrictBody):
    """What changes of a booking; what is left out stays."""

    kept = frozenset(BookingSerializer.Meta.fields) - {"lane", "kind", "preset", "start", "end"}
    lane = serializers.SlugRelatedField(
        slug_field="slug", queryset=Lane.objects.all(), required=False
    )
    kind = serializers.ChoiceField(choices=Kind.choices, required=False)
    preset = serializers.SlugRelatedField(
        slug_field="slug", queryset=Preset.objects.all(), required=False, allow_null=True
    )
    start = AwareDateTimeField(required=False)
    end = AwareDateTimeField(required=False)


class ExtendSerializer(StrictBody):
    """A later end; PATCH the booking for an earlier one."""

    end = AwareDateTimeField()


class BookingDecisionSerializer(StrictBody):
    """What its owner is told with the decision."""

    comment = serializers.CharField(
        max_length=LONGEST_COMMENT, required=False, allow_blank=True, default=""
    )


FILTERS = [
    OpenApiParameter("lane", str, description="slug of a lane"),
    OpenApiParameter("mine", bool, description="only the caller's own"),
    OpenApiParameter("from", str, description="only those that end after this time"),
    OpenApiParameter("to", str, description="only those that start before this time"),
]


@extend_schema_view(list=extend_schema(parameters=FILTERS))
class BookingViewSet(
    PeopleActions,
    mixins.ListModelMixin,
    mixins.RetrieveModelMixin,
    viewsets.GenericViewSet[Booking],
):
    """Bookings: see, make, move, release, extend, cancel; approve and reject."""

    serializer_class = BookingSerializer
    queryset = Booking.objects.none()
    lookup_value_regex = r"\d{1,18}"
    read_scope = write_scope = Scope.BOOKINGS
    is_for_members = False
    filters = ("lane", "mine", "from", "to")

    def get_queryset(self) -> QuerySet[Booking]:
        """Those that the caller may see, by the query's filters."""
        found = Booking.objects.visible_to(self.request.user).select_related(
            "lane", "owner", "preset__current__model_file"
        )
        found = found.prefetch_related("lane__gpus", "shares__member")
        if self.action != "list":
            return found
        query = self.request.query_params
        if "lane" in query:
            if not Lane.objects.filter(slug=query["lane"]).exists():
                raise serializers.ValidationError({"lane": NO_LANE})
            found = found.filter(lane__slug=query["lane"])
        if is_true(query.get("mine", "")):
            found = found.filter(owner=cast(User, self.request.user))
        if "from" in query:
            found = found.filter(end__gt=_moment(query["from"], "from"))
        if "to" in query:
            found = found.filter(start__lt=_moment(query["to"], "to"))
        return found

    def get_serializer_context(self) -> dict[str, Any]:
        """One moment for the whole answer."""
        return {**super().get_serializer_context(), "now": clock.database_now()}

    @extend_schema(request=NewBookingSerializer, responses={201: BookingSerializer})
    def create(self, request: Request) -> Response:
        """Book a lane: 201, or 409 with what is in the way and the nearest free slots."""
        asked = NewBookingSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        wish = asked.validated_data
        if not may_use_lane(request, wish["lane"].pk):
            return refuse(OTHER_LANE)
        made = services.book(
            owner=cast(User, request.user),
            lane=wish["lane"],
            kind=wish["kind"],
            preset=wish.get("preset"),
            start=wish.get("start"),
            end=wish["end"],
            purpose=wish["purpose"],
        )
        return self._answer(made, status.HTTP_201_CREATED)

    @extend_schema(request=MoveSerializer, responses=BookingSerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Move a booking: other times, lane or preset."""
        booking = self.get_object()
        asked = MoveSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        wish = asked.validated_data
        lane = wish.get("lane", booking.lane)
        if not (may_use_lane(request, booking.lane_id) and may_use_lane(request, lane.pk)):
            return refuse(OTHER_LANE)
        kind = wish.get("kind", booking.kind)
        moved = services.move(
            booking,
            actor=cast(User, request.user),
            start=wish.get("start", booking.start),
            end=wish.get("end", booking.end),
            lane=lane,
            kind=kind,
            preset=wish.get("preset", booking.preset if kind == Kind.MODEL else None),
        )
        return self._answer(moved)

    @extend_schema(request=ExtendSerializer, responses=BookingSerializer)
    @action(detail=True, methods=["post"])
    def extend(self, request: Request, pk: str) -> Response:
        """Give a booking a later end."""
        asked = ExtendSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        return self._change(services.extend, end=asked.validated_data["end"])

    @extend_schema(request=None, responses=BookingSerializer)
    @action(detail=True, methods=["post"])
    def release(self, request: Request, pk: str) -> Response:
        """Give the rest of a running slot back."""
        return self._change(services.release)

    @extend_schema(request=None, responses=BookingSerializer)
    @action(detail=True, methods=["post"])
    def confirm(self, request: Request, pk: str) -> Response:
        """Make a booking of what is held for whoever waited."""
        return self._change(waitlist.confirm)

    @extend_schema(request=None, responses=BookingSerializer)
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: str) -> Response:
        """Cancel a booking that has not begun."""
        return self._change(services.cancel)

    @extend_schema(request=BookingDecisionSerializer, responses=BookingSerializer)
    @action(detail=True, methods=["post"])
    def approve(self, request: Request, pk: str) -> Response:
        """Confirm a pending booking (administrators)."""
        return self._decide(services.approve)

    @extend_schema(request=BookingDecisionSerializer, responses=BookingSerializer)
    @action(detail=True, methods=["post"])
    def reject(self, request: Request, pk: str) -> Response:
        """Turn a pending booking down (administrators)."""
        return self._decide(services.reject)

    @extend_schema(request=None, responses={201: MadeTokenSerializer})
    @action(detail=True, methods=["post"], write_scope=Scope.ADMIN, is_for_members=True)
    def token(self, request: Request, pk: str) -> Response:
        """Make a token for this booking's lane and times alone; its text is shown this once."""
        check_empty(request)
        made = make_slot_token(self.get_object(), actor=cast(User, request.user))
        if isinstance(made, Refusal):
            return refuse(made)
        shown = {**TokenSerializer(made[0]).data, "token": made[1]}
        return Response(shown, status=status.HTTP_201_CREATED)

    def _decide(self, service: Service) -> Response:
        asked = BookingDecisionSerializer(data=self.request.data)
        asked.is_valid(raise_exception=True)
        return self._change(service, comment=asked.validated_data["comment"])

    def _change(self, service: Service, **values: Any) -> Response:
        if not values:
            check_empty(self.request)
        booking = self.get_object()
        if not may_use_lane(self.request, booking.lane_id):
            return refuse(OTHER_LANE)
        return self._answer(service(booking, actor=self.request.user, **values))

    def _answer(self, made: Booking | Refusal, code: int = status.HTTP_200_OK) -> Response:
        if isinstance(made, Refusal):
            return refuse(made)
        return Response(self.get_serializer(made).data, status=code)


def _moment(text: str, name: str) -> Any:
    try:
        return AwareDateTimeField().run_validation(text)
    except serializers.ValidationError as error:
        raise serializers.ValidationError({name: error.detail}) from None
