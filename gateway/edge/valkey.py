"""Valkey as an edge asks it: no answer is waited for without a limit."""

import redis.asyncio as redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

ANSWER_SECONDS = 2.0  # for any answer; what waits for it is off the request's path
BROKEN = (RedisError, OSError)  # what a call may raise; a timeout is an OSError


def connect(url: str) -> "redis.Redis":
    """A client whose every answer has a time limit; nothing is tried twice behind our back."""
    return redis.Redis.from_url(
        url,
        socket_connect_timeout=ANSWER_SECONDS,
        socket_timeout=ANSWER_SECONDS,
        retry=Retry(NoBackoff(), 0),
    )
