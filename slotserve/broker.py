"""Addresses of Valkey: one URL form for us, another for Celery."""

import socket
from urllib.parse import parse_qs, urlsplit


def celery_url(redis_url: str) -> str:
    """Celery's form of `redis://`, `rediss://` or `unix:///path?db=N`.

    kombu knows sockets only as `redis+socket://path?virtual_host=N`, redis-py only as `unix://`.
    Raises ValueError with a sentence when the address is of neither kind.
    """
    parts = urlsplit(redis_url)
    if parts.scheme in {"redis", "rediss"}:
        return redis_url
    if parts.scheme == "unix" and parts.path:
        database = parse_qs(parts.query).get("db", ["0"])[0]
        return f"redis+socket://{parts.path}?virtual_host={database}"
    raise ValueError(f"REDIS_URL={redis_url!r}: give redis://, rediss:// or unix:///path?db=N")


def transport_options(redis_url: str) -> dict[str, object]:
    """What keeps a broker that is down from holding up a booking (keepalive breaks on sockets)."""
    # Without it a message that cannot be sent is tried for six seconds, retry=False or not.
    options: dict[str, object] = {"max_retries": 0, "interval_start": 0}
    options |= {"socket_connect_timeout": 1, "health_check_interval": 5}
    if not redis_url.startswith("unix:"):
        options["socket_keepalive"] = True
        options["socket_keepalive_options"] = keepalive_options()
    return options


def keepalive_options() -> dict[int, int]:
    """Socket options that notice a lost link within 15 s, where this system has them: a worker
    that waits for messages would else wait for hours after its link was cut."""
    wishes = {
        "TCP_KEEPIDLE": 5,
        "TCP_KEEPINTVL": 3,
        "TCP_KEEPCNT": 3,
        "TCP_USER_TIMEOUT": 15_000,
    }
    return {getattr(socket, name): value for name, value in wishes.items() if hasattr(socket, name)}
