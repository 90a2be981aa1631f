"""The tokens of the route table: those of programs, and those of one booking each."""

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models.functions import Greatest

from gateway import limits
from gateway.edge.table import SlotToken, TokenEntry
from gateway.models import ApiToken

_LIMITS = (
    "requests_per_minute",
    "tokens_per_minute",
    "owner__rate_limit__requests_per_minute",
    "owner__rate_limit__tokens_per_minute",
)


def read_tokens(now: datetime) -> dict[str, TokenEntry]:
    """The usable tokens by digest, without those of bookings; two queries."""
    lanes = defaultdict(list)
    opened = ApiToken.lanes.through.objects.order_by("lane__slug")
    for token_id, slug in opened.values_list("apitoken_id", "lane__slug"):
        lanes[token_id].append(slug)
    found = ApiToken.objects.usable(now).filter(booking=None).order_by("pk")
    rows = found.values_list("pk", "digest", "owner_id", "scopes", "expires_at", *_LIMITS)
    default = limits.default_limits()
    return {
        digest: TokenEntry(
            token_id=pk,
            owner_id=owner_id,
            scopes=tuple(scopes),
            lanes=tuple(lanes[pk]),
            expires_at=expires_at.timestamp() if expires_at is not None else None,
            **_limits(limited, default),
        )
        for pk, digest, owner_id, scopes, expires_at, *limited in rows
    }


def read_slot_tokens(now: datetime) -> dict[str, SlotToken]:
    """Those of confirmed bookings of the next days by digest: lane and times are the booking's.

    One query.
    """
    until = now + timedelta(days=settings.SLOTSERVE_TABLE_DAYS)
    found = ApiToken.objects.usable(now).filter(booking__start__lt=until).order_by("pk")
    active_from = Greatest("booking__start", "booking__confirmed_at")
    fields = ("pk", "digest", "owner_id", "scopes", "booking__lane__slug", active_from)
    rows = found.values_list(*fields, "booking__end", *_LIMITS)
    default = limits.default_limits()
    return {
        digest: SlotToken(
            token_id=pk,
            owner_id=owner_id,
            scopes=tuple(scopes),
            lanes=(slug,),
            starts_at=start.timestamp(),
            expires_at=end.timestamp(),
            **_limits(limited, default),
        )
        for pk, digest, owner_id, scopes, slug, start, end, *limited in rows
    }


def _limits(of_row: list[int | None], default: limits.RateLimits) -> dict[str, Any]:
    requests, tokens, own_requests, own_tokens = of_row
    return {
        "requests_per_minute": requests,
        "tokens_per_minute": tokens,
        "owner_requests_per_minute": limits.in_force(own_requests, default.requests_per_minute),
        "owner_tokens_per_minute": limits.in_force(own_tokens, default.tokens_per_minute),
    }
