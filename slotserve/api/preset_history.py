"""A preset's revisions and clones as JSON."""

from typing import Any

from rest_framework import serializers

from lanes.models import slug_validator
from lanes.preset_history import FIELDS, Change
from slotserve.api.bodies import StrictBody
from slotserve.api.fields import NameField
from slotserve.preset_page import RevisionRow


class PresetCloneSerializer(StrictBody):
    """What a clone is called; without a slug it gets a free one."""

    slug = serializers.CharField(max_length=63, validators=[slug_validator], required=False)
    name = serializers.CharField(max_length=100, required=False)


class ChangeSerializer(serializers.Serializer[Change]):
    """One difference; null: it was not there before, or is not there any more."""

    field = serializers.ChoiceField(choices=sorted(FIELDS))
    name = serializers.CharField(help_text="of a flag, variable or option")
    old = serializers.CharField(allow_null=True)
    new = serializers.CharField(allow_null=True)


class RevisionSerializer(serializers.Serializer[RevisionRow]):
    """A revision and what it changed; names and values for administrators alone."""

    number = serializers.IntegerField(source="revision.number")
    created_at = serializers.DateTimeField(source="revision.created_at")
    created_by = NameField(source="revision.created_by.username", default=None)
    is_first = serializers.BooleanField()
    changes = ChangeSerializer(many=True)

    def to_representation(self, instance: RevisionRow) -> dict[str, Any]:
        """To members only what was changed: arguments may tell of the host."""
        shown = dict(super().to_representation(instance))
        if not self.context["request"].user.is_staff:
            areas = dict.fromkeys(change.field for change in instance.changes)
            hidden = {"name": "", "old": None, "new": None}
            shown["changes"] = [{"field": area, **hidden} for area in areas]
        return shown
