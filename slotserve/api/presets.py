"""/api/v1/presets/."""

from collections.abc import Callable
from typing import Any, cast

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from drf_spectacular.utils import (
    OpenApiParameter,
    extend_schema,
    extend_schema_view,
)
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from bookings import deleting
from gateway.models import Scope
from lanes import presets
from lanes.catalogue.offering import clone
from lanes.engines.well_formed import MOST_IMAGE
from lanes.fitting import lanes_too_small
from lanes.models import Engine, Lane, ModelFile, Preset, slug_validator
from lanes.preset_notes import notes_of
from lanes.refusals import Refusal
from slotserve.api.bodies import StrictBody, check_empty
from slotserve.api.errors import refuse
from slotserve.api.fields import is_true
from slotserve.api.preset_fields import OptionsField, TextsField, VariablesField
from slotserve.api.preset_history import PresetCloneSerializer, RevisionSerializer
from slotserve.api.preset_previews import PreviewSerializer, PreviewWriteSerializer, previewed
from slotserve.api.test_loads import TestLoadSerializer, TestLoadWriteSerializer, begun
from slotserve.preset_page import history


class PresetSerializer(serializers.ModelSerializer[Preset]):
    """A preset as its newest revision says."""

    revision = serializers.IntegerField(source="current.number")
    model = serializers.CharField(source="current.model_file.name")
    model_id = serializers.IntegerField(source="current.model_file_id")
    engine = serializers.CharField(source="current.engine")
    arguments = serializers.ListField(source="current.arguments", child=serializers.CharField())
    environment = serializers.DictField(source="current.environment", child=serializers.CharField())
    options = OptionsField(source="current.options")
    image = serializers.CharField(source="current.image")
    notes = serializers.SerializerMethodField()
    aliases = serializers.ListField(source="current.aliases", child=serializers.CharField())
    larger_than_gpu_memory_of = serializers.SerializerMethodField()
    warning = serializers.CharField(
        source="current.model_file.warning",
        help_text="What is wrong with the model's file; empty when nothing is known to be.",
    )

    class Meta:
        model = Preset
        fields = (
            "slug",
            "name",
            "archived_at",
            "revision",
            "model",
            "model_id",
            "engine",
            "arguments",
            "environment",
            "options",
            "image",
            "notes",
            "aliases",
            "larger_than_gpu_memory_of",
            "warning",
        )

    def get_notes(self, preset: Preset) -> list[str]:
        """What was left out of it, and what its host's program makes of its arguments."""
        return notes_of(preset)

    def get_larger_than_gpu_memory_of(self, preset: Preset) -> list[str]:
        """Lanes of its host whose GPU memory is smaller than its file: it may not load there."""
        file = preset.current.model_file if preset.current else None
        return [lane.slug for lane in lanes_too_small(self.context["lanes"], file)] if file else []

    def to_representation(self, instance: Preset) -> dict[str, Any]:
        """Arguments and environment may tell of the host: for administrators alone."""
        shown = dict(super().to_representation(instance))
        if not self.context["request"].user.is_staff:
            for name in ("arguments", "environment", "options", "image", "notes"):
                del shown[name]
        return shown


class PresetWriteSerializer(StrictBody):
    """What an administrator says of a preset. With PATCH what is left out stays."""

    slug = serializers.CharField(max_length=63, validators=[slug_validator])
    name = serializers.CharField(max_length=100, required=False)
    model_id = serializers.PrimaryKeyRelatedField(queryset=ModelFile.objects.listed())
    engine = serializers.ChoiceField(choices=Engine.choices, required=False)
    arguments = TextsField(
        required=False, help_text="Of the program, one a text: never a line for a shell."
    )
    environment = VariablesField(required=False, help_text="Variables and their values.")
    options = OptionsField(required=False)
    image = serializers.CharField(max_length=MOST_IMAGE, required=False, allow_blank=True)
    aliases = TextsField(required=False, help_text="Other names that callers may use.")


KEEPS_ITS_NAME = "A preset keeps its name, which callers use: make a new one for another."
ARCHIVED = OpenApiParameter("archived", bool, description="those that are archived instead")


@extend_schema_view(list=extend_schema(parameters=[ARCHIVED]))
class PresetViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Preset]
):
    """Presets; administrators make and edit them, each edit being a new revision."""

    queryset = Preset.objects.filter(current__isnull=False).select_related(
        "current__model_file__host__llama_server"
    )
    serializer_class = PresetSerializer
    lookup_field = "slug"
    lookup_value_regex = r"[a-z0-9][a-z0-9._-]*"
    read_scope = Scope.READ
    write_scope = Scope.ADMIN
    filters = ("archived",)

    def get_queryset(self) -> QuerySet[Preset]:
        """Of a list those that are offered, or with `archived=true` those that are not."""
        if self.action != "list":
            return self.queryset
        is_archived = is_true(self.request.query_params.get("archived", ""))
        return self.queryset.filter(archived_at__isnull=not is_archived)

    def get_serializer_context(self) -> dict[str, Any]:
        """The lanes, read once for the whole answer."""
        lanes = Lane.objects.prefetch_related("gpus").order_by("slug")
        return {**super().get_serializer_context(), "lanes": lanes}

    @extend_schema(request=PresetWriteSerializer, responses={201: PresetSerializer})
    def create(self, request: Request) -> Response:
        """Make a preset; `notes` says which arguments were left out, and why."""
        asked = PresetWriteSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        if Preset.objects.filter(slug=asked.validated_data["slug"]).exists():
            taken = _("A preset of this name exists: edit it, or take another name.")
            return refuse(Refusal("invalid", taken))
        return self._save(asked.validated_data, status.HTTP_201_CREATED)

    @extend_schema(request=PresetWriteSerializer, responses=PresetSerializer)
    def partial_update(self, request: Request, slug: str) -> Response:
        """Edit a preset: a new revision, which a running booking sees only by a reload."""
        preset = self.get_object()
        asked = PresetWriteSerializer(data=request.data, partial=True)
        asked.is_valid(raise_exception=True)
        if asked.validated_data.get("slug", slug) != slug:
            raise serializers.ValidationError({"slug": KEEPS_ITS_NAME})
        return self._save({**presets.as_said(preset), **asked.validated_data, "slug": slug})

    @extend_schema(request=None, responses=PresetSerializer)
    @action(detail=True, methods=["post"])
    def archive(self, request: Request, slug: str) -> Response:
        """Offer a preset no more; its history is kept. 409 with what stands in the way."""
        return self._changed(deleting.archive_preset)

    @extend_schema(request=None, responses=PresetSerializer)
    @action(detail=True, methods=["post"], url_path="bring-back")
    def bring_back(self, request: Request, slug: str) -> Response:
        """Offer an archived preset again."""
        return self._changed(deleting.bring_back_preset)

    @extend_schema(responses=RevisionSerializer(many=True))
    @action(detail=True, pagination_class=None, filters=())
    def revisions(self, request: Request, slug: str) -> Response:
        """The newest revisions, the newest first, and what each changed."""
        rows = history(self.get_object())
        context = self.get_serializer_context()
        return Response([RevisionSerializer(row, context=context).data for row in rows])

    @extend_schema(request=PresetCloneSerializer, responses={201: PresetSerializer})
    @action(detail=True, methods=["post"])
    def clone(self, request: Request, slug: str) -> Response:
        """Make a preset that says the same under another name (administrators)."""
        preset = self.get_object()
        asked = PresetCloneSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        saved = clone(preset, actor=cast(User, request.user), **asked.validated_data)
        if isinstance(saved, Refusal):
            return refuse(saved)
        return Response(self._shown(saved.revision.preset_id), status=status.HTTP_201_CREATED)

    @extend_schema(request=PreviewWriteSerializer, responses=PreviewSerializer)
    @action(detail=True, methods=["post"])
    def preview(self, request: Request, slug: str) -> Response:
        """What its host would start for what is said; nothing is saved (administrators)."""
        asked = PreviewWriteSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        shown = previewed(self.get_object(), asked.validated_data)
        return refuse(shown) if isinstance(shown, Refusal) else Response(shown)

    @extend_schema(request=TestLoadWriteSerializer, responses={201: TestLoadSerializer})
    @action(detail=True, methods=["post"], url_path="test-load")
    def test_load(self, request: Request, slug: str) -> Response:
        """Have a free lane load what is said, measure it and go back (administrators)."""
        preset = self.get_object()
        asked = TestLoadWriteSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        test = begun(preset, asked.validated_data, cast(User, request.user))
        if isinstance(test, Refusal):
            return refuse(test)
        return Response(TestLoadSerializer(test).data, status=status.HTTP_201_CREATED)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, slug: str) -> Response:
        """Delete a preset that neither runs nor is booked."""
        actor = cast(User, request.user)
        refusal = deleting.delete_preset(self.get_object(), actor=actor)
        return refuse(refusal) if refusal else Response(status=status.HTTP_204_NO_CONTENT)

    def _changed(self, service: Callable[..., Refusal | None]) -> Response:
        check_empty(self.request)
        preset = self.get_object()
        refusal = service(preset, actor=cast(User, self.request.user))
        return refuse(refusal) if refusal else Response(self._shown(preset.pk))

    def _shown(self, pk: int) -> Any:
        return self.get_serializer(self.queryset.get(pk=pk)).data

    def _save(self, wish: dict[str, Any], code: int = status.HTTP_200_OK) -> Response:
        model_file = wish.pop("model_id", None) or wish.pop("model_file")
        wish.pop("model_file", None)
        actor = cast(User, self.request.user)
        saved = presets.save_preset(model_file=model_file, actor=actor, **wish)
        if isinstance(saved, Refusal):
            return refuse(saved)
        return Response(self._shown(saved.revision.preset_id), status=code)
