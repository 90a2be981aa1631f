"""Rate limits of tokens and of people: requests and tokens a minute."""

from dataclasses import dataclass

from gateway.edge import buckets
from gateway.edge.buckets import Bucket, Full, Limit
from gateway.edge.clock import EdgeClock
from gateway.edge.refusals import EdgeRefusal, refuse
from gateway.edge.table import TokenEntry


@dataclass(frozen=True, slots=True)
class _Account:
    """The limits that requests of one token meet, by the table in force."""

    entry: TokenEntry
    limits: tuple[Limit, ...]


class Limits:
    """Counts requests and tokens against what their token and its owner may."""

    def __init__(self, clock: EdgeClock) -> None:
        self._clock = clock
        self._buckets: dict[str, Bucket] = {}
        self._accounts: dict[int, _Account] = {}

    async def admit(self, token: TokenEntry) -> EdgeRefusal | None:
        """Count one request, or say which limit is in the way and when it no longer is."""
        limits = self._limits_of(token)
        if not limits:
            return None
        full = buckets.admit(limits, self._clock.monotonic())
        return None if full is None else _refusal(full)

    def charge(self, token: TokenEntry, tokens: int) -> None:
        """Count an answer's tokens; what is too much must refill before the next request."""
        for limit in self._limits_of(token):
            if not limit.is_counted:
                buckets.charge(limit, tokens, self._clock.monotonic())

    def _limits_of(self, token: TokenEntry) -> tuple[Limit, ...]:
        account = self._accounts.get(token.token_id)
        if account is None or account.entry is not token:
            account = _Account(token, tuple(self._make(token)))
            self._accounts[token.token_id] = account
        return account.limits

    def _make(self, token: TokenEntry) -> list[Limit]:
        mine, owner = f"token:{token.token_id}", f"owner:{token.owner_id}"
        given = (
            (f"{mine}:requests", token.requests_per_minute, True),
            (f"{mine}:tokens", token.tokens_per_minute, False),
            (f"{owner}:requests", token.owner_requests_per_minute, True),
            (f"{owner}:tokens", token.owner_tokens_per_minute, False),
        )
        return [
            Limit(name, most, self._buckets.setdefault(name, Bucket()), is_counted)
            for name, most, is_counted in given
            if most is not None
        ]


def _refusal(full: Full) -> EdgeRefusal:
    """Which limit of whom, how many, and when to ask again."""
    limit = full.limit
    unit = "requests" if limit.is_counted else "tokens"
    whose = "this API token has" if limit.name.startswith("token") else "all your API tokens share"
    words = f"{whose} a limit of {limit.per_minute} {unit} a minute, and it is used up."
    return refuse("rate_limited", words, full.seconds)
