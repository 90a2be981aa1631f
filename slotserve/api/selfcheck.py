"""/api/v1/self-check/: for administrators, and for what watches over the installation."""

from dataclasses import asdict

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from gateway.models import Scope
from slotserve.selfcheck.findings import Level, has_trouble, verdict
from slotserve.selfcheck.service import self_check


class FindingSerializer(serializers.Serializer[object]):
    """One check's answer."""

    check = serializers.CharField()
    title = serializers.CharField()
    level = serializers.ChoiceField([(each.value, each.value) for each in Level])
    sentence = serializers.CharField()
    advice = serializers.CharField()


class SelfCheckSerializer(serializers.Serializer[object]):
    """All of them."""

    has_trouble = serializers.BooleanField()
    verdict = serializers.CharField()
    findings = FindingSerializer(many=True)


class SelfCheckView(APIView):
    """Whether the installation is in order."""

    read_scope = Scope.ADMIN

    @extend_schema(responses=SelfCheckSerializer)
    def get(self, request: Request) -> Response:
        """Every check with a sentence and what to do (administrators). Takes about a second."""
        findings = self_check()
        told = [asdict(finding) for finding in findings]
        answer = {"has_trouble": has_trouble(findings), "verdict": verdict(findings)}
        return Response({**answer, "findings": told})
