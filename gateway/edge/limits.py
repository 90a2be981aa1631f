"""Rate limits of tokens and of people: requests and tokens a minute, over all edges."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from weakref import WeakValueDictionary

from gateway.edge import buckets
from gateway.edge.buckets import Bucket, Full, Limit
from gateway.edge.clock import EdgeClock
from gateway.edge.company import Company, Question
from gateway.edge.refusals import EdgeRefusal, refuse
from gateway.edge.table import TokenEntry
from wire.edges import RATE_PREFIX

_MOST_AT_ONCE = 500  # buckets that one call tells of, and accounts that one tick looks at
_Asker = tuple[tuple[Limit, ...], "asyncio.Future[Full | None]"]


@dataclass(frozen=True, slots=True)
class _Account:
    """The limits that requests of one token meet, by the table in force."""

    entry: TokenEntry
    limits: tuple[Limit, ...]


@dataclass(frozen=True, slots=True)
class _Told:
    """A bucket of the call in flight, and how much of its use the call tells."""

    limit: Limit
    amount: float


class Limits:
    """Counts requests and tokens. While others live, `Shared` asks for it in batches."""

    def __init__(self, clock: EdgeClock, company: Company | None = None) -> None:
        self._clock = clock
        self._company = company or Company()
        # a bucket lives as long as an account or a call needs it
        self._buckets: WeakValueDictionary[str, Bucket] = WeakValueDictionary()
        self._accounts: dict[int, _Account] = {}
        self._askers: list[_Asker] = []
        self._untold: dict[str, Limit] = {}  # buckets that have use to tell, by name
        self._asked: list[_Asker] = []  # of the call in flight, as are the next
        self._told: list[_Told] = []
        self._to_sweep: list[int] = []
        self._inherited: dict[str, Bucket] = {}

    @property
    def remembered(self) -> int:
        """How many buckets are kept."""
        return len(self._buckets)

    async def admit(self, token: TokenEntry) -> EdgeRefusal | None:
        """Count one request, or say which limit is in the way and when it no longer is.

        Without an answer of the other edges, by this edge's share of what was last known.
        """
        limits = self._limits_of(token)
        if not limits:
            return None
        if self._company.is_alone or self._company.is_away:
            full = self._admit_own(limits)
        else:
            asker: asyncio.Future[Full | None] = asyncio.get_running_loop().create_future()
            self._askers.append((limits, asker))
            self._company.wanted.set()
            full = await asker
        return None if full is None else _refusal(full)

    def charge(self, token: TokenEntry, tokens: int) -> None:
        """Count an answer's tokens; what is too much must refill before the next request."""
        for limit in self._limits_of(token):
            if not limit.is_counted:
                buckets.charge(limit, tokens, self._clock.monotonic(), self._divisor)
                self._tell(limit)

    def tell_all(self) -> None:
        """Say with the next calls what has been used, and learn what all have used."""
        for account in self._accounts.values():
            for limit in account.limits:
                self._untold[limit.name] = limit
        self._company.wanted.set()

    def inherit(self, found: dict[str, Bucket]) -> None:
        """Go on from what other edges have left; `at` is by this edge's monotonic clock."""
        self._inherited = found
        now = self._clock.monotonic()
        for account in self._accounts.values():
            for limit in account.limits:
                left = self._inherited.pop(limit.name, None)
                if left is not None:
                    buckets.inherit(limit, left, now)

    def tick(self) -> None:
        """Once a second: forget some of those whose buckets are full."""
        if not self._to_sweep:
            self._to_sweep = list(self._accounts)
        now = self._clock.monotonic()
        for token_id in self._to_sweep[-_MOST_AT_ONCE:]:
            account = self._accounts.get(token_id)
            if account is not None and _is_idle(account.limits, now):
                del self._accounts[token_id]
        del self._to_sweep[-_MOST_AT_ONCE:]

    def question(self, *, is_bare: bool) -> Question:
        """What is asked and told now: requests in their order, and buckets with untold use.

        A bare question tells nothing that must not be carried out twice.
        """
        self._asked, self._askers = self._askers, []
        places: dict[str, int] = {}
        chosen: list[Limit] = []
        asked = [limit for limits, _ in self._asked for limit in limits]
        told = [] if is_bare else islice(self._untold.values(), _MOST_AT_ONCE)
        for limit in (*asked, *told):
            if limit.name not in places:
                chosen.append(limit)
                places[limit.name] = len(chosen)
            self._untold.pop(limit.name, None)
        now = self._clock.monotonic()
        self._told = [_Told(limit, buckets.tell(limit, now)) for limit in chosen]
        keys = [RATE_PREFIX + limit.name for limit in chosen]
        return Question(keys, [*self._bucket_words(), *self._request_words(places)])

    def answer(self, used: list[bytes], requests: list[tuple[int, int]]) -> None:
        """Hand out the decisions, and learn what all edges have used."""
        now = self._clock.monotonic()
        told, self._told = self._told, []
        asked, self._asked = self._asked, []
        for each, total in zip(told, used, strict=True):
            buckets.learn(each.limit, float(total), now)
        for (_, asker), (place, milliseconds) in zip(asked, requests, strict=True):
            if not asker.done():
                full = Full(told[place - 1].limit, milliseconds / 1000) if place else None
                asker.set_result(full)
        if self._untold:
            self._company.wanted.set()

    def give_up(self) -> None:
        """There is no answer: whoever waits for one is judged by this edge's share."""
        for each in self._told:
            each.limit.bucket.untold += each.amount
            self._untold[each.limit.name] = each.limit
        waiting = [*self._asked, *self._askers]
        self._told, self._asked, self._askers = [], [], []
        for limits, asker in waiting:
            if not asker.done():
                asker.set_result(self._admit_own(limits))

    @property
    def _divisor(self) -> int:
        """By how much the limits are divided now."""
        company = self._company
        return company.edges if company.is_away and not company.is_alone else 1

    def _admit_own(self, limits: tuple[Limit, ...]) -> Full | None:
        full = buckets.admit(limits, self._clock.monotonic(), self._divisor)
        if full is None and not self._company.is_alone:
            for limit in limits:
                self._untold[limit.name] = limit
        return full

    def _tell(self, limit: Limit) -> None:
        if not self._company.is_alone:
            self._untold[limit.name] = limit
            self._company.wanted.set()

    def _bucket_words(self) -> list[str | int | float]:
        words: list[str | int | float] = [len(self._told)]
        for each in self._told:
            limit = each.limit
            is_counted = "1" if limit.is_counted else ""
            words += (limit.per_minute, is_counted, each.amount, buckets.known(limit.bucket))
        return words

    def _request_words(self, places: dict[str, int]) -> list[str | int | float]:
        words: list[str | int | float] = [len(self._asked)]
        for limits, _ in self._asked:
            words.append(len(limits))
            words += [places[limit.name] for limit in limits]
        return words

    def _limits_of(self, token: TokenEntry) -> tuple[Limit, ...]:
        if not has_limits(token):
            return ()
        account = self._accounts.get(token.token_id)
        if account is None or account.entry is not token:
            account = _Account(token, tuple(self._make(token)))
            self._accounts[token.token_id] = account
        return account.limits

    def _make(self, token: TokenEntry) -> Iterable[Limit]:
        mine, owner = f"token:{token.token_id}", f"owner:{token.owner_id}"
        given = (
            (f"{mine}:requests", token.requests_per_minute, True),
            (f"{mine}:tokens", token.tokens_per_minute, False),
            (f"{owner}:requests", token.owner_requests_per_minute, True),
            (f"{owner}:tokens", token.owner_tokens_per_minute, False),
        )
        for name, most, is_counted in given:
            if most is not None:
                bucket = self._buckets.get(name) or self._inherited.pop(name, None) or Bucket()
                self._buckets[name] = bucket
                yield Limit(name, most, bucket, is_counted)


def has_limits(token: TokenEntry) -> bool:
    """Whether any limit holds for this token."""
    return not (
        token.requests_per_minute is None
        and token.tokens_per_minute is None
        and token.owner_requests_per_minute is None
        and token.owner_tokens_per_minute is None
    )


def _is_idle(limits: Iterable[Limit], now: float) -> bool:
    for limit in limits:
        buckets.refill(limit, now)
    return not any(limit.bucket.used for limit in limits)


def _refusal(full: Full) -> EdgeRefusal:
    """Which limit of whom, how many, and when to ask again."""
    limit = full.limit
    unit = "requests" if limit.is_counted else "tokens"
    whose = "this API token has" if limit.name.startswith("token") else "all your API tokens share"
    words = f"{whose} a limit of {limit.per_minute} {unit} a minute, and it is used up."
    return refuse("rate_limited", words, full.seconds)
