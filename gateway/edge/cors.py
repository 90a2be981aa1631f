"""Cross-origin requests: which pages of other origins may call the gateway. The product's own may,
where SLOTSERVE_WEB_URL says where they are; others by setting alone.

Never with credentials of the browser: a caller shows its API key itself.
"""

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from gateway.edge import answer_headers
from gateway.edge.headers import Headers, find
from wire.env import SettingError, read_address, read_list

SETTING = "SLOTSERVE_CORS_ORIGINS"
EVERY = "*"
MAX_AGE_SECONDS = 3600
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?")
_ASKED = re.compile(rb"x-stainless-[a-z0-9-]{1,40}")
_MOST_ASKED_BYTES = 4096
_ALLOWED = (
    b"authorization",
    b"content-type",
    b"x-api-key",
    b"anthropic-version",
    b"anthropic-beta",
    b"anthropic-dangerous-direct-browser-access",
    b"x-slotserve-lane",
    b"prefer",
    b"user-agent",
    b"idempotency-key",
    b"openai-beta",
    b"openai-organization",
    b"openai-project",
)
_EXPOSED = b", ".join(
    (
        b"x-request-id",
        b"request-id",
        b"retry-after",
        b"x-should-retry",
        b"preference-applied",
        *answer_headers.NAMES,
    )
)
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_VARY = (b"vary", b"Origin")


def read_origins() -> tuple[str, ...]:
    """Those of the setting and of our own pages, as browsers write them; SettingError when one
    cannot be used."""
    origins = tuple(word.lower() for word in read_list("SLOTSERVE_CORS_ORIGINS"))
    if EVERY in origins and len(origins) > 1:
        raise SettingError(f"{SETTING}: '*' means every origin: give it alone, or leave it out")
    for origin in origins:
        usual_port = {"http": ":80", "https": ":443"}.get(origin.partition(":")[0], " ")
        if origin != EVERY and (not _ORIGIN.fullmatch(origin) or origin.endswith(usual_port)):
            raise SettingError(
                f"{SETTING}: {origin!r} is no origin: give scheme and host alone, and the port "
                "unless it is the usual one, such as https://chat.example.org"
            )
    own = () if EVERY in origins else own_origins(read_address("SLOTSERVE_WEB_URL"))
    return tuple(dict.fromkeys((*origins, *own)))


def own_origins(pages: str) -> tuple[str, ...]:
    """Under which the pages at this address may be open: a loopback host has several names."""
    parts = urlsplit(pages.lower())
    host = parts.hostname or ""
    if not host:
        return ()
    written = f"[{host}]" if ":" in host else host
    names = _LOOPBACK if written in _LOOPBACK else (written,)
    has_port = parts.port not in (None, {"http": 80, "https": 443}.get(parts.scheme))
    port = f":{parts.port}" if has_port else ""
    return tuple(f"{parts.scheme}://{name}{port}" for name in names)


class Cors:
    """The headers that let pages of these origins read what the gateway answers."""

    def __init__(self, origins: Iterable[str]) -> None:
        self._origins = frozenset(origin.encode() for origin in origins)
        self._is_for_all = EVERY.encode() in self._origins

    def answer_headers(self, headers: Headers) -> Headers:
        """For any answer to a request with these headers."""
        exposed = (b"access-control-expose-headers", _EXPOSED)
        if self._is_for_all:
            return [(b"access-control-allow-origin", b"*"), exposed]
        origin = find(headers, b"origin")
        if origin is None or origin not in self._origins:
            return [_VARY]
        return [(b"access-control-allow-origin", origin), _VARY, exposed]

    def preflight_headers(self, headers: Headers, methods: Iterable[str]) -> Headers | None:
        """For a browser that asks before it sends; None when this is no such request of ours."""
        origin = find(headers, b"origin")
        if origin is None or find(headers, b"access-control-request-method") is None:
            return None
        if not self._is_for_all and origin not in self._origins:
            return None
        return [
            (b"access-control-allow-methods", ", ".join(methods).encode()),
            (b"access-control-allow-headers", b", ".join((*_ALLOWED, *_asked(headers)))),
            (b"access-control-max-age", b"%d" % MAX_AGE_SECONDS),
        ]


def _asked(headers: Headers) -> list[bytes]:
    """What the clients of OpenAI and Anthropic add, of the headers that a page wants to send."""
    wanted = find(headers, b"access-control-request-headers") or b""
    words = (word.strip().lower() for word in wanted[:_MOST_ASKED_BYTES].split(b","))
    return [word for word in words if _ASKED.fullmatch(word)]
