"""`python -m gateway.edge`: its options, its listening socket, and what serves there.

The program that serves is another one (`gateway.edge.server`), which gets the socket. So the parent
of several stays small, and each renewal of a worker runs the code that is installed then.
"""

import argparse
import asyncio
import logging
import os
import socket
import sys

from gateway.edge.metrics_folder import metrics_folder
from gateway.edge.workers import Workers
from wire.env import SettingError, read_whole

BACKLOG = 2048
_FIRST_HANDED_FD = 3  # systemd's convention
# glibc gives memory back whenever a body is let go of, and pays for each page when the next comes.
_HEAP = {"MALLOC_TRIM_THRESHOLD_": "33554432", "MALLOC_MMAP_THRESHOLD_": "33554432"}


def main(arguments: list[str] | None = None) -> int:
    """Serve until TERM; the exit status. One sentence when it cannot start."""
    options = _parser().parse_args(arguments)
    set_up_logging("")
    try:
        workers = options.workers or read_whole("SLOTSERVE_EDGE_WORKERS", 1, least=1)
        listening = handed_over() or listen(options.host, options.port)
    except (SettingError, OSError) as error:
        return cannot_start(error)
    address = listening.getsockname()
    port = address[1] if isinstance(address, tuple) else options.port
    of_socket = ("--port", str(port), "--fd", str(listening.fileno()))
    argv = (sys.executable, "-m", "gateway.edge.server", *of_socket)
    for name, value in _HEAP.items():
        os.environ.setdefault(name, value)
    if workers == 1:
        listening.set_inheritable(True)
        os.execv(argv[0], argv)  # noqa: S606 - no shell is wanted
    with metrics_folder() as folder:
        os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", str(folder))  # any worker tells of all
        return asyncio.run(Workers(argv, listening, workers).run())


def cannot_start(error: Exception) -> int:
    """Say so in a sentence; the exit status."""
    print(f"the gateway cannot start: {error}", file=sys.stderr)  # noqa: T201
    return 1


def set_up_logging(who: str) -> None:
    """Lines on standard error; `who` says which of several processes wrote one."""
    words = f"%(asctime)s %(levelname)s {who}%(name)s: %(message)s"
    logging.basicConfig(level=logging.INFO, format=words)


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


def handed_over() -> socket.socket | None:
    """The socket that systemd holds for us (LISTEN_FDS), which keeps it while we restart."""
    count, for_whom = os.environ.pop("LISTEN_FDS", ""), os.environ.pop("LISTEN_PID", "")
    os.environ.pop("LISTEN_FDNAMES", None)
    if not count or for_whom != str(os.getpid()):
        return None
    if count != "1":
        raise OSError(f"LISTEN_FDS={count}: one listening socket is needed, no more")
    try:
        handed = socket.socket(fileno=_FIRST_HANDED_FD)
        is_listening = handed.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError as error:
        raise OSError(f"LISTEN_FDS=1, but descriptor 3 is no socket ({error.strerror})") from error
    if not is_listening:
        handed.close()
        raise OSError("LISTEN_FDS=1, but descriptor 3 does not listen (Accept=no is needed)")
    return handed


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gateway.edge", description="The gateway.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=_port, default=8001)
    parser.add_argument("--workers", type=_workers, help="processes; SLOTSERVE_EDGE_WORKERS, or 1")
    return parser


def _port(text: str) -> int:
    """A port number, as argparse reads it."""
    number = int(text)
    if not 0 < number < 65_536:
        raise argparse.ArgumentTypeError("give a port from 1 to 65535")
    return number


def _workers(text: str) -> int:
    """A number of processes, as argparse reads it."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("give 1 or more")
    return number
