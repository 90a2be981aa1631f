"""/api/v1/bookings/series/."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, cast

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from bookings import series, series_changes
from bookings.models import Booking, Kind, Series
from bookings.recurrence import MOST, Every, Note, Pattern
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
from slotserve.api.fields import AwareDateTimeField, NameField
from slotserve.api.permissions import OTHER_LANE, may_use_lane
from wire.zones import zone_named

Deed = Callable[[Booking, User], tuple[Booking, ...] | Refusal]


class OccurrenceSerializer(serializers.Serializer[Judged]):
    """One time of a series; `refusal` says what stands against it, as a booking's refusal does."""

    start = serializers.DateTimeField(source="occurrence.start")
    end = serializers.DateTimeField(source="occurrence.end")
    needs_approval = serializers.BooleanField(source="is_asked")
    notes = serializers.ListField(
        source="occurrence.notes", child=serializers.ChoiceField(choices=[n.value for n in Note])
    )
    choices = serializers.SerializerMethodField()
    refusal = serializers.SerializerMethodField()

    @extend_schema_field(serializers.ListField(child=serializers.DateTimeField()))
    def get_choices(self, judged: Judged) -> list[datetime]:
        """The moments that can be meant by times that clocks leave out or show twice; send those
        that are, in `meant`."""
        return [each for doubt in judged.occurrence.doubts for each in doubt.choices]

    def get_refusal(self, judged: Judged) -> dict[str, Any] | None:
        """None where it can be booked."""
        return refusal_body(judged.refusal) if judged.refusal else None


class SeriesSerializer(serializers.ModelSerializer[Series]):
    """A series and its bookings."""

    owner = NameField(source="owner.username")
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
    meant = serializers.ListField(
        child=AwareDateTimeField(), required=False, default=list, max_length=2 * MOST
    )
    leave_out = serializers.BooleanField(default=False)
    preview = serializers.BooleanField(default=False)


class CancelSeriesSerializer(StrictBody):
    """Which bookings: all that have not begun, or those from this one on."""

    booking = serializers.IntegerField(required=False, min_value=1)


class SeriesSpanSerializer(StrictBody):
    """Which bookings of a series, of those that are not over, seen from one of them."""

    booking = serializers.IntegerField(min_value=1)
    span = serializers.ChoiceField(choices=[span.value for span in Span], default=Span.ALL.value)


class SeriesMoveSerializer(SeriesSpanSerializer):
    """Where `booking` is to be; the others move by as much on the clock of the series. A length
    that differs is for all of them. Without a lane they stay on theirs."""

    start = AwareDateTimeField()
    end = AwareDateTimeField()
    lane = serializers.SlugRelatedField(
        slug_field="slug", queryset=Lane.objects.all(), required=False
    )


class SeriesViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Series]
):
    """Series of bookings: see, try, make, move, give back, cancel."""

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

    @extend_schema(request=SeriesSpanSerializer, responses=SeriesSerializer)
    @action(detail=True, methods=["post"])
    def release(self, request: Request, pk: str) -> Response:
        """Give `booking` back, or it and those after it, or all: what has begun is released, the
        rest cancelled."""
        said = self._said(SeriesSpanSerializer)
        span = Span(said["span"])
        return self._done(
            said, lambda each, actor: series_changes.release_series(each, actor=actor, span=span)
        )

    @extend_schema(request=SeriesMoveSerializer, responses=SeriesSerializer)
    @action(detail=True, methods=["post"])
    def move(self, request: Request, pk: str) -> Response:
        """Give `booking`, or it and those after it, or all other times or another length; all of it
        or nothing."""
        said = self._said(SeriesMoveSerializer)
        lane: Lane | None = said.get("lane")
        if lane and not may_use_lane(request, lane.pk):
            return refuse(OTHER_LANE)
        times = {"start": said["start"], "end": said["end"], "span": Span(said["span"])}
        return self._done(
            said,
            lambda each, actor: series_changes.move_series(each, actor=actor, lane=lane, **times),
        )

    def _said(self, serializer: type[SeriesSpanSerializer]) -> dict[str, Any]:
        body = serializer(data=self.request.data)
        body.is_valid(raise_exception=True)
        return cast(dict[str, Any], body.validated_data)

    def _done(self, said: dict[str, Any], deed: Deed) -> Response:
        """Do it from the booking that is named on, and answer with the series as it is then."""
        found = self.get_object()
        booking = found.bookings.filter(pk=said["booking"]).select_related("series").first()
        if booking is None:
            raise serializers.ValidationError({"booking": "The series has no such booking."})
        if not _may_use_lanes(self.request, found):
            return refuse(OTHER_LANE)
        done = deed(booking, cast(User, self.request.user))
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
    zone = zone_named(name)
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
        meant=frozenset(each.astimezone(UTC) for each in wish["meant"]),
    )


def _refused(refusal: Refusal) -> Response:
    response = refuse(refusal)
    if isinstance(refusal, series.SeriesRefused):
        response.data["occurrences"] = _occurrences(refusal.judged)
        nearest = [{"start": each.start, "end": each.end} for each in refusal.nearest]
        response.data["nearest"] = nearest
    return response
