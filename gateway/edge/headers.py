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
_CREDENTIALS = (b"authorization", b"x-api-key")
_NEVER_UP = _HOP_BY_HOP | {
    b"authorization",
    b"x-api-key",
    b"api-key",
    b"cookie",
    b"host",
    b"content-length",
    b"expect",
    b"accept-encoding",  # the edge has its own
    b"origin",  # model servers reflect any origin
    b"referer",
}
_OURS_ALONE = (b"x-slotserve-", b"sec-websocket-")  # the latter may hold a browser's key
_NOT_THE_SERVERS = (b"access-control-", b"x-slotserve-")
_NAME_NO_HEADER = (b"keep-alive", b"close")
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")  # would split what the edge writes
_NO_NAME = re.compile(rb"[^!#$%&'*+.^_`|~0-9a-z-]")  # a space before the colon, for one
_LONGEST_LENGTH = 18  # digits
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


class LengthError(ValueError):
    """Nothing is so long: to the parser the largest number means that nothing comes."""


def find_digest(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """SHA-256 of the shown credential: Bearer, x-api-key or Basic password; the first one given."""
    for name, value in headers:
        if name in _CREDENTIALS and (key := _credential(name, value)):
            return hashlib.sha256(key).hexdigest()
    return None


def find(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes | None:
    """The first header of this lower-case name."""
    for each, value in headers:
        if each == name:
            return value
    return None


def upstream_headers(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """What the model server gets of the caller's headers; it has lines of its own besides.

    Not those that are too long or too many for a model server, which has no use for them.
    """
    passed, listed = [], b""
    for name, value in headers:
        if name in _NEVER_UP:
            listed = _listed(listed, name, value)
        elif (
            len(name) + len(value) <= LONGEST_HEADER
            and not name.startswith(_OURS_ALONE)
            and not _CONTROL.search(value)
        ):
            passed.append((name, value))
    return _without(passed, listed)[:MOST_HEADERS]


def client_headers(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """What the client gets of the model server's headers; never CORS, cookies or hop-by-hop.

    Raises LengthError.
    """
    passed, listed = [], b""
    for given, value in headers:
        name = given.lower()
        if name in _NEVER_DOWN:
            listed = _listed(listed, name, value)
        elif len(value) > _LONGEST_LENGTH and name == b"content-length":
            raise LengthError(value)
        elif not (
            name.startswith(_NOT_THE_SERVERS) or _NO_NAME.search(name) or _CONTROL.search(value)
        ):
            passed.append((name, value))
    return _without(passed, listed)


def _listed(listed: bytes, name: bytes, value: bytes) -> bytes:
    """With the names that this header, if it is Connection, makes hop-by-hop."""
    if name != b"connection" or value.lower() in _NAME_NO_HEADER:
        return listed
    return b"%b,%b" % (listed, value)


def _without(headers: Headers, listed: bytes) -> Headers:
    if not listed:
        return headers
    names = {word.strip().lower() for word in listed.split(b",")}
    return [header for header in headers if header[0] not in names]


def _credential(name: bytes, value: bytes) -> bytes | None:
    if name == b"x-api-key":
        return value.strip()
    scheme, _, rest = value.strip().partition(b" ")
    if scheme.lower() == b"bearer":
        return rest.strip()
    return _basic_password(rest.strip()) if scheme.lower() == b"basic" else None


def _basic_password(encoded: bytes) -> bytes | None:
    try:
        return base64.b64decode(encoded, validate=True).partition(b":")[2]
    except binascii.Error:
        return None
