"""/api/v1/me/preferences/: how the caller is told of things."""

from typing import Any, cast

from django.contrib.auth.models import User
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from gateway.models import Scope
from lanes.refusals import Refusal
from notices import preferences
from notices.events import FOR_ADMINISTRATORS, PERSONAL, Event
from notices.models import Preference
from slotserve.api.bodies import StrictBody
from slotserve.api.errors import refuse


class PreferencesSerializer(serializers.Serializer[Preference]):
    """What was chosen. `choices`: event -> the ways by which the caller is told of it."""

    zone = serializers.CharField()
    language = serializers.CharField()
    reminder_minutes = serializers.IntegerField()
    freed_minutes = serializers.IntegerField()
    freed_days = serializers.IntegerField()
    choices = serializers.SerializerMethodField()
    has_calendar = serializers.BooleanField(source="feed_digest")

    def get_choices(self, preference: Preference) -> dict[str, list[str]]:
        """Of every event, chosen or usual."""
        is_staff = preference.person.is_staff
        events = [event for event in Event if is_staff or event not in FOR_ADMINISTRATORS]
        return {
            event.value: sorted(preferences.channels_for(preference, event)) for event in events
        }


class PreferencesWriteSerializer(StrictBody):
    """What is to be other; what is left out stays."""

    kept = frozenset({"has_calendar"})
    zone = serializers.CharField(max_length=64, required=False, allow_blank=True)
    language = serializers.CharField(max_length=16, required=False, allow_blank=True)
    reminder_minutes = serializers.IntegerField(required=False)
    freed_minutes = serializers.IntegerField(required=False)
    freed_days = serializers.IntegerField(required=False)
    choices = serializers.DictField(
        required=False,
        child=serializers.ListField(child=serializers.ChoiceField([*map(str, PERSONAL)])),
    )


class PreferencesView(APIView):
    """The caller's preferences."""

    read_scope = Scope.READ
    write_scope = Scope.ADMIN
    is_for_members = True

    @extend_schema(responses=PreferencesSerializer)
    def get(self, request: Request) -> Response:
        """How the caller is told of things."""
        return _answer(preferences.preference_of(cast(User, request.user)))

    @extend_schema(request=PreferencesWriteSerializer, responses=PreferencesSerializer)
    def patch(self, request: Request) -> Response:
        """Change it."""
        asked = PreferencesWriteSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        saved = preferences.save(cast(User, request.user), cast(Any, asked.validated_data))
        return refuse(saved) if isinstance(saved, Refusal) else _answer(saved)


def _answer(preference: Preference) -> Response:
    return Response(PreferencesSerializer(preference).data)
