"""Which database is used, and how: a lost machine or link is noticed within seconds.

Both sides are told: a client whose link is cut would wait for hours, and what a vanished client
has locked would stay locked as long, planning with it. Nobody keeps a transaction open idly.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dj_database_url

from wire.addresses import read_database_url, without_password
from wire.env import SettingError, read_secret

SQLITE, MOVED = "slotserve.sqlite3", "moved-to-postgresql"
POSTGRES_ENGINE, SQLITE_ENGINE = "django.db.backends.postgresql", "django.db.backends.sqlite3"
IN_MEMORY = ":memory:"  # of one process alone
SQLITE_OPTIONS: dict[str, object] = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
}
_TAKES = (
    "DATABASE_URL names no database that can be used: give "
    "postgres://USER:PASSWORD@HOST/NAME or sqlite:////FOLDER/FILE"
)

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


def own_database(folder: Path) -> dict[str, Any]:
    """Django's words for DATABASE_URL, or for the SQLite file of the data folder.

    SettingError when it cannot be used, and without DATABASE_URL where the file's rows were moved.
    """
    if not read_secret("DATABASE_URL"):
        _refuse_moved(folder)
    url = read_database_url(f"sqlite:///{folder / SQLITE}")
    found: dict[str, Any] = {}
    try:
        found |= dj_database_url.parse(url, conn_max_age=600, conn_health_checks=True)
    except ValueError:
        raise SettingError(_TAKES) from None
    is_sqlite = found["ENGINE"] == SQLITE_ENGINE
    is_ours = is_sqlite or found["ENGINE"] == POSTGRES_ENGINE
    if not is_ours or found["NAME"] in ("", IN_MEMORY) or "://" not in url:
        raise SettingError(_TAKES)
    options = SQLITE_OPTIONS if is_sqlite else postgres_options(found.get("OPTIONS", {}))
    return found | {"OPTIONS": options}


def pooled(database: dict[str, Any], most: int) -> dict[str, Any]:
    """The same for the web process: requests take connections from a pool of at most so many.

    Each of its requests has a thread of its own and would open a connection of its own, whatever
    CONN_MAX_AGE says. A connection is tried before it is given out, so that a database that was
    started again is no error. Workers have threads that stay, and keep a connection each.
    """
    if database["ENGINE"] != POSTGRES_ENGINE or not most:
        return database
    pool = {"min_size": 1, "max_size": most, "timeout": CONNECT_SECONDS}
    return database | {"CONN_MAX_AGE": 0, "OPTIONS": database["OPTIONS"] | {"pool": pool}}


def mark_moved(file: Path) -> None:
    """Remember beside a data folder's SQLite file that its rows are in DATABASE_URL's now."""
    if file.name == SQLITE:
        text = without_password(read_database_url(""))
        (file.parent / MOVED).write_text(f"{text}\n")


def _refuse_moved(folder: Path) -> None:
    mark = folder / MOVED
    if mark.is_file():
        raise SettingError(
            f"DATABASE_URL is not set, but the rows of {folder / SQLITE} were moved to "
            f"{mark.read_text().strip()}: set DATABASE_URL to that, with the password. To go back "
            f"to the file as it was at the move, remove {mark}"
        )
