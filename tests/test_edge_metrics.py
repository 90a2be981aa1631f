"""/metrics: what it counts, for one edge and for several workers; the dashboard asks no more."""

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import prometheus_client
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from gateway.edge.config import read_config
from gateway.edge.gauges import Reading
from gateway.edge.metrics import EdgeMetrics
from tests import upstreams
from tests.conftest import ValkeyServer
from tests.edge_harness import MEMBER, OWNER, Running, bearer, edge_at, lane, table, until
from tests.edge_harness import upstream as upstream_at
from wire.usage import Usage

ROOT = Path(__file__).resolve().parent.parent
DASHBOARD = ROOT / "docs" / "grafana-edge.json"
NOTHING = Reading(table=None, table_age=None, in_flight={}, waiting={}, excess=0, usage_dropped=0)
USAGE = Usage(
    request_id="r",
    at=1.0,
    route="/v1/chat/completions",
    status=200,
    duration_ms=500.0,
    lane="main",
    preset="qwen",
    queue_ms=300.0,
    first_byte_ms=400.0,
    bytes_in=10,
    bytes_out=1_000,
    prompt_tokens=7,
    cached_tokens=4,
    completion_tokens=3,
)


def numbers(text: str) -> dict[str, float]:
    """Each sample of the text, by its name and labels in order."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}"] = sample.value
    return found


def of(metrics: EdgeMetrics) -> dict[str, float]:
    return numbers(metrics.text().decode())


@pytest.fixture
async def edge(valkey_server: ValkeyServer) -> AsyncIterator[Running]:
    async with edge_at(valkey_server.url) as running:
        yield running


def test_a_record_s_numbers_are_counted_by_lane_and_preset() -> None:
    metrics = EdgeMetrics("e", lambda: NOTHING)
    metrics.served(USAGE)
    found = of(metrics)
    prefix, of_main = "slotserve_edge", "{lane=main}"
    assert found[f"{prefix}_tokens_total{{kind=prompt,lane=main,preset=qwen}}"] == 7
    assert found[f"{prefix}_tokens_total{{kind=cached,lane=main,preset=qwen}}"] == 4
    assert found[f"{prefix}_tokens_total{{kind=completion,lane=main,preset=qwen}}"] == 3
    assert found[f"{prefix}_bytes_total{{direction=out,lane=main}}"] == 1_000
    assert found[f"{prefix}_first_byte_seconds_sum{of_main}"] == pytest.approx(0.4)
    assert found[f"{prefix}_queue_seconds_bucket{{lane=main,le=0.5}}"] == 1
    assert found[f"{prefix}_queue_seconds_bucket{{lane=main,le=0.25}}"] == 0


def test_a_request_that_a_lane_refused_counts_there_but_for_what_only_a_server_does() -> None:
    metrics = EdgeMetrics("e", lambda: NOTHING)
    refused = replace(USAGE, preset="", code="upstream_failed", is_aborted=True)
    metrics.served(replace(refused, prompt_tokens=None, completion_tokens=None, cached_tokens=None))
    found = of(metrics)
    names = ("bytes_total{direction=in,", "bytes_total{direction=out,", "upstream_failures_total{")
    assert [found[f"slotserve_edge_{name}lane=main}}"] for name in names] == [10, 1_000, 1]
    assert found["slotserve_edge_aborted_total{lane=main}"] == 1
    assert found["slotserve_edge_queue_seconds_count{lane=main}"] == 0  # it was not let in
    assert found["slotserve_edge_first_byte_seconds_count{lane=main}"] == 0
    assert not [name for name in found if name.startswith("slotserve_edge_tokens")]


def test_a_reading_is_told_and_a_lane_that_is_gone_is_not() -> None:
    readings = [
        Reading(table(lane(draining=True)), 4.0, {"main": 2}, {"main": 1}, 1, 5, 3, 200),
        Reading(table(lane("other")), 4.0, {}, {}, 1, 6),
    ]
    metrics = EdgeMetrics("e", lambda: readings[0])
    found = of(metrics)
    names = ("in_flight", "waiting", "lane_draining")
    assert [found[f"slotserve_edge_{name}{{lane=main}}"] for name in names] == [2, 1, 1]
    assert found["slotserve_edge_usage_dropped_total{}"] == 5
    assert found["slotserve_edge_usage_spool_bytes{}"] == 200
    assert found["slotserve_edge_table_version{}"] == 1
    del readings[0]
    found = of(metrics)
    assert "slotserve_edge_in_flight{lane=main}" not in found
    assert found["slotserve_edge_in_flight{lane=other}"] == 0
    assert found["slotserve_edge_usage_dropped_total{}"] == 6
    assert found["slotserve_edge_slots_excess_total{}"] == 1


def test_an_edge_without_a_table_has_an_endless_age() -> None:
    assert of(EdgeMetrics("e", lambda: NOTHING))["slotserve_edge_table_age_seconds{}"] == float(
        "inf"
    )


def test_statuses_that_a_model_server_makes_up_add_no_series_without_end() -> None:
    metrics = EdgeMetrics("e", lambda: NOTHING)
    for number in range(1_000):
        metrics.count("/v1/models", 100 + number % 900, "", 0.1)
    told = of(metrics)
    found = [name for name in told if name.startswith("slotserve_edge_requests_total")]
    assert len({re.findall("status=([^}]*)", name)[0] for name in found}) < 75
    assert sum(told[name] for name in found) == 1_000


@pytest.mark.valkey
async def test_paths_that_callers_make_up_are_told_as_a_few_routes(edge: Running) -> None:
    await edge.publish(lane())
    starts = (
        "",
        "/v1",
        "/lanes/main",
        "/lanes/main/upstream",
        "/v1/models",
        "/v1/chat/completions",
    )
    for number in range(5):
        for start in starts:
            await edge.client.get(f"{start}/made-up-{number}", headers=bearer(OWNER))
    told = numbers((await edge.client.get("/metrics")).text)
    found = [name for name in told if name.startswith("slotserve_edge_requests_total")]
    routes = {re.findall("route=([^,]*)", name)[0] for name in found}
    assert routes == {"other", "/upstream/other", "/v1/models/{id}"}


_WORKER = """
import sys
from gateway.edge.config import read_config
from gateway.edge.gauges import Reading
from gateway.edge.metrics import EdgeMetrics
from tests.edge_harness import lane, table
from tests.test_edge_metrics import USAGE
name, age = sys.argv[1], float(sys.argv[2])
metrics = EdgeMetrics(name, lambda: Reading(table(lane()), age, {"main": 2}, {}, 0, 1))
metrics.served(USAGE)
metrics.refresh()
metrics.count("/v1/models", 200, "", 0.2)
if "end" in sys.argv:
    metrics.close()
print(metrics.text().decode() if "end" not in sys.argv else "")
"""


def _worker(folder: Path, *arguments: str) -> dict[str, float]:
    """What a worker with this folder tells."""
    environment = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(folder)}
    environment["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    program = f"import django; django.setup()\n{_WORKER}"
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return numbers(done.stdout)


@pytest.mark.process
def test_any_worker_tells_of_all_and_one_goes_on_where_its_forerunner_ended(
    tmp_path: Path,
) -> None:
    _worker(tmp_path, "host_a:8001/1", "3")
    _worker(tmp_path, "host_a:8001/2", "9")
    found = _worker(tmp_path, "host_a:8001/1", "4")
    assert found["slotserve_edge_requests_total{code=,route=/v1/models,status=200}"] == 3
    assert found["slotserve_edge_tokens_total{kind=prompt,lane=main,preset=qwen}"] == 21
    assert found["slotserve_edge_first_byte_seconds_count{lane=main}"] == 3
    assert found["slotserve_edge_in_flight{lane=main}"] == 4
    assert found["slotserve_edge_table_age_seconds{}"] == 9
    assert found["slotserve_edge_usage_dropped_total{}"] == 3
    assert found["slotserve_edge_info{edge_id=host_a:8001/2}"] == 1
    assert len(list(tmp_path.glob("counter_*"))) == 2


@pytest.mark.process
def test_a_worker_that_is_gone_has_nothing_in_flight(tmp_path: Path) -> None:
    _worker(tmp_path, "e/1", "3", "end")
    found = _worker(tmp_path, "e/2", "4")
    assert found["slotserve_edge_in_flight{lane=main}"] == 2
    assert found["slotserve_edge_table_age_seconds{}"] == 4
    assert found["slotserve_edge_requests_total{code=,route=/v1/models,status=200}"] == 2


@pytest.mark.valkey
async def test_the_text_is_put_together_beside_the_streams(
    edge: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []
    real = prometheus_client.generate_latest

    def noted(registry: CollectorRegistry) -> bytes:
        threads.append(threading.current_thread())
        return real(registry)

    monkeypatch.setattr(prometheus_client, "generate_latest", noted)
    assert (await edge.client.get("/metrics")).status_code == 200
    assert len(threads) == 1
    assert threading.main_thread() not in threads


@pytest.mark.valkey
async def test_metrics_and_ready_tell_what_is_so(edge: Running) -> None:
    async with upstreams.running(upstreams.hangs) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url, slots=1)))
        await edge.chat(model="nope")
        requests = [asyncio.create_task(edge.chat(owner)) for owner in (OWNER, MEMBER)]
        await until(lambda: edge.in_flight == 1 and edge.edge.gate.waiting)
        found = numbers((await edge.client.get("/metrics")).text)
        for request in requests:
            request.cancel()
        await asyncio.gather(*requests, return_exceptions=True)
    assert found["slotserve_edge_in_flight{lane=main}"] == 1
    assert found["slotserve_edge_waiting{lane=main}"] == 1
    outcome = "code=model_not_found,route=/v1/chat/completions,status=404"
    assert found[f"slotserve_edge_requests_total{{{outcome}}}"] == 1
    assert 0 <= found["slotserve_edge_table_age_seconds{}"] < 60
    assert found["slotserve_edge_info{edge_id=edge-1}"] == 1
    ready = (await edge.client.get("/ready")).json()
    assert (ready["status"], ready["lanes"]["main"]["phase"]) == ("ready", "ready")


@pytest.mark.valkey
async def test_failures_and_clients_that_left_are_counted_by_lane(edge: Running) -> None:
    async with upstreams.running(upstreams.dies_before_headers) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        await edge.chat()
        fake.behaviour = upstreams.hangs
        request = asyncio.create_task(edge.chat())
        await until(lambda: edge.in_flight)
        request.cancel()
        await asyncio.gather(request, return_exceptions=True)
        await until(lambda: not edge.in_flight)
    found = numbers((await edge.client.get("/metrics")).text)
    assert found["slotserve_edge_upstream_failures_total{lane=main}"] == 1
    assert found["slotserve_edge_aborted_total{lane=main}"] == 1


@pytest.mark.valkey
async def test_metrics_may_ask_for_a_token(
    valkey_server: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLOTSERVE_METRICS_TOKEN", "for the scraper")
    digest = read_config(8001).metrics_digest
    async with edge_at(valkey_server.url, metrics_digest=digest) as edge:
        shown = {"authorization": "Bearer for the scraper"}
        assert (await edge.client.get("/metrics", headers=shown)).status_code == 200
        for headers in ({}, bearer(OWNER)):
            refused = await edge.client.get("/metrics", headers=headers)
            assert (refused.status_code, refused.json()["error"]["code"]) == (
                401,
                "invalid_api_key",
            )


# --- The dashboard ----------------------------------------------------------------------------


@pytest.mark.valkey
async def test_the_dashboard_asks_only_for_what_there_is(edge: Running) -> None:
    async with upstreams.running(upstreams.llama) as fake:
        await edge.publish(lane(upstream=upstream_at(fake.url)))
        await edge.chat()
        edge.edge.metrics.served(USAGE)
        text = (await edge.client.get("/metrics")).text
    dashboard = json.loads(DASHBOARD.read_text())
    asked = set(re.findall(r"slotserve_edge_\w+", json.dumps(dashboard)))
    there = {re.split("[{ ]", line)[0] for line in text.splitlines() if line[0] != "#"}
    assert asked <= there
    families = {family.name for family in text_string_to_metric_families(text)}
    shown = {name for name in families if any(each.startswith(name) for each in asked)}
    assert families == shown


def test_the_dashboard_is_one_that_grafana_takes() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    assert dashboard["schemaVersion"] >= 39
    variables = {each["name"]: each["type"] for each in dashboard["templating"]["list"]}
    assert variables == {"datasource": "datasource", "lane": "query"}
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids))
    for panel in dashboard["panels"]:
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert {"x", "y", "w", "h"} == panel["gridPos"].keys()
        refs = [target["refId"] for target in panel["targets"]]
        assert len(refs) == len(set(refs)) > 0
