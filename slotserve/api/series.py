"""/api/v1/bookings/series/."""

from collections.abc import Iterable
from typing import Any, cast

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from bookings import series, series_changes
from bookings.models import Booking, Kind, Series
from bookings.recurrence import Every, Note, Pattern
from bookings.series_changes import Span
from bookings.series_judging import Judged
from bookings.wall_clock import wall_of
from gateway.models import Scope
from lanes import clock
from lanes.models import Lane, Preset
from lanes.refusals import Refusal
from slotserve.api.bodies import StrictBody
from slotserve.api.bookings import BookingSerializer
from slotserve.api.errors import refusal_body, refuse
from slotserve.api.fields import AwareDateTimeField
from slotserve.api.permissions import OTHER_LANE, may_use_lane


class OccurrenceSerializer(serializers.Serializer[Judged]):
    """One time of a series; `refusal` says what stands against it, as a booking's refusal does."""

    start = serializers.DateTimeField(source="occurrence.start")
    end = serializers.DateTimeField(source="occurrence.end")
    needs_approval = serializers.BooleanField(source="is_asked")
    notes = serializers.ListField(
        source="occurrence.notes", child=serializers.ChoiceField(choices=[n.value for n in Note])
    )
    refusal = serializers.SerializerMethodField()

    def get_refusal(self, judged: Judged) -> dict[str, Any] | None:
        """None where it can be booked."""
        return refusal_body(judged.refusal) if judged.refusal else None


class SeriesSerializer(serializers.ModelSerializer[Series]):
    """A series and its bookings."""

    owner = serializers.CharField(source="owner.username")
    bookings = BookingSerializer(many=True)

    class Meta:
        model = Series
        fields = ("id", "owner", "zone", "every", "days", "until", "count", "bookings")


class SeriesPreviewSerializer(serializers.Serializer[Any]):
    """What a series would be."""

    occurrences = OccurrenceSerializer(many=True)


class NewSeriesSerializer(StrictBody):
    """A wish for a series. `start` and `end` are those of the first day; the others are at the same
    times on the clock of `zone`. `days`: of the week, 0 is Monday."""

    lane = serializers.SlugRelatedField(slug_field="slug", queryset=Lane.objects.all())
    kind = serializers.ChoiceField(choices=Kind.choices, default=Kind.MODEL)
    preset = serializers.SlugRelatedField(
        slug_field="slug", queryset=Preset.objects.all(), required=False, allow_null=True
    )
    start = AwareDateTimeField()
    end = AwareDateTimeField()
    zone = serializers.CharField(max_length=64, required=False)
    every = serializers.ChoiceField(choices=[every.value for every in Every])
    days = serializers.ListField(
        child=serializers.IntegerField(min_value=0, max_value=6), required=False, default=list
    )
    until = serializers.DateField(required=False, allow_null=True)
    count = serializers.IntegerField(required=False, allow_null=True)
    purpose = serializers.CharField(max_length=200, required=False, allow_blank=True, default="")
    leave_out = serializers.BooleanField(default=False)
    preview = serializers.BooleanField(default=False)


class CancelSeriesSerializer(StrictBody):
    """Which bookings: all that have not begun, or those from this one on."""

    booking = serializers.IntegerField(required=False, min_value=1)


class SeriesViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Series]
):
    """Series of bookings: see, try, make, cancel."""

    serializer_class = SeriesSerializer
    queryset = Series.objects.none()
    lookup_value_regex = r"\d{1,18}"
    read_scope = write_scope = Scope.BOOKINGS

    def get_queryset(self) -> QuerySet[Series]:
        """The caller's; for administrators everybody's."""
        user = cast(User, self.request.user)
        found = Series.objects.select_related("owner").prefetch_related(
            "bookings__lane__gpus",
            "bookings__owner",
            "bookings__preset__current__model_file",
        )
        return found if user.is_staff else found.filter(owner=user.pk)

    def get_serializer_context(self) -> dict[str, Any]:
        """One moment for the whole answer."""
        return {**super().get_serializer_context(), "now": clock.database_now()}

    @extend_schema(
        request=NewSeriesSerializer, responses={200: SeriesPreviewSerializer, 201: SeriesSerializer}
    )
    def create(self, request: Request) -> Response:
        """Book a series, all or none; with `leave_out` without what clashes. With `preview`: 200
        and what stands against each occurrence; nothing is booked."""
        body = NewSeriesSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        wish = body.validated_data
        if not may_use_lane(request, wish["lane"].pk):
            return refuse(OTHER_LANE)
        asked = _asked(wish)
        if isinstance(asked, Refusal):
            return refuse(asked)
        owner = cast(User, request.user)
        if wish["preview"]:
            found = series.preview(owner=owner, asked=asked)
            if isinstance(found, Refusal):
                return refuse(found)
            return Response({"occurrences": _occurrences(found)})
        made = series.book_series(owner=owner, asked=asked, leaves_out=wish["leave_out"])
        if isinstance(made, Refusal):
            return _refused(made)
        left_out = _occurrences(made.left_out)
        shown = self.get_serializer(self.get_queryset().get(pk=made.series.pk)).data
        return Response({**shown, "left_out": left_out}, status=status.HTTP_201_CREATED)

    @extend_schema(request=CancelSeriesSerializer, responses=SeriesSerializer)
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: str) -> Response:
        """Cancel all of its bookings that have not begun, or those from `booking` on."""
        found = self.get_object()
        body = CancelSeriesSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        number = body.validated_data.get("booking")
        bookings = found.bookings.filter(pk=number) if number else found.bookings
        first = bookings.order_by("start").first()
        if first is None:
            raise serializers.ValidationError({"booking": "The series has no such booking."})
        if not _may_use_lanes(request, found):
            return refuse(OTHER_LANE)
        span = Span.FOLLOWING if number else Span.ALL
        done = series_changes.cancel_series(first, actor=cast(User, request.user), span=span)
        if isinstance(done, Refusal):
            return refuse(done)
        return Response(self.get_serializer(self.get_object()).data)


def _may_use_lanes(request: Request, found: Series) -> bool:
    lanes = Booking.objects.filter(series=found).values_list("lane", flat=True).distinct()
    return all(may_use_lane(request, lane) for lane in lanes)


def _occurrences(judged: Iterable[Judged]) -> list[Any]:
    return [OccurrenceSerializer(each).data for each in judged]


def _asked(wish: dict[str, Any]) -> series.AskedSeries | Refusal:
    name = wish.get("zone") or timezone.get_current_timezone_name()
    zone = series.zone_named(name)
    if zone is None:
        return series.NO_ZONE
    return series.AskedSeries(
        lane=wish["lane"],
        kind=wish["kind"],
        preset=wish.get("preset"),
        start=wall_of(wish["start"], zone),
        end=wall_of(wish["end"], zone),
        zone=name,
        pattern=Pattern(
            Every(wish["every"]), frozenset(wish["days"]), wish.get("until"), wish.get("count")
        ),
        purpose=wish["purpose"],
    )


def _refused(refusal: Refusal) -> Response:
    response = refuse(refusal)
    if isinstance(refusal, series.SeriesRefused):
        response.data["occurrences"] = _occurrences(refusal.judged)
    return response
