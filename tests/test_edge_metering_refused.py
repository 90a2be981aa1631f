"""What is recorded and counted of requests that no model server saw."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.conftest import ValkeyServer
from tests.edge_harness import OWNER, STRANGER, Running, edge_at, grant, lane
from tests.edge_harness import upstream as upstream_at
from tests.metering_cast import records
from tests.waiting_cast import chat, gone, waiting

pytestmark = pytest.mark.valkey


@pytest.fixture
async def edge(valkey_server: ValkeyServer) -> AsyncIterator[Running]:
    async with edge_at(valkey_server.url) as running:
        yield running


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ({"grants": (grant(STRANGER, 0, 1e11),)}, "gpu_reserved"),
        ({"grants": (grant(OWNER, 0, 1e11, preset=None),)}, "gpu_exclusive"),
        ({"upstream": None, "phase": "starting"}, "model_loading"),
        ({"draining": True}, "model_switching"),
        ({"draining": True, "target": None}, "model_switching"),
        ({"upstream": None, "phase": "failed"}, "model_failed"),
        ({"upstream": None, "phase": "stopped", "target": None}, "no_model_loaded"),
        ({"upstream": upstream_at(preset="smol"), "target": "smol"}, "model_not_loaded"),
    ],
)
async def test_a_refused_request_is_recorded_with_the_lane_that_refused_it(
    edge: Running, state: dict[str, Any], code: str
) -> None:
    await edge.publish(lane(**state))
    answer = await edge.chat(model="qwen")
    (refused,) = await records(edge.publisher.client, 1)
    assert (refused.code, refused.lane, refused.preset) == (code, "main", "")
    assert answer.headers["x-slotserve-lane"] == "main"
    assert f'bytes_total{{direction="in",lane="main"}} {refused.bytes_in}.0' in await _told(edge)


async def _told(edge: Running) -> str:
    return (await edge.client.get("/metrics")).text


async def test_a_client_that_left_while_it_waited_is_recorded_with_its_lane(edge: Running) -> None:
    await edge.publish(lane(upstream=None, phase="starting"))
    request = chat(edge, "wait=60")
    await waiting(edge, 1)
    await gone(request)
    (left,) = await records(edge.publisher.client, 1)
    assert (left.status, left.is_aborted, left.lane, left.preset) == (499, True, "main", "")
    assert left.queue_ms > 0
