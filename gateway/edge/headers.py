"""Which headers pass, and the caller's credential, which never does."""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable

Headers = list[tuple[bytes, bytes]]

_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
_NEVER_UP = _HOP_BY_HOP | {
    b"authorization",
    b"x-api-key",
    b"api-key",
    b"cookie",
    b"host",
    b"content-length",
    b"expect",
    b"accept-encoding",  # the edge reads token counts from the answer's tail
    b"origin",  # model servers reflect any origin
    b"referer",
}
_OURS_ALONE = (b"x-slotserve-", b"sec-websocket-")  # the latter may hold a browser's key
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")  # aiohttp lets a server send them
LONGEST_HEADER = 4096  # llama-server refuses lines of 8 KiB, and more than 100 of them
MOST_HEADERS = 64
_NEVER_DOWN = _HOP_BY_HOP | {
    b"set-cookie",
    b"server",
    b"date",
    b"x-accel-buffering",
    b"x-request-id",  # the edge gives each answer its own
    b"request-id",
}


def find_digest(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """SHA-256 of the shown credential: Bearer, x-api-key or Basic password; the first one given."""
    for name, value in headers:
        key = _credential(name, value)
        if key:
            return hashlib.sha256(key).hexdigest()
    return None


def find(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes | None:
    """The first header of this lower-case name."""
    return next((value for each, value in headers if each == name), None)


def upstream_headers(headers: Iterable[tuple[bytes, bytes]], key: str) -> list[tuple[str, str]]:
    """What the model server gets: the caller's own headers, with the server's key.

    Not those that are too long or too many for a model server, which has no use for them.
    """
    listed = _listed_by_connection(headers := list(headers))
    passed = [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in headers
        if name not in _NEVER_UP
        and name not in listed
        and not name.startswith(_OURS_ALONE)
        and len(name) + len(value) <= LONGEST_HEADER
    ]
    return [
        *passed[:MOST_HEADERS],
        ("authorization", f"Bearer {key}"),
        ("accept-encoding", "identity"),
    ]


def client_headers(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """What the client gets of the model server's headers; never CORS, cookies or hop-by-hop."""
    headers = [(name.lower(), value) for name, value in headers]
    listed = _listed_by_connection(headers)
    return [
        (name, value)
        for name, value in headers
        if name not in _NEVER_DOWN
        and name not in listed
        and not name.startswith((b"access-control-", b"x-slotserve-"))
        and not _CONTROL.search(value)
    ]


def _credential(name: bytes, value: bytes) -> bytes | None:
    if name == b"x-api-key":
        return value.strip()
    if name != b"authorization":
        return None
    scheme, _, rest = value.strip().partition(b" ")
    if scheme.lower() == b"bearer":
        return rest.strip()
    return _basic_password(rest.strip()) if scheme.lower() == b"basic" else None


def _basic_password(encoded: bytes) -> bytes | None:
    try:
        return base64.b64decode(encoded, validate=True).partition(b":")[2]
    except binascii.Error:
        return None


def _listed_by_connection(headers: Iterable[tuple[bytes, bytes]]) -> set[bytes]:
    """Headers that a Connection header makes hop-by-hop."""
    return {
        word.strip().lower()
        for name, value in headers
        if name == b"connection"
        for word in value.split(b",")
    }
