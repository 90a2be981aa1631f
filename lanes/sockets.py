"""Who listens on a port and who is connected to it, by the kernel's socket tables.

The tables are those of the server's own network namespace (`/proc/<pid>/net`); elsewhere psutil's.
"""

import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

import psutil

from lanes import processes

LISTEN, ESTABLISHED = "0A", "01"
Address = IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True)
class TcpSocket:
    """One row of a socket table."""

    address: Address
    inode: int


def listeners(pid: int, address: str, port: int) -> list[TcpSocket]:
    """Sockets that a connection to this address and port could reach."""
    own = ip_address(address)
    return [
        row for row in _table(pid, port, LISTEN) if row.address == own or row.address.is_unspecified
    ]


def has_connections(pid: int, port: int) -> bool:
    """Whether a client is connected to the port, by the server's socket table.

    A table that cannot be read is no evidence: then yes.
    """
    if not processes.IS_LINUX:
        return _psutil_has_connections(pid, port)
    try:
        return any(_table(pid, port, ESTABLISHED))
    except OSError:
        return True


def is_owned(pid: int, ticks: int, address: str, port: int) -> bool | None:
    """Whether all listeners of the port belong to the session; None: nobody listens there, or the
    server is ending.

    Table and processes are read one after the other: whose listener is gone meanwhile, or has come,
    is not called a stranger.
    """
    if not processes.IS_LINUX:
        return _psutil_is_owned(pid, address, port)
    strangers = _strangers(pid, ticks, address, port)
    if not strangers:
        return None if strangers is None else True
    stayed = strangers & (_strangers(pid, ticks, address, port) or set())
    return False if stayed and processes.is_alive(pid, ticks) else None


def _strangers(pid: int, ticks: int, address: str, port: int) -> set[int] | None:
    """The listeners that no process of the session has; None: there are no listeners."""
    try:
        found = {row.inode for row in listeners(pid, address, port)}
    except OSError:
        return None
    if not found:
        return None
    found -= _socket_inodes(pid)
    if found:
        for member in processes.of_session(pid, ticks):
            found -= _socket_inodes(member.pid)
    return found


def _table(pid: int, port: int, state: str) -> Iterator[TcpSocket]:
    """The rows of one local port in one state; of a busy host's thousands no other is parsed."""
    ending = f":{port:04X}"
    for name in ("tcp", "tcp6"):
        path = Path(f"/proc/{pid}/net/{name}")
        if name == "tcp6" and not path.exists():
            continue  # a kernel without IPv6
        for line in path.read_text().splitlines()[1:]:
            fields = line.split(maxsplit=10)
            if fields[3] == state and fields[1].endswith(ending):
                yield TcpSocket(_address(fields[1].removesuffix(ending)), int(fields[9]))


def _address(text: str) -> Address:
    """The kernel prints addresses as 32-bit words in the machine's byte order."""
    words = [int(text[at : at + 8], 16) for at in range(0, len(text), 8)]
    packed = struct.pack(f"={len(words)}I", *words)
    if len(words) == 1:
        return IPv4Address(packed)
    full = IPv6Address(packed)
    return full.ipv4_mapped or full


def _socket_inodes(pid: int) -> set[int]:
    found = set()
    try:
        for entry in os.scandir(f"/proc/{pid}/fd"):
            try:
                target = os.readlink(entry.path)
            except OSError:
                continue  # closed meanwhile
            if target.startswith("socket:["):
                found.add(int(target[8:-1]))
    except OSError:
        return found  # the process is gone or not ours to read
    return found


def _psutil_has_connections(pid: int, port: int) -> bool:
    try:
        rows = psutil.Process(pid).net_connections("tcp")
    except psutil.Error:
        return True
    return any(row.laddr.port == port and row.status == psutil.CONN_ESTABLISHED for row in rows)


def _psutil_is_owned(pid: int, address: str, port: int) -> bool | None:
    try:
        rows = psutil.Process(pid).net_connections("tcp")
    except psutil.Error:
        return None
    if any(row.laddr.port == port and row.status == psutil.CONN_LISTEN for row in rows):
        return True
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
        return False if probe.connect_ex((address, port)) == 0 else None
