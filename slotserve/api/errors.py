"""Every refusal as `{"code", "detail", …}`; codes are for programs, details for people."""

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import RequestDataTooBig
from rest_framework import exceptions, status
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.views import exception_handler

from bookings.deleting import InTheWay
from bookings.refusals import BrokenRule, Interval, Offering, RulesBroken
from lanes.plain_words import plain
from lanes.refusals import Refusal
from slotserve.database_refusals import refusal_of

STATUS_OF = {
    "not_found": status.HTTP_404_NOT_FOUND,
    "series_clash": status.HTTP_409_CONFLICT,
    "slot_taken": status.HTTP_409_CONFLICT,
    "rules_broken": status.HTTP_422_UNPROCESSABLE_ENTITY,
    "maintenance": status.HTTP_409_CONFLICT,
    "wrong_state": status.HTTP_409_CONFLICT,
    "changed": status.HTTP_409_CONFLICT,
    "asks_again": status.HTTP_409_CONFLICT,
    "too_late": status.HTTP_409_CONFLICT,
    "lane_disabled": status.HTTP_409_CONFLICT,
    "not_free": status.HTTP_409_CONFLICT,
    "is_owner": status.HTTP_409_CONFLICT,
    "exists": status.HTTP_409_CONFLICT,
    "in_use": status.HTTP_409_CONFLICT,
    "archived": status.HTTP_409_CONFLICT,
    "has_history": status.HTTP_409_CONFLICT,
    "host_lives": status.HTTP_409_CONFLICT,
    "host_joining": status.HTTP_409_CONFLICT,
    "not_its_address": status.HTTP_409_CONFLICT,
    "last_administrator": status.HTTP_409_CONFLICT,
    "not_yourself": status.HTTP_409_CONFLICT,
    "name_taken": status.HTTP_409_CONFLICT,
    "owner_inactive": status.HTTP_409_CONFLICT,
    "not_for_others": status.HTTP_409_CONFLICT,
    "bad_join_token": status.HTTP_403_FORBIDDEN,
    "needs_tls": status.HTTP_403_FORBIDDEN,
    "not_yours": status.HTTP_403_FORBIDDEN,
    "not_administrator": status.HTTP_403_FORBIDDEN,
    "needs_approval": status.HTTP_403_FORBIDDEN,
    "busy": status.HTTP_503_SERVICE_UNAVAILABLE,
    "host_unreachable": status.HTTP_503_SERVICE_UNAVAILABLE,
    "broker_away": status.HTTP_503_SERVICE_UNAVAILABLE,
}

MOST_CONFLICTS = 20  # told of one refusal: a slot of months may be in thousands of others' way


def refuse(refusal: Refusal) -> Response:
    """A service's refusal as an answer; what is not listed is the caller's mistake: 400."""
    code = STATUS_OF.get(refusal.code, status.HTTP_400_BAD_REQUEST)
    headers = {"Retry-After": "1"} if code == status.HTTP_503_SERVICE_UNAVAILABLE else None
    return Response(refusal_body(refusal), status=code, headers=headers)


def refusal_body(refusal: Refusal) -> dict[str, Any]:
    """A refusal as JSON has it."""
    body: dict[str, Any] = {"code": refusal.code, "detail": refusal.words}
    if isinstance(refusal, RulesBroken):
        body["broken"] = [_broken(rule) for rule in refusal.broken]
    if isinstance(refusal, Offering):
        body["conflicts"] = [_interval(i) for i in refusal.conflicts[:MOST_CONFLICTS]]
        body["nearest"] = [_interval(i) for i in refusal.nearest]
        if refusal.hold:
            body["held"] = {**_interval(refusal.hold.slot), "until": refusal.hold.until}
    if isinstance(refusal, InTheWay):
        body |= {"runtimes": refusal.runtime_ids, "bookings": refusal.booking_ids}
    return body


def answer_error(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """DRF's exception handler: one shape for all, and nothing a client sends is a 500."""
    refusal = refusal_of(error, _address(context))
    if refusal is not None:
        return refuse(refusal)
    if isinstance(error, RequestDataTooBig):
        body = {"code": "request_too_large", "detail": "This body is too large for this address."}
        return Response(body, status=status.HTTP_413_REQUEST_ENTITY_TOO_LARGE)
    response = exception_handler(error, dict(context))
    if response is None:
        return None
    if isinstance(error, exceptions.ValidationError):
        response.data = _invalid(error)
    else:
        detail = getattr(error, "detail", None) or response.data.get("detail", "")
        code = getattr(detail, "code", "error")
        response.data = {"code": code, "detail": plain(str(detail))}
    return response


def _address(context: Mapping[str, Any]) -> str:
    request = context.get("request")
    return request.path if request else ""


def _invalid(error: exceptions.ValidationError) -> dict[str, Any]:
    detail: Any = error.detail
    if isinstance(detail, Mapping) and set(detail) == {api_settings.NON_FIELD_ERRORS_KEY}:
        detail = detail[api_settings.NON_FIELD_ERRORS_KEY]  # it is of the whole body
    if isinstance(detail, Mapping):
        fields = {str(name): _words(value) for name, value in detail.items()}
        words = " ".join(f"{name}: {text}" for name, text in fields.items())
        return {"code": "invalid", "detail": words, "fields": fields}
    return {"code": "invalid", "detail": _words(detail)}


def _words(value: object) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_words(text)}" for name, text in value.items())
    if isinstance(value, list):
        return " ".join(_words(text) for text in value)
    return plain(str(value))


def _interval(interval: Interval) -> dict[str, Any]:
    shown = {"start": interval.start, "end": interval.end, "booking": interval.booking_id}
    return shown | ({"now": True} if interval.is_now else {})


def _broken(rule: BrokenRule) -> dict[str, Any]:
    """A rule with its numbers, in the units that docs/api.md names."""
    broken = rule.broken
    numbers = {"limit": broken.limit, "used": broken.used, "asked": broken.asked}
    return {"code": broken.code.value, "detail": rule.words, **numbers, "day": broken.day}
