"""Lanes as JSON."""

from typing import Any

from rest_framework import serializers

from bookings.models import Booking
from lanes.failures.causes import Kind
from lanes.models import Gpu, Host, LaneEvent, Preset, slug_validator
from slotserve.api.bodies import StrictBody
from slotserve.api.fields import AwareDateTimeField, NameField
from slotserve.names import names_of
from slotserve.overview import LaneOverview


class GpuSerializer(serializers.ModelSerializer[Gpu]):
    """A card."""

    class Meta:
        model = Gpu
        fields = ("uuid", "name", "memory_bytes")


class DecisionSerializer(serializers.Serializer[Any]):
    """What the planner wants of a lane, and why."""

    rule = serializers.IntegerField()
    sentence = serializers.CharField(source="told")
    target = serializers.CharField(source="target.preset.slug", default=None, allow_null=True)
    generation = serializers.IntegerField()
    is_fallback = serializers.BooleanField()
    reconsider_at = serializers.DateTimeField(allow_null=True)


class SlotSerializer(serializers.ModelSerializer[Booking]):
    """A booking as its lane shows it."""

    owner = NameField(source="owner.username")
    preset = serializers.CharField(source="preset.slug", default=None, allow_null=True)

    class Meta:
        model = Booking
        fields = ("id", "owner", "kind", "preset", "start", "end")


class FailureSerializer(serializers.Serializer[Any]):
    """Why what is wanted does not run, what to try, and when it is tried again."""

    preset = serializers.CharField(source="revision.preset.slug")
    kind = serializers.ChoiceField(choices=[kind.value for kind in Kind])
    sentence = serializers.CharField()
    line = serializers.CharField(
        help_text="of the log or the kernel that it was read in: for administrators alone"
    )
    advice = serializers.CharField()
    count = serializers.IntegerField()
    retry_at = serializers.DateTimeField(allow_null=True)
    is_fallback = serializers.BooleanField()


class RuntimeSerializer(serializers.Serializer[LaneOverview]):
    """The model server and what it can do; pid and port for administrators alone."""

    phase = serializers.CharField()
    preset = serializers.CharField(
        source="runtime.revision.preset.slug", default=None, allow_null=True
    )
    generation = serializers.IntegerField(
        source="runtime.generation", default=None, allow_null=True
    )
    since = serializers.DateTimeField(source="runtime.phase_since", default=None, allow_null=True)
    progress = serializers.FloatField(allow_null=True)
    eta = serializers.DateTimeField(allow_null=True)
    slots = serializers.IntegerField(source="runtime.slots", default=None, allow_null=True)
    context_length = serializers.IntegerField(
        source="runtime.context_length", default=None, allow_null=True
    )
    capabilities = serializers.ListField(
        source="runtime.capabilities", child=serializers.CharField(), default=list
    )
    reason = serializers.CharField()
    failure = FailureSerializer(source="trouble", allow_null=True)
    pid = serializers.IntegerField(source="runtime.pid", default=None, allow_null=True)
    port = serializers.IntegerField(source="runtime.port", default=None, allow_null=True)

    def to_representation(self, instance: LaneOverview) -> dict[str, Any]:
        """Without pid and port for those who cannot use them rightly."""
        shown = dict(super().to_representation(instance))
        if not self.context.get("is_administrator"):
            del shown["pid"], shown["port"]
        return shown


class LaneOverviewSerializer(serializers.Serializer[LaneOverview]):
    """A lane with its decision, bookings and runtime."""

    slug = serializers.CharField(source="lane.slug")
    name = serializers.CharField(source="lane.name")
    host = serializers.CharField(source="lane.host.key")
    unreachable_since = serializers.DateTimeField(source="lane.host.unreachable_since")
    enabled = serializers.BooleanField(source="lane.enabled")
    needs_approval = serializers.BooleanField(source="lane.needs_approval")
    default = serializers.CharField(
        source="lane.default_preset.slug", default=None, allow_null=True
    )
    warnings = serializers.ListField(child=serializers.CharField())  # about the default
    gpus = GpuSerializer(source="lane.gpus.all", many=True)
    decision = DecisionSerializer(source="order", allow_null=True)
    booking = SlotSerializer(allow_null=True)
    next = SlotSerializer(source="next_booking", allow_null=True)
    runtime = RuntimeSerializer(source="*")


class LaneWriteSerializer(StrictBody):
    """What an administrator says of a lane. With PATCH what is left out stays."""

    slug = serializers.CharField(max_length=63, validators=[slug_validator])
    name = serializers.CharField(max_length=100, required=False)
    host = serializers.SlugRelatedField(slug_field="key", queryset=Host.objects.all())
    gpus = serializers.SlugRelatedField(
        slug_field="uuid", queryset=Gpu.objects.all(), many=True, required=False
    )
    default = serializers.SlugRelatedField(
        slug_field="slug", queryset=Preset.objects.all(), required=False, allow_null=True
    )
    enabled = serializers.BooleanField(required=False)
    needs_approval = serializers.BooleanField(required=False)
    restart_on_owner_change = serializers.BooleanField(required=False)


class ChooseSerializer(StrictBody):
    """A manual target until a time; preset null unloads."""

    preset = serializers.SlugRelatedField(
        slug_field="slug", queryset=Preset.objects.all(), allow_null=True
    )
    until = AwareDateTimeField()


class ChosenSerializer(serializers.Serializer[Any]):
    """When a choice takes effect and ends."""

    preset = serializers.CharField(allow_null=True)
    ends_at = serializers.DateTimeField()
    detail = serializers.CharField()


class EventSerializer(serializers.ModelSerializer[LaneEvent]):
    """A sentence about a lane."""

    sentence = serializers.SerializerMethodField()
    actor = NameField(source="actor.username", default=None)

    class Meta:
        model = LaneEvent
        fields = ("at", "kind", "sentence", "actor")

    def get_sentence(self, event: LaneEvent) -> str:
        """With the names that the caller is shown."""
        return names_of(self.context["request"]).told(event)


class ExplainSerializer(serializers.Serializer[Any]):
    """The facts and the decision as text."""

    text = serializers.CharField()


class DetailSerializer(serializers.Serializer[Any]):
    """A sentence about what was done."""

    detail = serializers.CharField()
