"""`python -m gateway.edge.server`: one edge on a socket that is open already.

uvicorn, without an access log, and with an end that loses no request. `python -m gateway.edge`
starts it: in its own place, or several times as the parent of workers.
"""

import argparse
import asyncio
import contextlib
import gc
import logging
import math
import signal
import socket
import sys
import time
from collections.abc import Callable
from types import FrameType

import uvicorn

from gateway.edge.app import EdgeApp
from gateway.edge.command import cannot_start, set_up_logging
from gateway.edge.config import EdgeConfig, read_config
from gateway.edge.edge import Edge
from gateway.edge.line import ParentLine
from gateway.edge.ws_protocol import (
    MOST_MESSAGE_BYTES,
    PING_SECONDS,
    PONG_SECONDS,
    EdgeProtocol,
    EdgeWebSocket,
)
from wire.env import SettingError
from wire.sealing import Sealer, read_table_keys

KEEP_ALIVE_SECONDS = 75  # longer than clients keep an idle connection, so that they close it
WORDS_SECONDS = 1  # for requests that were ended at last to say so
_MADE_SECONDS = 0.02  # for connections that are accepted already to be made
_CLOSED_SECONDS = 0.005  # for the loop to let its own descriptors go
_LOOK_SECONDS = 0.05
_GC_THRESHOLDS = (50_000, 20, 20)  # Python's 700 or 2,000 are one request's objects
logger = logging.getLogger(__name__)


def main(arguments: list[str] | None = None) -> int:
    """Serve until TERM; the exit status. One sentence when it cannot start."""
    options = _parser().parse_args(arguments)
    set_up_logging(f"worker {options.number} " if options.number else "")
    logging.getLogger("uvicorn.error").addFilter(is_news)
    listening = socket.socket(fileno=options.fd)
    parent = None if options.line is None else ParentLine(socket.socket(fileno=options.line))
    try:
        config = read_config(options.port, options.number)
        sealer = Sealer(read_table_keys())
    except (SettingError, OSError) as error:
        return cannot_start(error)
    server = server_of(config, sealer, parent)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # not so under nohup
        signal.signal(signal.SIGHUP, server.handle_exit)  # who keeps it running starts it anew
    gc.freeze()  # what was imported stays: no collection needs to look at it
    gc.set_threshold(*_GC_THRESHOLDS)
    server.run(sockets=[listening])
    return 0


class EdgeServer(uvicorn.Server):
    """uvicorn, whose stop loses no request and whose last requests end in words.

    It would close kept-alive connections whose next request is on its way, cancel what still runs
    at last, and end by the signal that stopped it.
    """

    def __init__(self, config: uvicorn.Config, edge: Edge, parent: ParentLine | None) -> None:
        super().__init__(config)
        self._edge = edge
        self._parent = parent
        self._hurry = asyncio.Event()
        self._was_signalled = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first TERM or INT stops, a second one ends what runs, a third one kills.

        The parent's word is none of them: systemd sends TERM to parent and workers alike.
        """
        if not self._was_signalled:
            self._was_signalled = self.should_exit = True
            return
        self.hurry()
        signal.signal(sig, signal.SIG_DFL)

    def hurry(self) -> None:
        """End what runs now."""
        self.should_exit = True
        asyncio.get_running_loop().call_soon_threadsafe(self._hurry.set)

    def stop(self) -> None:
        """Let what runs finish."""
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve, and tell the parent."""
        await super().startup(sockets)
        if self._parent is not None:
            self._parent.open(self.stop, self.hurry)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept nothing more; serve what comes on connections that are open, for a while.

        Then what still runs is ended in words, the hosts are told, and all is closed.
        """
        logger.info("stopping; requests may run on for %g s", self._edge.config.stop_seconds)
        self._edge.is_stopping = True
        self._edge.gate.waiters.begin_stop()
        await self._stop_listening(sockets or [])
        state = self.server_state
        known = set(state.connections)
        for connection in known:
            connection.shutdown()
        await asyncio.sleep(_MADE_SECONDS)
        for connection in state.connections - known:
            connection.shutdown()
        await _until(
            lambda: not state.connections or self._hurry.is_set(), self._edge.config.stop_seconds
        )
        self._edge.gate.end_all()
        await _until(lambda: not state.tasks, WORDS_SECONDS)
        for task in state.tasks:
            task.cancel("the gateway is stopped")
        for connection in list(state.connections):
            connection.transport.close()
        await self.lifespan.shutdown()

    async def _stop_listening(self, sockets: list[socket.socket]) -> None:
        """Accept what has connected already: the kernel would reset it with the last descriptor."""
        loop, kept = asyncio.get_running_loop(), [sock.dup() for sock in sockets]
        for server in self.servers:
            server.close()
        for sock in sockets:
            sock.close()
        await asyncio.sleep(_CLOSED_SECONDS)
        accepted = [connection for sock in kept for connection in _accept_all(sock)]
        for connection in accepted:
            with contextlib.suppress(OSError):  # its client has left
                await loop.connect_accepted_socket(self._protocol, connection)

    def _protocol(self) -> asyncio.Protocol:
        """As uvicorn makes one for each connection."""
        return EdgeProtocol(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )


def _accept_all(listening: socket.socket) -> list[socket.socket]:
    """The connections that wait; then nothing listens here any more."""
    accepted = []
    listening.setblocking(False)
    with listening, contextlib.suppress(OSError):
        while True:
            accepted.append(listening.accept()[0])
    return accepted


async def _until(is_so: Callable[[], bool], seconds: float) -> None:
    """Wait until it is so, or the time is over."""
    end = time.monotonic() + seconds
    while not is_so() and time.monotonic() < end:  # noqa: ASYNC110 - uvicorn's sets call nobody
        await asyncio.sleep(_LOOK_SECONDS)


def server_of(config: EdgeConfig, sealer: Sealer, parent: ParentLine | None = None) -> EdgeServer:
    """uvicorn, set for streams: no access log, no server header, a limit on the last requests."""
    edge = Edge(config, sealer)
    return EdgeServer(
        uvicorn.Config(
            EdgeApp(edge),
            http=EdgeProtocol,
            ws=EdgeWebSocket,
            ws_max_size=MOST_MESSAGE_BYTES,
            ws_ping_interval=PING_SECONDS,
            ws_ping_timeout=PONG_SECONDS,
            ws_per_message_deflate=False,
            lifespan="on",
            access_log=False,
            log_config=None,
            server_header=False,
            proxy_headers=False,  # nothing here asks who the client is
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=math.ceil(config.stop_seconds) + WORDS_SECONDS,
        ),
        edge,
        parent,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gateway.edge.server", description=__doc__)
    parser.add_argument("--fd", type=int, required=True, help="the listening socket")
    parser.add_argument("--port", type=int, required=True, help="its port, for the edge's id")
    parser.add_argument("--number", type=int, default=0, help="which worker this is")
    parser.add_argument("--line", type=int, help="the socket to the parent of workers")
    return parser


def is_news(record: logging.LogRecord) -> bool:
    """Of what uvicorn says of single requests only exceptions are news.

    The rest is what anybody outside can cause at will, or a cut answer, which the edge has logged,
    or a request that was cancelled at the end of a stop.
    """
    if record.module != "httptools_impl":
        return True
    error = record.exc_info[1] if record.exc_info else None
    return error is not None and not isinstance(error, asyncio.CancelledError)


if __name__ == "__main__":
    sys.exit(main())
