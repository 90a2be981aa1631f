"""/api/v1/hosts/, for administrators."""

from typing import Any, cast

from django.conf import settings
from django.contrib.auth.models import User
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import exceptions, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from bookings import deleting
from gateway.models import Scope
from lanes import clock, host_services, joining
from lanes.models import Host, HostReport, slug_validator
from lanes.refusals import NOT_ADMINISTRATOR, Refusal
from slotserve.api.bodies import StrictBody
from slotserve.api.errors import refuse
from slotserve.api.fields import ToldField
from slotserve.hosts import HostOverview, JoinTokenView, hosts_for_people, join_tokens, overview


class HostReportSerializer(serializers.ModelSerializer[HostReport]):
    """How a host is, as its worker said last. `clock_skew` is in seconds ahead of the database."""

    driver_words = serializers.CharField(source="told")

    class Meta:
        model = HostReport
        fields = (
            "at",
            "version",
            "machine",
            "clock_skew",
            "disk_free_bytes",
            "disk_total_bytes",
            "driver",
            "driver_words",
            "servers_run_as",
            "is_user_shared",
        )


class TroubleSerializer(serializers.Serializer[Any]):
    """One thing that is wrong, and what to do."""

    code = serializers.CharField()
    words = ToldField()
    hint = ToldField()


class HostSerializer(serializers.Serializer[HostOverview]):
    """A host. `state`: well, trouble, unreachable, or unknown before its first look."""

    key = serializers.CharField(source="host.key")
    name = serializers.CharField(source="host.name")
    address = serializers.CharField(source="host.address")
    state = serializers.ChoiceField(["well", "trouble", "unreachable", "unknown"])
    seen_at = serializers.DateTimeField(allow_null=True)
    unreachable_since = serializers.DateTimeField(source="host.unreachable_since", allow_null=True)
    lanes = serializers.ListField(source="lane_slugs", child=serializers.CharField())
    troubles = TroubleSerializer(many=True)
    report = HostReportSerializer(allow_null=True)


class HostWriteSerializer(StrictBody):
    """What may be said of a host. What is left out stays."""

    kept = frozenset({"key"})
    name = serializers.CharField(max_length=100, required=False)
    address = serializers.CharField(max_length=255, required=False)


class NewJoinTokenSerializer(StrictBody):
    """Which host a machine will be, and where its model servers will listen."""

    key = serializers.CharField(max_length=63, validators=[slug_validator])
    name = serializers.CharField(max_length=100, required=False, allow_blank=True, default="")
    address = serializers.CharField(max_length=255)
    minutes = serializers.IntegerField(
        required=False, default=joining.MINUTES, min_value=1, max_value=joining.MOST_MINUTES
    )


class NewlyMadeTokenSerializer(serializers.Serializer[Any]):
    """A join token: its text is shown this once. `note`: a warning of its address, or nothing."""

    id = serializers.IntegerField()
    token = serializers.CharField()
    key = serializers.CharField()
    expires_at = serializers.DateTimeField()
    note = serializers.CharField(allow_blank=True)


class JoinTokenSerializer(serializers.Serializer[JoinTokenView]):
    """A join token without its text. `state`: waiting, joining (used, and the host's worker has not
    looked since), used, revoked or expired."""

    id = serializers.IntegerField(source="token.pk")
    key = serializers.CharField(source="token.key")
    name = serializers.CharField(source="token.name")
    address = serializers.CharField(source="token.address")
    state = serializers.ChoiceField(["waiting", "joining", "used", "revoked", "expired"])
    made_by = serializers.CharField(source="token.made_by.username", default=None, allow_null=True)
    made_at = serializers.DateTimeField(source="token.made_at")
    expires_at = serializers.DateTimeField(source="token.expires_at")
    used_at = serializers.DateTimeField(source="token.used_at", allow_null=True)
    revoked_at = serializers.DateTimeField(source="token.revoked_at", allow_null=True)


class JoinSerializer(StrictBody):
    """A machine that wants to be a host. With a secret of its own (`machine`) it may ask again with
    the same token until its worker has looked. One that tells its `addresses` does not use a token
    that was made for another."""

    token = serializers.CharField(max_length=200)
    machine = serializers.CharField(max_length=200, required=False, default="", allow_blank=True)
    addresses = serializers.ListField(
        child=serializers.CharField(max_length=100), required=False, default=list, max_length=1000
    )


class JoinedHostSerializer(serializers.Serializer[Any]):
    """The host that it is now."""

    key = serializers.CharField()
    name = serializers.CharField()
    address = serializers.CharField()


class JoinedSerializer(serializers.Serializer[Any]):
    """What its worker needs, secrets among it."""

    host = JoinedHostSerializer()
    version = serializers.CharField()
    environment = serializers.DictField(child=serializers.CharField())


class JoinView(APIView):
    """For machines, which have no account: the join token is all they show."""

    authentication_classes = ()
    permission_classes = ()

    @extend_schema(request=JoinSerializer, responses=JoinedSerializer, auth=[])
    def post(self, request: Request) -> Response:
        """Exchange a join token for a host's settings; it works for one machine."""
        if settings.SLOTSERVE_HTTPS and not request.is_secure():
            return refuse(Refusal("needs_tls", _("Ask by https://…: passwords come back.")))
        asked = JoinSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        said = asked.validated_data
        joined = joining.join(said["token"], said["machine"], said["addresses"])
        if isinstance(joined, Refusal):
            return refuse(joined)
        return Response(JoinedSerializer(joined).data, headers={"Cache-Control": "no-store"})


class HostViewSet(viewsets.GenericViewSet[Host]):
    """Machines with GPUs: whether they are there, how they are (administrators)."""

    queryset = Host.objects.none()
    serializer_class = HostSerializer  # type: ignore[assignment]
    lookup_field = "key"
    lookup_value_regex = r"[a-z0-9][a-z0-9._-]*"
    read_scope = Scope.READ
    write_scope = Scope.ADMIN

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Hosts tell of the network and its machines: administrators alone."""
        super().initial(request, *args, **kwargs)
        if not request.user.is_staff:
            raise exceptions.PermissionDenied(NOT_ADMINISTRATOR.words, NOT_ADMINISTRATOR.code)

    def list(self, request: Request) -> Response:
        """Every host."""
        page = self.paginate_queryset(hosts_for_people()) or []
        shown = [HostSerializer(overview(host)).data for host in page]
        return self.get_paginated_response(shown)

    def retrieve(self, request: Request, key: str) -> Response:
        """One host."""
        return Response(self._shown(key))

    @extend_schema(request=HostWriteSerializer, responses=HostSerializer)
    def partial_update(self, request: Request, key: str) -> Response:
        """Change a host's name, or the address where its model servers listen from now on."""
        asked = HostWriteSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        saved = host_services.save_host(self._host(key), actor=self._actor, **asked.validated_data)
        return refuse(saved) if isinstance(saved, Refusal) else Response(self._shown(key))

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, key: str) -> Response:
        """Delete a host that has neither lanes nor presets."""
        refusal = deleting.delete_host(self._host(key), actor=self._actor)
        return refuse(refusal) if refusal else Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(responses=JoinTokenSerializer(many=True))
    @action(detail=False, url_path="join-tokens")
    def join_tokens(self, request: Request) -> Response:
        """The join tokens of the last month, the newest first, without their texts."""
        page = self.paginate_queryset(join_tokens(clock.database_now())) or []
        return self.get_paginated_response([JoinTokenSerializer(view).data for view in page])

    @extend_schema(request=NewJoinTokenSerializer, responses={201: NewlyMadeTokenSerializer})
    @join_tokens.mapping.post
    def make_join_token(self, request: Request) -> Response:
        """Make a token with which one machine becomes a host; its text is told this once."""
        asked = NewJoinTokenSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        made = joining.create_join_token(actor=self._actor, **asked.validated_data)
        if isinstance(made, Refusal):
            return refuse(made)
        token, text = made
        shown = {"id": token.pk, "token": text, "key": token.key, "expires_at": token.expires_at}
        shown |= {"note": host_services.note_on(token.address)}
        return Response(NewlyMadeTokenSerializer(shown).data, status=status.HTTP_201_CREATED)

    @extend_schema(responses={204: None})
    @action(detail=False, methods=["delete"], url_path=r"join-tokens/(?P<pk>\d{1,18})")
    def revoke_join_token(self, request: Request, pk: str) -> Response:
        """Revoke a join token; a machine that has used it keeps what it was told."""
        said = joining.revoke_join_token(int(pk), actor=self._actor)
        if isinstance(said, Refusal):
            return refuse(said)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @property
    def _actor(self) -> User:
        return cast(User, self.request.user)

    def _host(self, key: str) -> Host:
        return get_object_or_404(hosts_for_people(), key=key)

    def _shown(self, key: str) -> Any:
        return HostSerializer(overview(self._host(key))).data
