"""/api/v1/audit/: who changed what."""

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import mixins, serializers, viewsets

from gateway.models import Scope
from lanes.audit import changes_of
from lanes.models import AuditEntry
from slotserve.audit_question import NAMES, read_audit_question


class AuditEntrySerializer(serializers.ModelSerializer[AuditEntry]):
    """One change; `actor` is a user name, empty for SlotServe itself."""

    actor = serializers.CharField(source="actor_name")
    name = serializers.CharField(source="subject_name")
    sentence = serializers.CharField(source="told")
    changes = serializers.SerializerMethodField()

    class Meta:
        model = AuditEntry
        fields = ("id", "at", "actor", "kind", "subject", "name", "sentence", "changes")

    def get_changes(self, entry: AuditEntry) -> list[dict[str, str]]:
        """From what to what, field by field: `name`, `label`, `old`, `new`."""
        return [
            {"name": each.name, "label": each.label, "old": each.old, "new": each.new}
            for each in changes_of(entry)
        ]


@extend_schema_view(list=extend_schema(parameters=[OpenApiParameter(name, str) for name in NAMES]))
class AuditViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[AuditEntry]
):
    """The audit trail, the newest first; for administrators."""

    queryset = AuditEntry.objects.none()
    serializer_class = AuditEntrySerializer
    lookup_value_regex = r"\d{1,18}"
    read_scope = Scope.ADMIN
    filters = NAMES

    def get_queryset(self) -> QuerySet[AuditEntry]:
        """What was asked for."""
        values = {name: str(value) for name, value in self.request.query_params.items()}
        asked = read_audit_question(values if self.action == "list" else {})
        if asked.errors:
            raise serializers.ValidationError(dict(asked.errors))
        return asked.entries
