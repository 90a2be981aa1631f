"""A model server that cannot be reached: is it the server, or its whole machine?"""

import errno
import socket
from collections.abc import AsyncIterator

import aiohttp
import pytest

from gateway.edge.connections import LOST_SECONDS, notice_loss
from gateway.edge.upstreams import Server
from tests.edge_harness import upstream

ELSEWHERE, HERE = "http://10.0.0.5:18100", "http://127.0.0.1:18100"


async def server_at(url: str) -> AsyncIterator[Server]:
    server = Server(upstream(url), "key", aiohttp.ClientTimeout())
    yield server
    await server.session.close()


def failed(number: int) -> OSError:
    return OSError(number, "words")


ERRORS: list[tuple[str, BaseException, bool]] = [
    (ELSEWHERE, aiohttp.ConnectionTimeoutError(), True),
    (ELSEWHERE, failed(errno.EHOSTUNREACH), True),
    (ELSEWHERE, failed(errno.ENETUNREACH), True),
    (ELSEWHERE, failed(errno.ECONNREFUSED), False),
    (ELSEWHERE, failed(errno.ECONNRESET), False),
    (ELSEWHERE, aiohttp.ServerDisconnectedError(), False),
    (HERE, aiohttp.ConnectionTimeoutError(), False),
    ("http://[::1]:18100", aiohttp.ConnectionTimeoutError(), False),
    ("http://[fd00::5]:18100", aiohttp.ConnectionTimeoutError(), True),
    ("http://gpu1:18100", aiohttp.ConnectionTimeoutError(), True),
]


@pytest.mark.parametrize(("url", "error", "is_away"), ERRORS)
async def test_a_machine_that_refuses_is_there_and_one_that_is_silent_is_not(
    url: str, error: BaseException, is_away: bool
) -> None:
    async for server in server_at(url):
        assert server.not_sent(error).is_host_away is is_away


def test_the_kernel_gives_lost_machines_up() -> None:
    with socket.socket() as connection:
        notice_loss(connection)
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            set_to = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
            assert set_to == LOST_SECONDS * 1000
