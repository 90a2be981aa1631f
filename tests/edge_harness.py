"""An edge on a real socket with a real Valkey, and a publisher that tests steer."""

import asyncio
import contextlib
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import httpx
import redis.asyncio as redis
import uvicorn

from gateway.edge.app import EdgeApp
from gateway.edge.config import EdgeConfig
from gateway.edge.edge import Edge
from gateway.edge.server import server_of
from gateway.edge.table import (
    Closure,
    Grant,
    Head,
    LaneRoute,
    SharedGrant,
    SlotToken,
    Table,
    TokenEntry,
    Upstream,
    digest_of,
    encode_head,
    encode_part,
)
from wire.edges import EDGES, TABLE_CHANNEL, TABLE_HEAD, TABLE_PARTS, EdgeReport, decode_report
from wire.sealing import Sealer

SEALER = Sealer(("k" * 40,))
SERVER_KEY = "server-key"
_SEALED = SEALER.seal(SERVER_KEY)
OWNER, MEMBER, STRANGER = 1, 2, 3
PRESETS = {"qwen": "qwen", "big": "qwen", "smol": "smol", "coder": "coder"}  # big: an alias


def key_of(owner: int) -> str:
    """The text of a person's token."""
    return f"ss_token_of_{owner}"


def bearer(owner: int) -> dict[str, str]:
    """A person's headers."""
    return {"authorization": f"Bearer {key_of(owner)}"}


def tokens(**changes: Any) -> dict[str, TokenEntry]:
    """A token of each person of the cast; `changes` go into all of them."""
    changes.setdefault("scopes", ("inference",))
    return {
        digest_of(key_of(owner).encode()): TokenEntry(owner * 10, owner, **changes)
        for owner in (OWNER, MEMBER)
    }


def upstream(url: str = "http://127.0.0.1:9", preset: str = "qwen", **fields: Any) -> Upstream:
    """A model server that the table names."""
    names = (preset, "big") if preset == "qwen" else (preset,)
    given: dict[str, Any] = {"generation": 1, "preset": preset, "names": names, "base_url": url}
    return Upstream(**given | {"sealed_key": _SEALED} | fields)


def lane(slug: str = "main", **fields: Any) -> LaneRoute:
    """A lane that is ready and free, running qwen."""
    given: dict[str, Any] = {"slug": slug, "enabled": True, "generation": 1, "phase": "ready"}
    if "upstream" not in fields:
        fields["upstream"] = upstream()
    return LaneRoute(**given | {"target": "qwen"} | fields)


def table(*lanes: LaneRoute, confirmed_at: float = 1000.0, **fields: Any) -> Table:
    """A table of these lanes, the cast's tokens and the presets qwen, smol and coder."""
    given: dict[str, Any] = {"version": 1, "confirmed_at": confirmed_at, "tokens": tokens()}
    by_slug = {each.slug: each for each in lanes}
    return Table(**given | {"presets": PRESETS, "lanes": by_slug} | fields)


def grant(
    owner: int = OWNER,
    start: float = 0.0,
    end: float = 3600.0,
    *,
    preset: str | None = "qwen",
    booking_id: int = 7,
) -> Grant:
    """A booking of qwen by the owner."""
    return Grant(booking_id, owner, start, end, preset)


def shared(one: Grant, *guests: int) -> SharedGrant:
    """The same booking, shared with these."""
    return SharedGrant(**asdict(one), guest_ids=frozenset(guests))


@dataclass
class Publisher:
    """Stores tables as the product's publisher does, without asking whether it may."""

    client: "redis.Redis"
    version: int = 0
    offset: float = 0.0
    parts: dict[str, bytes] = field(default_factory=dict)

    async def publish(
        self,
        *lanes: LaneRoute,
        confirmed_at: float | None = None,
        version: int | None = None,
        entries: dict[str, TokenEntry] | None = None,
        shares: dict[Any, Any] | None = None,
        closures: dict[str, list[Closure]] | None = None,
        is_quiet: bool = False,
    ) -> Head:
        """A next table with these lanes."""
        self.version = self.version + 1 if version is None else version
        given = tokens() if entries is None else entries
        slots = {name: each for name, each in given.items() if isinstance(each, SlotToken)}
        others = {name: each for name, each in given.items() if name not in slots}
        values: dict[str, Any] = {"tokens": others, "slot-tokens": slots, "presets": PRESETS}
        if closures is not None:
            values["maintenance"] = closures
        self.parts = {name: encode_part(value) for name, value in values.items()}
        if shares is not None:
            by_key = {str(booking): people for booking, people in shares.items()}
            self.parts["shares"] = encode_part(by_key)
        self.parts |= {f"lane:{each.slug}": encode_part(each) for each in lanes}
        digests = {name: digest_of(payload) for name, payload in self.parts.items()}
        at = time.time() if confirmed_at is None else confirmed_at
        head = Head(self.version, at, self.offset, digests)
        await self.store(head, is_quiet=is_quiet)
        return head

    async def store(
        self, head: Head, sealer: Sealer = SEALER, *, is_quiet: bool = False, **altered: bytes
    ) -> None:
        """Put a head with the present parts into Valkey and, unless it is quiet, say so."""
        payload, signature = encode_head(head, sealer)
        fields = {"payload": payload, "signature": signature.encode()} | altered
        async with self.client.pipeline(transaction=True) as pipeline:
            pipeline.delete(TABLE_PARTS)
            pipeline.hset(TABLE_PARTS, mapping=self.parts)  # type: ignore[arg-type]
            pipeline.hset(TABLE_HEAD, mapping=fields)  # type: ignore[arg-type]
            if not is_quiet:
                pipeline.publish(TABLE_CHANNEL, str(head.version))
            await pipeline.execute()


@dataclass
class Running:
    """An edge under test."""

    edge: Edge
    url: str
    client: httpx.AsyncClient
    publisher: Publisher
    server: uvicorn.Server

    async def chat(self, owner: int = OWNER, **fields: Any) -> httpx.Response:
        """A chat request of this person."""
        body = {"messages": [{"role": "user", "content": "Hi"}]} | fields
        return await self.client.post("/v1/chat/completions", json=body, headers=bearer(owner))

    async def publish(self, *lanes: LaneRoute, **options: Any) -> None:
        """Publish a next table and wait until the edge holds it."""
        head = await self.publisher.publish(*lanes, **options)
        await until(lambda: self.version >= head.version)

    async def report(self) -> EdgeReport | None:
        """What the hosts read of this edge."""
        payload = await self.publisher.client.hget(EDGES, self.edge.config.edge_id)
        return decode_report("x", payload) if isinstance(payload, bytes) else None

    @property
    def version(self) -> int:
        """Of the table in force; 0 when there is none."""
        return self.edge.holder.table.version if self.edge.holder.table else 0

    @property
    def in_flight(self) -> int:
        """Requests counted on all lanes."""
        return sum(self.edge.gate.in_flight.values())


def http_client(**options: Any) -> httpx.AsyncClient:
    """A client that reads no certificates, which takes 50 ms: there is no TLS here."""
    return httpx.AsyncClient(verify=False, **{"timeout": 60} | options)


async def until(is_so: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait until it is so, or fail."""
    async with asyncio.timeout(seconds):
        while not is_so():
            await asyncio.sleep(0.002)


async def until_heard(client: "redis.Redis", *channels: str) -> None:
    """Wait until somebody listens to each of these."""
    async with asyncio.timeout(30):
        for channel in channels:
            while not (await client.pubsub_numsub(channel))[0][1]:
                await asyncio.sleep(0.002)


async def _until_told(server: uvicorn.Server) -> None:
    """uvicorn's own loop, which looks less often whether it shall stop: every 100 ms."""
    count = 0
    while not await server.on_tick(count):
        await asyncio.sleep(0.005)
        count += 1


@contextlib.asynccontextmanager
async def edge_at(redis_url: str, **settings: Any) -> AsyncIterator[Running]:
    """An edge on a port of its own, reading this Valkey; its client and its publisher."""
    given: dict[str, Any] = {"redis_url": redis_url, "edge_id": "edge-1", "drain_seconds": 30.0}
    usage = tempfile.TemporaryDirectory(prefix="ssu-")
    given |= {"stop_seconds": 1.0, "usage_folder": Path(usage.name)}
    config = EdgeConfig(**given | settings)
    server = server_of(config, SEALER)
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    app = server.config.app
    assert isinstance(app, EdgeApp)
    server.main_loop = lambda: _until_told(server)  # type: ignore[method-assign]
    task = asyncio.create_task(server.serve(sockets=[listening]))
    client = redis.Redis.from_url(redis_url)
    try:
        await until(lambda: server.started)
        async with http_client(base_url=url, timeout=60) as http:
            yield Running(app.edge, url, http, Publisher(client), server)
    finally:
        server.should_exit = True
        async with asyncio.timeout(20):
            await task
        await client.aclose()
        usage.cleanup()
