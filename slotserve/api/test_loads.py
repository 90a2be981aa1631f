"""/api/v1/test-loads/: how test loads went; presets begin them."""

from typing import Any, cast

from django.contrib.auth.models import User
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from bookings import test_loads
from gateway.models import Scope
from lanes import presets
from lanes.models import Lane, Preset, TestLoad
from lanes.refusals import Refusal
from slotserve.api.bodies import check_empty
from slotserve.api.errors import refuse
from slotserve.api.preset_previews import PreviewWriteSerializer


class TestLoadWriteSerializer(PreviewWriteSerializer):
    """What is tried, and where; what is left out is as the preset's newest revision says."""

    __test__ = False
    lane = serializers.SlugRelatedField(
        slug_field="slug", queryset=Lane.objects.select_related("host")
    )


class TestLoadSerializer(serializers.ModelSerializer[TestLoad]):
    """A test load. `outcome` is running, passed, failed, interrupted or stopped."""

    __test__ = False
    lane = serializers.CharField(source="lane.slug")
    preset = serializers.CharField(source="revision.preset.slug")
    revision = serializers.IntegerField(source="revision.number")
    is_draft = serializers.BooleanField(source="revision.is_draft")
    asked_by = serializers.CharField(source="asked_by.username", default=None, allow_null=True)
    outcome = serializers.SerializerMethodField()

    class Meta:
        model = TestLoad
        fields = (
            "id",
            "lane",
            "preset",
            "revision",
            "is_draft",
            "asked_at",
            "asked_by",
            "outcome",
            "ended_at",
            "load_seconds",
            "tokens",
            "tokens_per_second",
            "trial_note",
            "reason",
            "advice",
        )

    def get_outcome(self, test: TestLoad) -> str:
        """A word for programs."""
        return test.outcome or "running"


class TestLoadViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[TestLoad]
):
    """Test loads, the newest first (administrators)."""

    __test__ = False
    queryset = TestLoad.objects.select_related("lane__host", "revision__preset", "asked_by")
    serializer_class = TestLoadSerializer
    lookup_value_regex = r"\d{1,18}"
    read_scope = Scope.ADMIN
    write_scope = Scope.ADMIN

    @extend_schema(request=None, responses=TestLoadSerializer)
    @action(detail=True, methods=["post"])
    def stop(self, request: Request, pk: str) -> Response:
        """End a test that runs."""
        check_empty(request)
        refusal = test_loads.stop(self.get_object(), actor=cast(User, request.user))
        return refuse(refusal) if refusal else Response(self.get_serializer(self.get_object()).data)


def begun(preset: Preset, wish: dict[str, Any], actor: User) -> TestLoad | Refusal:
    """A test of what such a body says."""
    lane = wish.pop("lane")
    said = {**presets.as_said(preset), **wish}
    file = said.pop("model_id", None) or said.pop("model_file")
    for name in ("model_file", "name"):
        said.pop(name, None)
    return test_loads.try_out(lane, preset, file, actor=actor, **said)
