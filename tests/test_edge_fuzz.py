"""Many random requests over real sockets: no 500, no count left, nobody where they may not be.

SLOTSERVE_FUZZ_REQUESTS and SLOTSERVE_FUZZ_SEED choose how many, and which.
"""

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from gateway.edge.table import TokenEntry, digest_of
from tests.conftest import ValkeyServer
from tests.edge_harness import (
    MEMBER,
    OWNER,
    Running,
    bearer,
    edge_at,
    grant,
    lane,
    tokens,
    until,
    upstream,
)
from tests.fuzz_requests import KEYS, SMUGGLED, USERS, Fuzzer

REQUESTS = int(os.environ.get("SLOTSERVE_FUZZ_REQUESTS", "50000"))
SEED = int(os.environ.get("SLOTSERVE_FUZZ_SEED", "0")) or int(time.time())
AT_ONCE = 32
ANSWER_SECONDS = 0.4  # for what may be waiting for the rest of half a request
MAY_USE = {"free": {"owner", "member", "limited"}, "owned": {"owner"}}
NAMES = {*USERS, SMUGGLED}  # a name that the fuzzer has altered tells nothing
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"


@dataclass
class Guests:
    """Who came to which lane's model server."""

    seen: Counter[tuple[str, str]] = field(default_factory=Counter)

    @asynccontextmanager
    async def server(self, lane_slug: str) -> AsyncIterator[str]:
        """A model server that notes the name each request carries."""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                while head := await reader.readuntil(b"\r\n\r\n"):
                    lines = head.decode("latin-1").lower().split("\r\n")
                    fields = dict(line.split(": ", 1) for line in lines if ": " in line)
                    await reader.readexactly(int(fields.get("content-length", "0")))
                    self.seen[lane_slug, fields.get("x-fuzz-user", "?")] += 1
                    is_head = head.startswith(b"HEAD ")
                    writer.write(ANSWER.removesuffix(b"{}") if is_head else ANSWER)
            except (asyncio.IncompleteReadError, ConnectionError):
                pass
            finally:
                writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.fuzz
@pytest.mark.valkey
async def test_no_random_request_gets_a_500_a_count_or_into_anothers_lane(
    valkey_server: ValkeyServer,
) -> None:
    guests = Guests()
    async with (
        guests.server("free") as free,
        guests.server("owned") as owned,
        edge_at(valkey_server.url, queue_seconds=0.5) as edge,
    ):
        await publish(edge, free, owned)
        statuses: Counter[int] = Counter()
        fuzzer, jobs = Fuzzer(SEED), iter(range(REQUESTS))
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(ask_on(edge, fuzzer, jobs, statuses))
        print(f"seed {SEED}: {sorted(statuses.items())}, {sorted(guests.seen.items())}")  # noqa: T201
        await judge(edge, guests, statuses)


async def publish(edge: Running, free: str, owned: str) -> None:
    """A lane for all, one that is the owner's, and some where nothing answers."""
    own = grant(OWNER, time.time() - 60, time.time() + 3600)
    gpu = grant(OWNER, time.time() - 60, time.time() + 3600, preset=None)
    lanes = (
        lane("free", upstream=upstream(free)),
        lane("owned", upstream=upstream(owned), grants=(own,)),
        lane("gpu", upstream=None, phase="stopped", grants=(gpu,)),
        lane("draining", upstream=upstream(owned), draining=True, drain_until=time.time() + 900),
        lane("loading", upstream=None, phase="starting", eta=time.time() + 90),
    )
    more = {
        "limited": TokenEntry(97, MEMBER, ("inference",), ("free",)),
        "expired": TokenEntry(98, OWNER, ("inference",), expires_at=time.time() - 1),
        "scopeless": TokenEntry(99, OWNER, ("read",)),
    }
    entries = {digest_of(KEYS[name].encode()): entry for name, entry in more.items()}
    await edge.publish(*lanes, entries=tokens() | entries)


async def ask_on(
    edge: Running, fuzzer: Fuzzer, jobs: Iterator[int], statuses: Counter[int]
) -> None:
    """Ask while there is something to ask, each time on a connection of its own."""
    port = int(edge.url.rpartition(":")[2])
    for _ in jobs:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(fuzzer.request())
            if fuzzer.random.random() < 0.05:
                continue  # it leaves without waiting
            async with asyncio.timeout(ANSWER_SECONDS):
                line = await reader.readline()
            statuses[int(line[9:12] or 0)] += 1
        except (TimeoutError, ConnectionError, ValueError):
            statuses[0] += 1
        finally:
            writer.close()


async def judge(edge: Running, guests: Guests, statuses: Counter[int]) -> None:
    """What must hold afterwards."""
    assert not [status for status in statuses if status >= 500 and status != 503]
    for slug, user in guests.seen:
        is_right = user in MAY_USE[slug] or user not in NAMES
        assert is_right, f"{user} reached the model server of {slug}"
    assert {slug for slug, _ in guests.seen} == set(MAY_USE)  # else this test tells nothing
    await until(lambda: not edge.in_flight and not edge.edge.gate.waiting)
    answer = await edge.client.post(
        "/lanes/free/v1/chat/completions", json={"messages": []}, headers=bearer(MEMBER)
    )
    assert answer.status_code == 200
