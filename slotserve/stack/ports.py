"""Whether the ports are free, and who has them."""

import contextlib
import socket

import psutil

from slotserve.stack.errors import StartError

LOOPBACK = "127.0.0.1"


def check_ports(ports: dict[str, int]) -> None:
    """StartError naming the port, its holder and the flag when one of these cannot be had."""
    if len(set(ports.values())) < len(ports):
        raise StartError(f"{' and '.join(ports)} are the same port: give two different ones.")
    for flag, port in ports.items():
        if reason := why_not(port):
            raise StartError(f"Port {port} {reason}: stop that, or choose another with {flag}.")


def why_not(port: int) -> str:
    """Why nobody else can listen on the port; empty when it is free."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as uvicorn binds
        try:
            probe.bind((LOOPBACK, port))
            probe.listen(1)
        except PermissionError:
            return "needs root's rights"
        except OSError:
            return f"is in use{_holder(port)}"
    return ""


def _holder(port: int) -> str:
    """` by NAME (process PID)` when we may know."""
    with contextlib.suppress(psutil.Error, OSError):
        for connection in psutil.net_connections("tcp"):
            local = connection.laddr
            if connection.status == psutil.CONN_LISTEN and local and local.port == port:
                if connection.pid is None:
                    return " by another user's process"
                return f" by {psutil.Process(connection.pid).name()} (process {connection.pid})"
    return ""
