"""How PostgreSQL is connected to, so that a lost machine or link is noticed within seconds.

Both sides are told: a client whose link is cut would wait for hours, and what a vanished client
has locked would stay locked as long, planning with it. Nobody keeps a transaction open idly.
"""

from collections.abc import Mapping

NOTICED = {"keepalives_idle": 5, "keepalives_interval": 3, "keepalives_count": 3}
UNANSWERED_MS = 15_000
IDLE_MS = 60_000
CONNECT_SECONDS = 5
SERVER_SIDE = {
    "tcp_keepalives_idle": 5,
    "tcp_keepalives_interval": 3,
    "tcp_keepalives_count": 3,
    "tcp_user_timeout": UNANSWERED_MS,
    "idle_in_transaction_session_timeout": IDLE_MS,
}


def postgres_options(given: Mapping[str, object]) -> dict[str, object]:
    """libpq's words: ours, and over them what DATABASE_URL's query says.

    A pooler that takes no `options` is told so by `?options=` in DATABASE_URL.
    """
    server_side = " ".join(f"-c {name}={value}" for name, value in SERVER_SIDE.items())
    own: dict[str, object] = {"connect_timeout": CONNECT_SECONDS, "options": server_side}
    own |= {**NOTICED, "tcp_user_timeout": UNANSWERED_MS}
    return {**own, **given}
