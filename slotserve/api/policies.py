"""/api/v1/policies/: the rules of booking, for administrators; and what holds for the asker."""

from typing import Any, cast

from django.contrib.auth.models import Group, User
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from bookings.models import Policy
from bookings.policies import Standing, standing_of
from bookings.policy import left_of
from bookings.policy_rows import ApprovalChoice, PresetChoice
from bookings.policy_service import delete_policy, save_policy
from gateway.models import Scope
from lanes import clock
from lanes.models import Lane, Preset
from lanes.refusals import Refusal
from slotserve.api.bodies import StrictBody
from slotserve.api.errors import refuse

NUMBERS = (
    *("grid_minutes", "min_minutes", "max_minutes", "notice_minutes", "ahead_days"),
    *("day_hours", "week_hours", "bookings_ahead"),
)
AFTER = ("approval_hours", "pending_hours", "no_show_minutes", "late_cancel_minutes")


def _number() -> serializers.IntegerField:
    return serializers.IntegerField(required=False, allow_null=True, min_value=0)


def _hours() -> serializers.FloatField:
    return serializers.FloatField(required=False, allow_null=True, min_value=0)


class PolicySerializer(serializers.ModelSerializer[Policy]):
    """A row of rules; null: it says nothing of that. No lane: every lane; no group: everybody."""

    lane = serializers.CharField(source="lane.slug", default=None, allow_null=True)
    group = serializers.CharField(source="group.name", default=None, allow_null=True)
    preset_choice = serializers.SerializerMethodField()
    presets: serializers.ManyRelatedField = serializers.SlugRelatedField(  # type: ignore[assignment]
        slug_field="slug", many=True, read_only=True
    )
    approval = serializers.SerializerMethodField()

    class Meta:
        model = Policy
        fields = (
            *("id", "lane", "group", "may_book", "may_book_gpu", "preset_choice", "presets"),
            *NUMBERS,
            "approval",
            *AFTER,
        )

    def get_preset_choice(self, policy: Policy) -> str | None:
        """any, or listed: only those of `presets`."""
        return policy.preset_choice or None

    def get_approval(self, policy: Policy) -> str | None:
        """never, gpu, beyond (`approval_hours`) or always."""
        return policy.approval or None


class PolicyWriteSerializer(StrictBody):
    """What a row is to say; null: nothing, 0: no limit. PATCH: what is left out stays."""

    kept = frozenset({"id"})
    lane = serializers.SlugRelatedField(
        slug_field="slug", queryset=Lane.objects.all(), required=False, allow_null=True
    )
    group = serializers.SlugRelatedField(
        slug_field="name", queryset=Group.objects.all(), required=False, allow_null=True
    )
    may_book = serializers.BooleanField(required=False, allow_null=True)
    may_book_gpu = serializers.BooleanField(required=False, allow_null=True)
    preset_choice = serializers.ChoiceField(
        choices=PresetChoice.choices, required=False, allow_null=True
    )
    presets = serializers.SlugRelatedField(
        slug_field="slug", queryset=Preset.objects.all(), many=True, required=False
    )
    grid_minutes = _number()
    min_minutes = _number()
    max_minutes = _number()
    notice_minutes = _number()
    ahead_days = _number()
    day_hours = _hours()
    week_hours = _hours()
    bookings_ahead = _number()
    approval = serializers.ChoiceField(
        choices=ApprovalChoice.choices, required=False, allow_null=True
    )
    approval_hours = _hours()
    pending_hours = _hours()
    no_show_minutes = _number()
    late_cancel_minutes = _number()


class PolicyViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Policy]
):
    """The rules of booking, row by row (administrators)."""

    queryset = Policy.objects.select_related("lane", "group").prefetch_related("presets")
    serializer_class = PolicySerializer
    lookup_value_regex = r"\d{1,18}"
    read_scope = write_scope = Scope.ADMIN

    @extend_schema(request=PolicyWriteSerializer, responses={201: PolicySerializer})
    def create(self, request: Request) -> Response:
        """Make a row for a lane or every lane, and a group or everybody."""
        return self._save(None, status.HTTP_201_CREATED)

    @extend_schema(request=PolicyWriteSerializer, responses=PolicySerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change what a row says."""
        return self._save(self.get_object(), status.HTTP_200_OK)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """What it says holds no more."""
        refusal = delete_policy(self.get_object(), actor=self._actor)
        return refuse(refusal) if refusal else Response(status=status.HTTP_204_NO_CONTENT)

    def _save(self, policy: Policy | None, code: int) -> Response:
        asked = PolicyWriteSerializer(data=self.request.data)
        asked.is_valid(raise_exception=True)
        saved = save_policy(policy, actor=self._actor, **asked.validated_data)
        if isinstance(saved, Refusal):
            return refuse(saved)
        return Response(self.get_serializer(self.get_queryset().get(pk=saved.pk)).data, status=code)

    @property
    def _actor(self) -> User:
        return cast(User, self.request.user)


class LeftSerializer(serializers.Serializer[Any]):
    """What the asker has left today, this week and ahead; null: there is no such quota."""

    day_hours = serializers.FloatField(allow_null=True)
    week_hours = serializers.FloatField(allow_null=True)
    bookings_ahead = serializers.FloatField(allow_null=True)


class RulesSerializer(serializers.Serializer[Any]):
    """What holds for the asker; a limit of 0 is none."""

    may_book = serializers.BooleanField()
    may_book_gpu = serializers.BooleanField()
    presets = serializers.ListField(
        child=serializers.CharField(), allow_null=True, help_text="null: every preset"
    )
    grid_minutes = serializers.IntegerField()
    min_minutes = serializers.IntegerField()
    max_minutes = serializers.IntegerField()
    notice_minutes = serializers.IntegerField()
    ahead_days = serializers.IntegerField()
    day_hours = serializers.FloatField()
    week_hours = serializers.FloatField()
    bookings_ahead = serializers.IntegerField()
    approval = serializers.CharField()
    approval_hours = serializers.FloatField()
    pending_hours = serializers.FloatField()
    no_show_minutes = serializers.IntegerField()
    late_cancel_minutes = serializers.IntegerField()


class LanePolicySerializer(serializers.Serializer[Any]):
    """The rules of a lane for the asker, and what is left of the quotas."""

    lane = serializers.CharField()
    time_zone = serializers.CharField(help_text="Whose days, weeks and clock the rules mean.")
    rules = RulesSerializer()
    quotas_of_lane = serializers.ListField(
        child=serializers.CharField(), help_text="Quotas that count this lane's bookings alone."
    )
    left = LeftSerializer()


class LanePolicyView(APIView):
    """The rules that hold for the asker on a lane."""

    read_scope = Scope.READ

    @extend_schema(responses=LanePolicySerializer)
    def get(self, request: Request, slug: str) -> Response:
        """What may be booked, and how much is left today and this week."""
        lane = get_object_or_404(Lane, slug=slug)
        standing = standing_of(cast(User, request.user), lane, clock.database_now())
        return Response(LanePolicySerializer(_shown(standing)).data)


def _shown(standing: Standing) -> dict[str, Any]:
    rules, used = standing.rules, standing.judge.used
    presets = None
    if rules.presets is not None:
        listed = Preset.objects.filter(pk__in=rules.presets).order_by("slug")
        presets = list(listed.values_list("slug", flat=True))
    names = [str(name) for name in RulesSerializer().get_fields() if name != "presets"]
    return {
        "lane": standing.lane.slug,
        "time_zone": str(used.zone),
        "rules": {name: getattr(rules, name) for name in names} | {"presets": presets},
        "quotas_of_lane": sorted(rules.of_lane),
        "left": left_of(rules, used, standing.now.astimezone(used.zone).date()),
    }
