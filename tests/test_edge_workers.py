"""`--workers N`: several processes on one socket, and what a request sees of their ends."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator

import psutil
import pytest

from tests import upstreams
from tests.conftest import ValkeyServer
from tests.edge_harness import Publisher, http_client, lane
from tests.edge_harness import upstream as upstream_at
from tests.edge_processes import (
    Kept,
    Process,
    chat,
    edge_process,
    is_alive,
    load,
    publishing,
    reports,
    soon,
)

pytestmark = [pytest.mark.valkey, pytest.mark.process]
IDS = {"edge/1", "edge/2", "edge/3"}


@pytest.fixture
async def fake() -> AsyncIterator[upstreams.FakeServer]:
    async with upstreams.running(upstreams.llama) as server:
        yield server


@pytest.fixture
async def publisher(
    valkey_server: ValkeyServer, fake: upstreams.FakeServer
) -> AsyncIterator[Publisher]:
    async with publishing(valkey_server.url) as publisher:
        await publisher.publish(lane(upstream=upstream_at(fake.url)))
        yield publisher


@pytest.fixture
async def edge(valkey_server: ValkeyServer, publisher: Publisher) -> AsyncIterator[Process]:
    settings = {"SLOTSERVE_EDGE_STOP_SECONDS": "20"}
    with edge_process(valkey_server.url, "--workers", "3", settings=settings) as process:
        await process.is_ready()
        await until_live(publisher, IDS)
        yield process


async def until_live(publisher: Publisher, ids: set[str]) -> None:
    """Wait until exactly these edges have reported and not taken their leave."""
    async with asyncio.timeout(30):
        while {name for name, x in (await reports(publisher)).items() if not x.goodbye} != ids:
            await asyncio.sleep(0.02)


def pids_of(edge: Process, worker: int) -> set[int]:
    """The processes that run as this worker: one, or two while it is renewed."""
    wanted = ["--number", str(worker)]
    return {pid for pid in edge.workers() if psutil.Process(pid).cmdline()[-2:] == wanted}


async def test_each_worker_is_an_edge_and_takes_its_leave(
    edge: Process, publisher: Publisher
) -> None:
    workers = edge.workers()
    assert len(workers) == 3
    edge.popen.terminate()
    assert await edge.ended() == 0
    assert all(report.goodbye for report in (await reports(publisher)).values())
    assert not any(is_alive(pid) for pid in workers)


async def test_a_worker_that_is_stopped_under_load_loses_no_request(
    edge: Process, publisher: Publisher
) -> None:
    (second,) = pids_of(edge, 2)
    async with load(edge.port) as result:
        await result.more(100)
        os.kill(second, signal.SIGTERM)
        await soon(lambda: not is_alive(second))
        await soon(lambda: pids_of(edge, 2))
        await result.more(100)
    assert result.failed == []
    await until_live(publisher, IDS)


async def test_hangup_renews_all_under_load_and_loses_no_request(
    edge: Process, publisher: Publisher
) -> None:
    before = edge.workers()
    async with load(edge.port) as result:
        await result.more(100)
        edge.popen.send_signal(signal.SIGHUP)
        await soon(lambda: "all workers are renewed" in edge.said(), 60)
        await result.more(100)
    assert result.failed == []
    assert len(edge.workers()) == 3
    assert not edge.workers() & before
    live = {name for name, report in (await reports(publisher)).items() if not report.goodbye}
    assert len(live) == 3
    assert live <= IDS | {"edge/4"}


async def test_a_killed_worker_takes_only_its_own_requests_with_it(
    edge: Process, publisher: Publisher
) -> None:
    (victim,) = pids_of(edge, 1)
    async with load(edge.port) as result:
        await result.more(100)
        os.kill(victim, signal.SIGSTOP)  # so that what it holds can be counted
        held = _clients_of(victim, edge.port)
        os.kill(victim, signal.SIGKILL)
        await soon(lambda: pids_of(edge, 1) - {victim})
        await result.more(100)
    assert len(result.failed) <= held
    assert all("Reset" in each or "IncompleteRead" in each for each in result.failed)
    await until_live(publisher, IDS)


def _clients_of(pid: int, port: int) -> int:
    rows = psutil.Process(pid).net_connections("tcp")
    return sum(row.status == psutil.CONN_ESTABLISHED and row.laddr.port == port for row in rows)


async def test_metrics_are_of_all_workers_whichever_answers(edge: Process) -> None:
    for _ in range(9):
        assert (await chat(edge)).status_code == 200
    counted = set()
    for _ in range(9):  # on a connection of its own each, so by any worker
        async with http_client() as client:
            counted.add(_chats((await client.get(f"{edge.url}/metrics")).text))
    assert counted == {9.0}


def _chats(metrics: str) -> float:
    wanted = 'slotserve_edge_requests_total{code="",route="/v1/chat/completions",status="200"} '
    return sum(float(line.removeprefix(wanted)) for line in metrics.splitlines() if wanted in line)


async def test_no_worker_outlives_a_killed_parent(edge: Process) -> None:
    workers = edge.workers()
    edge.popen.kill()
    await soon(lambda: not any(is_alive(pid) for pid in workers))


async def test_a_stop_that_reaches_parent_and_workers_lets_requests_finish(
    edge: Process, fake: upstreams.FakeServer
) -> None:
    fake.behaviour = upstreams.answers_when_released
    kept = Kept(edge.port)
    await kept.send()
    await soon(lambda: fake.seen)
    for pid in (edge.pid, *edge.workers()):  # as systemd does
        os.kill(pid, signal.SIGTERM)
    await soon(lambda: edge.said().count("stopping; requests") == 3)
    fake.release.set()
    assert (await kept.receive()).status == 200
    assert await edge.ended() == 0


async def test_a_second_stop_ends_what_runs_in_words(
    edge: Process, fake: upstreams.FakeServer
) -> None:
    fake.behaviour = upstreams.hangs
    kept = Kept(edge.port)
    await kept.send()
    await soon(lambda: fake.seen)
    edge.popen.terminate()
    await soon(lambda: edge.said().count("stopping; requests") == 3)
    edge.popen.terminate()
    assert b"gateway_stopping" in (await kept.receive()).body
    assert await edge.ended(10) == 0


async def test_workers_that_cannot_start_are_one_sentence(valkey_server: ValkeyServer) -> None:
    bad = {"SLOTSERVE_TABLE_KEYS": "short"}
    with edge_process(valkey_server.url, "--workers", "3", settings=bad) as edge:
        assert await edge.ended() == 1
        assert edge.said().count("\n") == 1
        assert "SLOTSERVE_TABLE_KEYS needs at least one key" in edge.said()


async def test_the_number_of_workers_is_a_setting(
    valkey_server: ValkeyServer, publisher: Publisher
) -> None:
    with edge_process(valkey_server.url, settings={"SLOTSERVE_EDGE_WORKERS": "2"}) as edge:
        await edge.is_ready()
        await until_live(publisher, {"edge/1", "edge/2"})


@pytest.mark.parametrize("number", ["0", "many"])
async def test_a_number_that_cannot_be_is_one_sentence(
    valkey_server: ValkeyServer, number: str
) -> None:
    with edge_process(valkey_server.url, settings={"SLOTSERVE_EDGE_WORKERS": number}) as edge:
        assert await edge.ended() == 1
        assert edge.said().startswith("the gateway cannot start: SLOTSERVE_EDGE_WORKERS=")
