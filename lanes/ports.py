"""Ports for model servers. A used one rests ten minutes, lest a late caller meet a stranger."""

import socket
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q

from lanes.models import Host, Runtime

REST = timedelta(minutes=10)


def free_port(host: Host, now: datetime) -> int | None:
    """A port of the range that nobody uses; when all others rest, the one that rested longest."""
    first, last = settings.SLOTSERVE_PORT_FIRST, settings.SLOTSERVE_PORT_LAST
    recent = Runtime.objects.filter(Q(ended_at=None) | Q(ended_at__gt=now - REST), lane__host=host)
    rows = list(recent.order_by("ended_at").values_list("port", "ended_at"))
    used = {port for port, _ in rows}
    living = {port for port, ended_at in rows if ended_at is None}
    rested = [port for port, ended_at in rows if ended_at is not None and port not in living]
    fresh = (port for port in range(first, last + 1) if port not in used)
    for port in [*fresh, *(port for port in rested if first <= port <= last)]:
        if is_free(host.address, port):
            return port
    return None


def is_free(address: str, port: int) -> bool:
    """Whether this machine could listen there; port 0: whether the address is its own."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as attempt:
        attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            attempt.bind((address, port))
            attempt.listen(1)
        except OSError:
            return False
        return True
