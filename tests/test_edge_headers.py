"""Which headers pass in which direction. Pure."""

import base64

import pytest

from gateway.edge.headers import client_headers, find_digest, upstream_headers
from gateway.edge.table import digest_of

GIVEN = [
    (b"host", b"gateway.example"),
    (b"authorization", b"Bearer ss_secret"),
    (b"x-api-key", b"ss_secret"),
    (b"cookie", b"a=b"),
    (b"connection", b"close, X-Private"),
    (b"x-private", b"1"),
    (b"te", b"trailers"),
    (b"transfer-encoding", b"chunked"),
    (b"origin", b"https://evil.example"),
    (b"x-slotserve-lane", b"main"),
    (b"sec-websocket-protocol", b"openai-insecure-api-key.ss_secret"),
    (b"content-type", b"application/json"),
    (b"x-mine", b"kept"),
    (b"x-split", b"a\r\nauthorization: Bearer mine"),
]


def test_what_belongs_to_the_caller_or_to_this_hop_does_not_go_up() -> None:
    passed = upstream_headers(GIVEN)
    assert passed == [
        (b"content-type", b"application/json"),
        (b"x-mine", b"kept"),
    ]


def test_what_belongs_to_the_server_or_to_this_hop_does_not_come_down() -> None:
    answered = [
        (b"Content-Type", b"text/event-stream"),
        (b"Access-Control-Allow-Origin", b"*"),
        (b"Set-Cookie", b"a=b"),
        (b"Keep-Alive", b"timeout=5"),
        (b"Server", b"llama.cpp"),
        (b"X-SlotServe-Fallback", b"forged"),
        (b"X-Control", b"a\x01b"),
    ]
    assert client_headers(answered) == [(b"content-type", b"text/event-stream")]


@pytest.mark.parametrize(
    ("name", "value", "key"),
    [
        (b"authorization", b"Bearer ss_x", b"ss_x"),
        (b"authorization", b"bearer   ss_x ", b"ss_x"),
        (b"x-api-key", b"ss_x", b"ss_x"),
        (b"authorization", b"Basic " + base64.b64encode(b"me:ss_x"), b"ss_x"),
        (b"authorization", b"Basic " + base64.b64encode(b"no-colon"), None),
        (b"authorization", b"Basic \xff", None),
        (b"authorization", b"Digest ss_x", None),
        (b"authorization", b"Bearer", None),
        (b"proxy-authorization", b"Bearer ss_x", None),
    ],
)
def test_where_a_credential_is_looked_for(name: bytes, value: bytes, key: bytes | None) -> None:
    assert find_digest([(name, value)]) == (None if key is None else digest_of(key))
