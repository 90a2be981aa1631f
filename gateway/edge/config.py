"""The edge's settings: environment variables, read once at start."""

import hashlib
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from gateway.edge.cors import read_origins
from wire.addresses import read_redis_url
from wire.env import SettingError, read_number, read_path, read_secret, read_text, read_whole


@dataclass(frozen=True, slots=True)
class EdgeConfig:
    """What one edge process runs with. Times are in seconds."""

    redis_url: str
    edge_id: str  # stable over restarts: the host's drain barrier knows this edge by it
    table_max_age: float = 300.0
    max_body_bytes: int = 64 * 2**20
    spool_bytes: int = 4 * 2**30  # of all request bodies that this process holds
    spool_folder: Path | None = None  # of the large ones; None: the system's
    body_seconds: float = 120.0  # for a client to send its whole body
    connect_seconds: float = 2.0  # to a model server
    answer_seconds: float = 3600.0  # without a byte from a model server
    stalled_seconds: float = 300.0  # for a client to take what waits for it
    websocket_idle_seconds: float = 600.0  # without a message either way
    drain_seconds: float = 30.0
    queue_per_lane: int = 32  # requests that may wait; 0: none
    queue_seconds: float = 60.0  # for a free slot
    wait_seconds: float = 0.0  # for a load or a switch, when the client does not say
    wait_most_seconds: float = 600.0  # when it does
    stop_seconds: float = 30.0  # what running requests get when the edge is stopped
    usage_folder: Path = Path("var/usage")  # of records that Valkey cannot take
    usage_bytes: int = 2**30  # of them
    metrics_digest: str | None = None  # SHA-256 of what /metrics asks for; None: open to all
    cors_origins: tuple[str, ...] = ()  # whose pages may call; none: CORS is off
    book_url: str | None = None  # the page to book at; None: nobody has said where it is


def read_config(port: int, number: int = 0) -> EdgeConfig:
    """The settings of the edge that listens here; SettingError says which one is wrong.

    `number` tells apart the workers of one parent; 0 is a single process.
    """
    drain = read_number("SLOTSERVE_DRAIN_SECONDS", 30.0)
    data = read_path("SLOTSERVE_DATA", Path("var"))
    edge_id = read_text("SLOTSERVE_EDGE_ID", f"{socket.gethostname()}:{port}")
    return EdgeConfig(
        redis_url=redis_url(),
        edge_id=f"{edge_id}/{number}" if number else edge_id,
        table_max_age=read_number("SLOTSERVE_TABLE_MAX_AGE", 300.0, least=1.0),
        max_body_bytes=read_whole("SLOTSERVE_MAX_BODY_BYTES", 64 * 2**20, least=1024),
        spool_bytes=read_whole("SLOTSERVE_SPOOL_BYTES", 4 * 2**30, least=1024),
        spool_folder=_read_spool_folder(),
        body_seconds=read_number("SLOTSERVE_BODY_SECONDS", 120.0, least=1.0),
        connect_seconds=read_number("SLOTSERVE_CONNECT_SECONDS", 2.0, least=0.1),
        answer_seconds=read_number("SLOTSERVE_ANSWER_SECONDS", 3600.0, least=1.0),
        stalled_seconds=read_number("SLOTSERVE_STALLED_SECONDS", 300.0, least=1.0),
        websocket_idle_seconds=read_number("SLOTSERVE_WEBSOCKET_IDLE_SECONDS", 600.0, least=1.0),
        drain_seconds=drain,
        queue_per_lane=read_whole("SLOTSERVE_QUEUE_PER_LANE", 32),
        queue_seconds=read_number("SLOTSERVE_QUEUE_SECONDS", 60.0),
        wait_seconds=read_number("SLOTSERVE_WAIT_SECONDS", 0.0),
        wait_most_seconds=read_number("SLOTSERVE_WAIT_MOST_SECONDS", 600.0),
        stop_seconds=read_number("SLOTSERVE_EDGE_STOP_SECONDS", drain),
        usage_folder=read_path("SLOTSERVE_USAGE_DIR", data / "usage"),
        usage_bytes=read_whole("SLOTSERVE_USAGE_BYTES", 2**30),
        metrics_digest=_digest(read_secret("SLOTSERVE_METRICS_TOKEN")),
        cors_origins=read_origins(),
        book_url=_read_book_url(),
    )


def _read_spool_folder() -> Path | None:
    """Where large bodies wait; None: in the system's folder for such things."""
    if not read_text("SLOTSERVE_SPOOL_DIR"):
        return None
    folder: Path = read_path("SLOTSERVE_SPOOL_DIR", Path())
    if not os.access(folder, os.W_OK | os.X_OK):
        raise SettingError(f"SLOTSERVE_SPOOL_DIR={str(folder)!r} is no folder to write to")
    return folder


def _read_book_url() -> str | None:
    pages = read_text("SLOTSERVE_WEB_URL").rstrip("/")
    return f"{pages}/book/" if pages else None


def _digest(secret: str) -> str | None:
    return hashlib.sha256(secret.encode()).hexdigest() if secret else None


def redis_url() -> str:
    """REDIS_URL, or the file that `bin/up` writes, or Valkey's usual port on this host."""
    path: Path = read_path("SLOTSERVE_DATA", Path("var")) / "redis-url"
    written = path.read_text().strip() if os.access(path, os.R_OK) else ""
    return read_redis_url(written)
