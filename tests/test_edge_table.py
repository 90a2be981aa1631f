"""The table an edge holds: order, signature, age, and a Valkey that comes and goes."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest
from redis.asyncio.client import PubSub

from gateway.edge import holder
from gateway.edge.table import Head, Table, digest_of, encode_head, encode_part
from gateway.store import store
from tests import upstreams
from tests.conftest import ValkeyServer
from tests.edge_harness import (
    MEMBER,
    OWNER,
    SEALER,
    Publisher,
    Running,
    edge_at,
    grant,
    key_of,
    lane,
    tokens,
    until,
    until_heard,
)
from tests.edge_harness import upstream as upstream_at
from wire.edges import EDGE_NEWS, TABLE_CHANNEL, TABLE_HEAD, TABLE_PARTS
from wire.sealing import Sealer

pytestmark = pytest.mark.valkey


@pytest.fixture
async def edge(valkey_server: ValkeyServer) -> AsyncIterator[Running]:
    async with edge_at(valkey_server.url) as running:
        yield running


def _held(edge: Running) -> Table:
    assert edge.edge.holder.table is not None
    return edge.edge.holder.table


async def _code(edge: Running) -> str:
    answer = await edge.chat()
    return "served" if answer.is_success else str(answer.json()["error"]["code"])


async def _after_a_read(edge: Running) -> None:
    """Until the edge has surely read Valkey again."""
    for _ in range(2):
        await edge.edge.holder.refresh()


async def test_before_the_first_table_it_is_starting_and_no_key_is_wrong(edge: Running) -> None:
    for owner in (OWNER, 99):
        answer = await edge.chat(owner=owner)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "gateway_starting")
        assert int(answer.headers["retry-after"]) >= 1
    assert (await edge.client.get("/ready")).status_code == 503
    assert (await edge.client.get("/health")).status_code == 200


async def test_a_late_publisher_changes_nothing(edge: Running) -> None:
    early, late = edge.publisher, Publisher(edge.publisher.client)
    await edge.publish(lane("new"), version=1_000)
    await late.publish(lane("old"), version=999, confirmed_at=time.time() + 60)
    await _after_a_read(edge)
    assert (edge.version, list(_held(edge).lanes)) == (1_000, ["new"])
    assert early.version == 1_000


async def test_of_one_version_the_later_confirmation_counts(edge: Running) -> None:
    at = time.time()
    await edge.publish(lane(), version=5, confirmed_at=at)
    await edge.publisher.publish(lane(), version=5, confirmed_at=at - 10)
    await _after_a_read(edge)
    held = _held(edge)
    assert held.confirmed_at == at
    await edge.publisher.publish(lane(), version=5, confirmed_at=at + 1)
    await until(lambda: _held(edge).confirmed_at == at + 1)
    assert _held(edge).lanes is held.lanes  # nothing was parsed again


async def test_a_lane_that_left_the_table_is_gone_though_no_part_has_changed(
    edge: Running,
) -> None:
    await edge.publish(lane("a"), lane("b"))
    await edge.publish(lane("a"))
    assert list(_held(edge).lanes) == ["a"]


async def test_two_publishers_at_once_leave_the_highest(edge: Running) -> None:
    other = Publisher(edge.publisher.client)
    versions = [3, 9, 4, 8, 1, 10, 2, 7]
    await asyncio.gather(
        *(
            publisher.publish(lane(f"v{version}"), version=version)
            for version, publisher in zip(versions, [edge.publisher, other] * 4, strict=True)
        )
    )
    await edge.publish(lane("v10"), version=10, confirmed_at=time.time() + 1)
    await edge.publisher.publish(lane("v6"), version=6, confirmed_at=time.time() + 2)
    await _after_a_read(edge)
    assert (edge.version, list(_held(edge).lanes)) == (10, ["v10"])


async def test_an_emptied_valkey_takes_nothing_away(edge: Running) -> None:
    await edge.publish(lane())
    await edge.publisher.client.flushall()
    await edge.publisher.client.publish(TABLE_CHANNEL, "0")
    await _after_a_read(edge)
    assert edge.version == 1


async def test_a_restored_backup_takes_nothing_away(edge: Running) -> None:
    client = edge.publisher.client
    await edge.publish(lane("old"))
    backup = {key: await client.dump(key) for key in (TABLE_HEAD, TABLE_PARTS)}
    await edge.publish(lane("new"))
    await client.flushall()
    for key, value in backup.items():
        assert value is not None
        await client.restore(key, 0, value)
    await _after_a_read(edge)
    assert (edge.version, list(_held(edge).lanes)) == (2, ["new"])


async def _spoil(edge: Running, how: str) -> None:
    """Publish version 50 with one thing wrong, as somebody in Valkey might."""
    publisher = edge.publisher
    digests = {name: digest_of(payload) for name, payload in publisher.parts.items()}
    head = Head(50, time.time(), 0.0, digests)
    if how == "part of another format":
        publisher.parts["lane:main"] = b'{"slug": "main"}'
        digests["lane:main"] = digest_of(publisher.parts["lane:main"])
    elif how == "altered part":
        digests["lane:main"] = digest_of(b"another")
    elif how == "missing part":
        digests["lane:gone"] = digest_of(b"gone")
    altered: dict[str, dict[str, Any]] = {
        "altered head": {"payload": encode_head(replace(head, version=51), SEALER)[0]},
        "no signature": {"signature": b""},
        "strange signature": {"signature": b"\xff" * 64},
    }
    sealer = Sealer(("x" * 40,)) if how == "unknown key" else SEALER
    await publisher.store(head, sealer, **altered.get(how, {}))


@pytest.mark.parametrize(
    "how",
    [
        "unknown key",
        "altered head",
        "no signature",
        "strange signature",
        "altered part",
        "missing part",
        "part of another format",
    ],
)
async def test_what_is_not_signed_whole_and_understood_is_not_taken(
    edge: Running, how: str
) -> None:
    await edge.publish(lane())
    await _spoil(edge, how)
    await _after_a_read(edge)
    assert edge.version == 1
    await edge.publish(lane(), version=60)
    assert edge.version == 60


async def test_large_parts_are_parsed_and_tokens_found(edge: Running) -> None:
    many = tokens()
    first = next(iter(many.values()))
    many |= {f"{number:064x}": replace(first, token_id=number) for number in range(2_000)}
    grants = tuple(grant(OWNER, 1e10 + n * 100, 1e10 + n * 100 + 50) for n in range(2_000))
    await edge.publish(lane(grants=grants), entries=many)
    held = _held(edge)
    assert (len(held.tokens), len(held.lanes["main"].grants)) == (2_002, 2_000)


async def test_the_products_own_publisher_is_understood(
    valkey: str, edge: Running, valkey_server: ValkeyServer
) -> None:
    assert valkey == valkey_server.url
    parts = {"lane:main": encode_part(lane()), "tokens": encode_part(tokens())}
    digests = {name: digest_of(payload) for name, payload in parts.items()}
    for version, is_stored in ((7, True), (6, False)):
        head = Head(version, time.time(), 0.0, digests)
        assert store(head, parts, SEALER, is_new=True) is is_stored
    await until(lambda: edge.version == 7)
    assert list(_held(edge).lanes) == ["main"]
    parts["lane:main"] = encode_part(lane(generation=2))
    digests["lane:main"] = digest_of(parts["lane:main"])
    assert store(Head(8, time.time(), 0.0, digests), parts, SEALER, is_new=True)
    await until(lambda: edge.version == 8)
    assert _held(edge).lanes["main"].generation == 2


async def test_a_new_table_is_in_force_long_before_the_next_look(
    valkey_server: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holder, "READ_EVERY_SECONDS", 600.0)
    async with edge_at(valkey_server.url) as edge:
        await until_heard(edge.publisher.client, TABLE_CHANNEL)
        await edge.publish(lane())  # waits until the edge has it


async def test_an_edge_stops_though_a_listener_was_deaf_to_its_first_cancellation(
    valkey_server: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """redis-py has swallowed some, as in a connection that is being made."""
    deaf: set[PubSub] = set()
    get_message = PubSub.get_message

    async def get(channel: PubSub, **options: Any) -> Any:
        try:
            return await get_message(channel, **options)
        except asyncio.CancelledError:
            if channel in deaf:
                raise
            deaf.add(channel)
            return None

    monkeypatch.setattr(PubSub, "get_message", get)
    async with edge_at(valkey_server.url) as edge:
        await until_heard(edge.publisher.client, TABLE_CHANNEL, EDGE_NEWS)
    assert len(deaf) == 2  # of tables, and of other edges


async def test_without_its_channel_a_table_is_still_read_each_second(edge: Running) -> None:
    await edge.publish(lane())
    await edge.publisher.publish(lane(), is_quiet=True)
    await until(lambda: edge.version == 2)


async def test_valkey_away_at_the_start_and_later(valkey_server: ValkeyServer) -> None:
    valkey_server.stop()
    async with edge_at(valkey_server.url) as edge, upstreams.running(upstreams.llama) as fake:
        assert await _code(edge) == "gateway_starting"
        valkey_server.start()
        here = lane(upstream=upstream_at(fake.url))
        await edge.publisher.publish(here)
        await until(lambda: edge.version == 1)
        valkey_server.stop()
        assert await _code(edge) == "served"
        valkey_server.start()
        await _after_a_read(edge)
        assert await _code(edge) == "served"
        await edge.publisher.publish(here, version=7)
        await until(lambda: edge.version == 7)
        async with asyncio.timeout(30):
            while (report := await edge.report()) is None or "main" not in report.lanes:
                await asyncio.sleep(0.01)


async def test_a_table_that_nobody_confirms_serves_only_bookings(
    valkey_server: ValkeyServer,
) -> None:
    async with (
        edge_at(valkey_server.url, table_max_age=5.0) as edge,
        upstreams.running(upstreams.llama) as fake,
    ):
        here = lane(upstream=upstream_at(fake.url))
        await edge.publish(here, confirmed_at=time.time() - 6)
        assert await _code(edge) == "gateway_stale"
        assert (await edge.client.get("/ready")).json()["reasons"]
        mine = grant(OWNER, time.time() - 1, time.time() + 60)
        booked = replace(here, grants=(mine,))
        await edge.publish(booked, confirmed_at=time.time() - 6)
        assert await _code(edge) == "served"
        await edge.publish(here)
        assert await _code(edge) == "served"
        assert (await edge.client.get("/ready")).status_code == 200


async def test_an_edge_whose_clock_was_set_serves_nobody_until_valkey_tells_the_time(
    valkey_server: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with edge_at(valkey_server.url) as edge, upstreams.running(upstreams.llama) as fake:
        here = lane(upstream=upstream_at(fake.url))
        await edge.publish(here)
        valkey_server.stop()
        assert await _code(edge) == "served"
        monkeypatch.setattr(edge.edge.clock, "_wall", lambda: time.time() + 60)
        assert await _code(edge) == "gateway_stale"
        key = {"Authorization": f"Bearer {key_of(MEMBER)}"}
        assert (await edge.client.get("/v1/models", headers=key)).status_code == 503
        ready = await edge.client.get("/ready")
        assert ready.status_code == 503
        assert "Valkey has not told the time" in str(ready.json()["reasons"])
        judged_anew = Mock()
        monkeypatch.setattr(edge.edge.holder, "_on_table", judged_anew)
        valkey_server.start()
        await _after_a_read(edge)
        assert await _code(edge) == "served"
        judged_anew.assert_called_once_with(_held(edge))


async def test_clocks_that_differ_fail_ready_and_the_databases_time_rules(edge: Running) -> None:
    edge.publisher.offset = 100.0
    later = time.time() + 100
    taken = grant(99, later - 1, later + 60)
    await edge.publish(lane(grants=(taken,)), confirmed_at=later)
    ready = await edge.client.get("/ready")
    assert ready.status_code == 503
    assert "clocks differ by 100.0 s" in ready.json()["reasons"][0]
    assert await _code(edge) == "gpu_reserved"
