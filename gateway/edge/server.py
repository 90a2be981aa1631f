"""The edge's process: its socket, its settings and uvicorn, without an access log."""

import argparse
import asyncio
import logging
import math
import os
import socket
import sys

import uvicorn

from gateway.edge.app import EdgeApp
from gateway.edge.config import EdgeConfig, read_config
from gateway.edge.edge import Edge
from wire.env import SettingError
from wire.http_protocol import GuardedProtocol
from wire.sealing import Sealer, read_table_keys

KEEP_ALIVE_SECONDS = 75  # longer than clients keep an idle connection, so that they close it
BACKLOG = 2048
WORDS_SECONDS = 1  # for requests that were ended at last to say so


def main(arguments: list[str] | None = None) -> int:
    """Serve until TERM; the exit status. One sentence when it cannot start."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    try:
        config = read_config(options.host, options.port)
        sealer = Sealer(read_table_keys())
        listening = listen(options.host, options.port)
    except (SettingError, OSError) as error:
        print(f"the gateway cannot start: {error}", file=sys.stderr)  # noqa: T201
        return 1
    server_of(config, sealer).run(sockets=[listening])
    return 0


def listen(host: str, port: int) -> socket.socket:
    """The listening socket; OSError with a sentence when the address cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise OSError(
            f"{host}:{port} cannot be listened on ({reason}); choose another --port"
        ) from error


class EdgeServer(uvicorn.Server):
    """uvicorn, whose last requests end in words: it would cancel them without one."""

    def __init__(self, config: uvicorn.Config, edge: Edge) -> None:
        super().__init__(config)
        self._edge = edge

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept nothing more; let requests finish for a while, then end them."""
        loop = asyncio.get_running_loop()
        ending = loop.call_later(self._edge.config.stop_seconds, self._edge.gate.end_all)
        try:
            await super().shutdown(sockets)
        finally:
            ending.cancel()


def server_of(config: EdgeConfig, sealer: Sealer) -> EdgeServer:
    """uvicorn, set for streams: no access log, no server header, a limit on the last requests."""
    edge = Edge(config, sealer)
    return EdgeServer(
        uvicorn.Config(
            EdgeApp(edge),
            http=GuardedProtocol,
            ws="none",
            lifespan="on",
            access_log=False,
            log_config=None,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=math.ceil(config.stop_seconds) + WORDS_SECONDS,
        ),
        edge,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gateway.edge", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=_port, default=8001)
    return parser


def _port(text: str) -> int:
    """A port number, as argparse reads it."""
    number = int(text)
    if not 0 < number < 65_536:
        raise argparse.ArgumentTypeError("give a port from 1 to 65535")
    return number


def _is_news(record: logging.LogRecord) -> bool:
    """Of what uvicorn says of single requests only exceptions are news.

    The rest is what anybody outside can cause at will, or a cut answer, which the edge has logged.
    """
    return record.module != "httptools_impl" or record.exc_info is not None
