"""POST to an address that somebody else has chosen.

It must not reach what only this machine can: every address of the name is checked, the checked one
is connected to, redirects are not followed. And it must not hold anybody up: a connection has an
end, and little is read of the answer. What other libraries connect to is held to the same by
`guarded`.
"""

import contextlib
import functools
import http.client
import ipaddress
import socket
import ssl
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings

from wire.cut import Cut

CONNECT_SECONDS, LONGEST_SECONDS = 5.0, 10.0
MOST_READ = 4096
PORTS = {"http": 80, "https": 443}
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_GLOBAL = ipaddress.ip_network("2000::/3")  # all that is given out (RFC 4291, 2.4)
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_guarded = threading.local()


class PostError(Exception):
    """It was not answered; the text says why."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: a status, and the beginning of the text."""

    status: int
    text: str


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an address leads."""

    scheme: str
    host: str
    port: int
    path: str


def post(url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
    """Post it. PostError: a private address, no connection, no or a wrong answer in time."""
    place = _place(url)
    try:
        address = _checked_address(place)
        return _exchange(place, address, body, headers)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise PostError(_reason(error)[:200]) from error


def _reason(error: Exception) -> str:
    """As a person reads it: "Connection refused", not a number. What a receiver said that is no
    HTTP is no reason."""
    if isinstance(error, http.client.HTTPException) and not isinstance(error, ConnectionError):
        return "it does not answer as HTTP asks"
    said = (getattr(error, name, None) for name in ("verify_message", "strerror"))
    return next(filter(None, said), None) or str(error) or type(error).__name__


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """This thread connects only where a post may lead, whoever names the address and wherever it is
    redirected to. Elsewhere connect itself fails, and PostError says so in the end."""
    _watch_connections()
    _guarded.refused = refused = list[PostError]()
    try:
        yield
    finally:
        _guarded.refused = None
    if refused:
        raise refused[0]


def url_objection(url: str, *, schemes: Iterable[str] = ("https", "http")) -> str:
    """What is wrong with an address, in words of English; empty when nothing is. It is not asked
    for."""
    try:
        place = _place(url)
    except PostError as error:
        return str(error)
    return "" if place.scheme in schemes else "its scheme cannot be used"


def is_allowed(address: Address) -> bool:
    """Whether this address may be connected to: public, or in SLOTSERVE_WEBHOOK_NETWORKS."""
    if any(address in network for network in settings.SLOTSERVE_WEBHOOK_NETWORKS):
        return True
    inner = _inner(address)
    if isinstance(inner, ipaddress.IPv6Address) and inner not in _GLOBAL:
        return False
    return inner.is_global and not inner.is_multicast and not inner.is_reserved


@functools.cache
def _watch_connections() -> None:
    """Once a process: Python asks before each connection, and this cannot be taken back."""
    sys.addaudithook(_audit)


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    refused = getattr(_guarded, "refused", None)
    if refused is None or event != "socket.connect":
        return
    to = arguments[1]
    try:
        _check_address(str(to[0]) if isinstance(to, tuple) else str(to))
    except PostError as error:
        refused.append(error)
        raise PermissionError(str(error)) from None  # libraries close what could not connect


def _check_address(text: str) -> None:
    """PostError for one that is not allowed, and for what is no address but a file or name."""
    try:
        may_be = is_allowed(ipaddress.ip_address(text.partition("%")[0]))
    except ValueError:
        may_be = False
    if not may_be:
        raise PostError(f"{text} is a private address: see SLOTSERVE_WEBHOOK_NETWORKS")


def _inner(address: Address) -> Address:
    """What an address of version 6 leads to, where it carries one of version 4."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def _place(url: str) -> _Place:
    try:
        parts = urlsplit(url)
        port = parts.port or PORTS.get(parts.scheme, 0)
    except ValueError as error:
        raise PostError("it is no address") from error
    if parts.scheme not in PORTS or not parts.hostname:
        raise PostError("it must begin with https:// or http://")
    if parts.username or parts.password:
        raise PostError("it must not carry a name or password")
    if any(ord(letter) <= 0x20 or ord(letter) > 0x7E for letter in url):
        raise PostError("it holds characters that no address has")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return _Place(parts.scheme, parts.hostname, port, path)


def _checked_address(place: _Place) -> str:
    """The address to connect to. One wrong among several is enough to refuse the name."""
    found = socket.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
    addresses = [str(each[4][0]) for each in found]
    for each in addresses:
        _check_address(each)
    return addresses[0]


def _exchange(place: _Place, address: str, body: bytes, headers: Mapping[str, str]) -> Answer:
    raw = socket.create_connection((address, place.port), CONNECT_SECONDS)
    cut = Cut(raw, LONGEST_SECONDS)
    connection = http.client.HTTPConnection(place.host, place.port)
    try:
        raw.settimeout(LONGEST_SECONDS)
        connection.sock = _secured(raw, place)
        connection.request("POST", place.path, body, {**headers, "Connection": "close"})
        answer = connection.getresponse()
        return Answer(answer.status, answer.read(MOST_READ).decode("utf-8", "replace"))
    finally:
        cut.cancel()
        connection.close()
        raw.close()


def _secured(raw: socket.socket, place: _Place) -> socket.socket:
    if place.scheme != "https":
        return raw
    return ssl.create_default_context().wrap_socket(raw, server_hostname=place.host)
