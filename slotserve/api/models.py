"""/api/v1/models/ and /api/v1/model-folders/."""

from typing import Any, cast

from django.contrib.auth.models import User
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.models import Scope
from lanes.catalogue import registering
from lanes.catalogue.offering import preset_of
from lanes.catalogue.reading import models_for_people, preset_slugs
from lanes.fitting import lanes_too_small
from lanes.models import Host, Lane, ModelFile, ModelFolder, Preset, slug_validator
from lanes.refusals import Refusal
from slotserve.api.bodies import StrictBody
from slotserve.api.errors import refuse
from slotserve.api.lane_serializers import DetailSerializer
from slotserve.api.presets import PresetSerializer


class ModelFileSerializer(StrictBody, serializers.ModelSerializer[ModelFile]):
    """A model that a host can load, and what its header says; null: it does not say."""

    host = serializers.SlugRelatedField(slug_field="key", queryset=Host.objects.all())
    warning = serializers.CharField(read_only=True, help_text="What is wrong with it; empty: fine.")
    sha256 = serializers.DictField(
        read_only=True,
        child=serializers.CharField(),
        help_text="Of each file that holds weights, by name; empty until all are known.",
    )
    has_projector = serializers.SerializerMethodField()
    presets = serializers.SerializerMethodField()
    larger_than_gpu_memory_of = serializers.SerializerMethodField()

    class Meta:
        model = ModelFile
        read_only_fields = (
            "size_bytes",
            "kind",
            "parts",
            "architecture",
            "parameters",
            "quantisation",
            "context_length",
            "vocabulary_size",
            "has_chat_template",
            "missing_since",
        )
        fields = (
            "id",
            "host",
            "path",
            "name",
            *read_only_fields,
            "has_projector",
            "warning",
            "sha256",
            "presets",
            "larger_than_gpu_memory_of",
        )
        validators: list[Any] = []  # the service has the words

    def get_has_projector(self, file: ModelFile) -> bool:
        """Whether there is a projector for images or sound beside it."""
        return bool(file.projector_path)

    def get_presets(self, file: ModelFile) -> list[str]:
        """The presets of this model."""
        return preset_slugs(file)

    def get_larger_than_gpu_memory_of(self, file: ModelFile) -> list[str]:
        """Lanes of its host whose GPU memory is smaller than its files: it may not load there."""
        return [lane.slug for lane in lanes_too_small(self.context["lanes"], file)]

    def to_representation(self, instance: ModelFile) -> dict[str, Any]:
        """Paths tell of the host: for administrators alone."""
        shown = dict(super().to_representation(instance))
        if not self.context["request"].user.is_staff:
            del shown["path"]
        return shown


class RegisteredModelSerializer(ModelFileSerializer):
    """A model that was registered just now, and what speaks against it in sentences."""

    warnings = serializers.ListField(child=serializers.CharField(), read_only=True)

    class Meta(ModelFileSerializer.Meta):
        fields = (*ModelFileSerializer.Meta.fields, "warnings")  # type: ignore[assignment]


class ModelFolderSerializer(StrictBody, serializers.ModelSerializer[ModelFolder]):
    """A folder that its host's worker looks through."""

    host = serializers.SlugRelatedField(slug_field="key", queryset=Host.objects.all())
    trouble = serializers.CharField(source="told", read_only=True)

    class Meta:
        model = ModelFolder
        read_only_fields = ("scanned_at", "found", "trouble")
        fields = ("id", "host", "path", *read_only_fields)
        validators: list[Any] = []  # the service has the words


class OfHostSerializer(StrictBody):
    """A host."""

    host = serializers.SlugRelatedField(slug_field="key", queryset=Host.objects.all())


class PresetNameSerializer(StrictBody):
    """A name for a preset; left out: one like the model's."""

    slug = serializers.CharField(max_length=63, required=False, validators=[slug_validator])


class ModelFileViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[ModelFile]
):
    """Models that hosts know."""

    queryset = models_for_people()
    serializer_class = ModelFileSerializer
    lookup_value_regex = r"\d{1,18}"
    read_scope = Scope.READ
    write_scope = Scope.ADMIN

    def get_serializer_context(self) -> dict[str, Any]:
        """The lanes, read once for the whole answer."""
        lanes = Lane.objects.prefetch_related("gpus").order_by("slug")
        return {**super().get_serializer_context(), "lanes": lanes}

    @extend_schema(request=ModelFileSerializer, responses={201: RegisteredModelSerializer})
    def create(self, request: Request) -> Response:
        """Register a file or folder of a host by hand (administrators)."""
        asked = ModelFileSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        made = registering.register_model_file(actor=self._actor, **asked.validated_data)
        if isinstance(made, Refusal):
            return refuse(made)
        shown = self.get_serializer(self.queryset.get(pk=made.pk)).data
        answer = {**shown, "warnings": registering.doubts(made)}
        return Response(answer, status=status.HTTP_201_CREATED)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Strike off a model that no preset uses; the file stays (administrators)."""
        refusal = registering.forget_model_file(self.get_object(), actor=self._actor)
        return refuse(refusal) if refusal else Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(request=PresetNameSerializer, responses={201: PresetSerializer})
    @action(detail=True, methods=["post"])
    def preset(self, request: Request, pk: str) -> Response:
        """Make a preset of this model, with arguments that fit its facts (administrators)."""
        asked = PresetNameSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        saved = preset_of(self.get_object(), actor=self._actor, **asked.validated_data)
        if isinstance(saved, Refusal):
            return refuse(saved)
        made = Preset.objects.select_related("current__model_file__host__llama_server")
        context = self.get_serializer_context()
        shown = PresetSerializer(made.get(pk=saved.revision.preset_id), context=context)
        return Response(shown.data, status=status.HTTP_201_CREATED)

    @extend_schema(request=OfHostSerializer, responses={202: DetailSerializer})
    @action(detail=False, methods=["post"])
    def rescan(self, request: Request) -> Response:
        """Have a host look through its folders now and read every header anew (administrators)."""
        asked = OfHostSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        host = asked.validated_data["host"]
        refusal = registering.rescan(host, actor=self._actor)
        if refusal:
            return refuse(refusal)
        words = f"{host.name} is looking through its folders."
        return Response({"detail": words}, status=status.HTTP_202_ACCEPTED)

    @property
    def _actor(self) -> User:
        return cast(User, self.request.user)


class ModelFolderViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[ModelFolder]
):
    """Folders that are looked through for models: for administrators."""

    queryset = ModelFolder.objects.select_related("host").order_by("host__key", "path")
    serializer_class = ModelFolderSerializer
    lookup_value_regex = r"\d{1,18}"
    read_scope = write_scope = Scope.ADMIN

    @extend_schema(request=ModelFolderSerializer, responses={201: ModelFolderSerializer})
    def create(self, request: Request) -> Response:
        """Have a folder looked through from now on."""
        asked = ModelFolderSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        made = registering.add_folder(actor=self._actor, **asked.validated_data)
        if isinstance(made, Refusal):
            return refuse(made)
        return Response(self.get_serializer(made).data, status=status.HTTP_201_CREATED)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Look through it no longer; models that no preset uses are forgotten."""
        refusal = registering.remove_folder(self.get_object(), actor=self._actor)
        return refuse(refusal) if refusal else Response(status=status.HTTP_204_NO_CONTENT)

    @property
    def _actor(self) -> User:
        return cast(User, self.request.user)
