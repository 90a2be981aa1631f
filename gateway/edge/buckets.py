"""Buckets of rate limits: how much of a minute's worth has been used, and when there is room. Pure.

A bucket holds one minute's worth of its limit and refills evenly. Use may go beyond the limit
(tokens are charged when the answer is known); then it must refill first. Times are seconds of any
clock that does not go back.
"""

from collections.abc import Iterable
from dataclasses import dataclass

MINUTE = 60.0
_GRAIN = 1e-6  # less than this is a rounding error


@dataclass(slots=True, weakref_slot=True)
class Bucket:
    """What has been used of it, at a moment. A fresh one is full."""

    used: float = 0.0
    at: float = 0.0
    untold: float = 0.0  # the part of `used` that other edges do not know of yet
    guessed: float = 0.0  # the part that they are taken to have used, while nobody can ask them


@dataclass(frozen=True, slots=True)
class Limit:
    """So much a minute, of somebody. `is_counted`: each request uses one."""

    name: str
    per_minute: int
    bucket: Bucket
    is_counted: bool


@dataclass(frozen=True, slots=True)
class Full:
    """The limit that is in the way, and for how many seconds."""

    limit: Limit
    seconds: float


def refill(limit: Limit, now: float) -> None:
    """Bring its bucket to this moment."""
    bucket = limit.bucket
    if now > bucket.at:
        gained = (now - bucket.at) * limit.per_minute / MINUTE
        bucket.used = max(0.0, bucket.used - gained)
        bucket.untold = min(bucket.untold, bucket.used)
        bucket.guessed = min(bucket.guessed, bucket.used - bucket.untold)
        bucket.at = now


def wait_of(limit: Limit, share: int = 1) -> float:
    """Seconds until one more fits, of a bucket brought to this moment; 0: it does now.

    With a share of n, one counts as n: the limit is then divided by n, but never below one.
    """
    if limit.per_minute < 1:
        return MINUTE
    over = limit.bucket.used + min(share, limit.per_minute) - limit.per_minute
    return over * MINUTE / limit.per_minute if over > _GRAIN else 0.0


def admit(limits: Iterable[Limit], now: float, share: int = 1) -> Full | None:
    """Use one request of each, or nothing and the limit that lasts longest."""
    worst = None
    for limit in limits:
        refill(limit, now)
        seconds = wait_of(limit, share)
        if seconds and (worst is None or seconds > worst.seconds):
            worst = Full(limit, seconds)
    if worst is None:
        for limit in limits:
            if limit.is_counted:
                _use(limit.bucket, 1, min(share, limit.per_minute) - 1)
    return worst


def tell(limit: Limit, now: float) -> float:
    """How much the others are to be told; they know it from now on."""
    refill(limit, now)
    amount, limit.bucket.untold = limit.bucket.untold, 0.0
    return amount


def learn(limit: Limit, used: float, now: float) -> None:
    """Take what all edges have used by now, but for what they have not been told."""
    refill(limit, now)
    limit.bucket.used = used + limit.bucket.untold
    limit.bucket.guessed = 0.0


def inherit(limit: Limit, left: Bucket, now: float) -> None:
    """Go on from what another edge has left, if that is more than is known here."""
    other = Limit(limit.name, limit.per_minute, left, limit.is_counted)
    refill(other, now)
    refill(limit, now)
    limit.bucket.used = max(limit.bucket.used, left.used)


def charge(limit: Limit, amount: float, now: float, share: int = 1) -> None:
    """Use so much, whether it fits or not."""
    refill(limit, now)
    _use(limit.bucket, amount, amount * (share - 1))


def known(bucket: Bucket) -> float:
    """What has been used for sure."""
    return bucket.used - bucket.guessed


def _use(bucket: Bucket, amount: float, guessed: float) -> None:
    bucket.used += amount + guessed
    bucket.untold += amount
    bucket.guessed += guessed
