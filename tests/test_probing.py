"""One probe of a server: whose port it is, before and after the answer, and how long it takes."""

import socket
from collections.abc import Iterator

import pytest

from lanes import probing, sockets
from lanes.probing import Endpoint, Health
from tests import fleet
from wire.words import Words

OURS, FOREIGN, NOBODY = True, False, None


class Keyless(fleet.FakeEngine):
    """An engine without keys."""

    protected_path = None


def probed(port: int) -> Health:
    return probing.probe(Endpoint(1, 1, "127.0.0.1", port, "key"), Keyless())


@pytest.fixture
def answering() -> Iterator[int]:
    """A port where 200 is the answer to everything."""
    with fleet.Foreigner() as server:
        yield server.port


@pytest.mark.parametrize(
    ("owners", "is_healthy", "is_foreign"),
    [
        ([OURS, OURS], True, False),
        ([OURS, FOREIGN], False, True),
        ([OURS, NOBODY], False, False),
        ([FOREIGN], False, True),
        ([NOBODY], False, False),
    ],
)
def test_the_port_is_ours_before_and_after_the_answer(
    answering: int,
    monkeypatch: pytest.MonkeyPatch,
    owners: list[bool | None],
    is_healthy: bool,
    is_foreign: bool,
) -> None:
    told = iter(owners)
    monkeypatch.setattr(sockets, "is_owned", lambda *_: next(told))
    found = probed(answering)
    assert (found.is_healthy, found.is_port_foreign) == (is_healthy, is_foreign)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (404, "Its health path /health answers 404."),
        (500, "Its health path /health answers 500."),
        (302, "Its health path /health answers 302."),
        (503, ""),
    ],
)
def test_an_answer_that_is_no_loading_is_told(
    monkeypatch: pytest.MonkeyPatch, status: int, words: str
) -> None:
    monkeypatch.setattr(sockets, "is_owned", lambda *_: True)
    with fleet.Foreigner(f"HTTP/1.1 {status} X\r\n\r\n".encode()) as server:
        assert probed(server.port).trouble == words


def test_who_answers_without_the_key_is_open(
    answering: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "is_owned", lambda *_: True)
    endpoint = Endpoint(1, 1, "127.0.0.1", answering, "key")
    found = probing.probe(endpoint, fleet.FakeEngine())
    assert (found.is_open, found.trouble) == (True, "It answers without its API key at /props.")


def test_a_server_that_says_nothing_holds_a_probe_up_for_a_moment_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sockets, "is_owned", lambda *_: True)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr(probing, "FETCH_SECONDS", 600.0)  # for what is asked more seldom
        assert probed(silent.getsockname()[1]) == Health()


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", b"{}"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", b"{}"),
        (b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\n{}", None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", None),
        (b"HTTP/1.1 200 OK\r\n", b""),
        (b"SSH-2.0-no\r\n", None),
        (b"", None),
    ],
)
def test_what_a_server_tells_is_read_or_is_none(answer: bytes, body: bytes | None) -> None:
    with fleet.Foreigner(answer) as server:
        endpoint = Endpoint(1, 1, "127.0.0.1", server.port, "key")
        assert probing.fetch(endpoint, "/props") == body


def test_a_server_that_tells_nothing_is_given_up_within_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(probing, "FETCH_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = Endpoint(1, 1, "127.0.0.1", silent.getsockname()[1], "key")
        assert probing.fetch(endpoint, "/props") is None


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([b"HTTP/1.1 403 No"], "/props answers 403 without its API key, instead of 401."),
        ([b""], "/props does not answer without its API key, instead of 401."),
        (
            [b"HTTP/1.1 401 No", b"HTTP/1.1 500 No"],
            "/props answers 500 with its API key, instead of 200.",
        ),
        (
            [b"HTTP/1.1 401 No", b""],
            "/props does not answer with its API key, instead of 200.",
        ),
    ],
)
def test_what_is_wrong_with_its_key_is_said_in_words_of_every_language(
    monkeypatch: pytest.MonkeyPatch, lines: list[bytes], words: str
) -> None:
    answers = iter([b"HTTP/1.1 200 OK\r\n", *(line and line + b"\r\n" for line in lines)])
    monkeypatch.setattr(sockets, "is_owned", lambda *_: True)
    monkeypatch.setattr(probing, "_exchange", lambda *_, **__: next(answers))
    found = probing.probe(Endpoint(1, 1, "127.0.0.1", 1, "key"), fleet.FakeEngine())
    assert found.trouble == words
    assert isinstance(found.trouble, Words)
    assert isinstance(found.advice, Words)
