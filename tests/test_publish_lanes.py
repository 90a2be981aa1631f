"""One lane's part of the route table: phases, switches, reloads, failures, expected times."""

from dataclasses import replace
from typing import Any

import pytest

from gateway.route_facts import Failing, LaneFacts, Server
from gateway.route_lane import lane_route
from tests.builders import at

SERVER = Server(
    generation=3,
    revision_id=7,
    phase="ready",
    started_at=at(-10),
    drain_until=None,
    address="127.0.0.1",
    port=18100,
    sealed_key="sealed",
    preset="qwen",
    engine="llama.cpp",
    aliases=("q", "qwen-14b"),
)
LANE = LaneFacts(
    slug="fast",
    is_enabled=True,
    generation=3,
    target_id=7,
    target="qwen",
    ordered_at=at(0),
    server=SERVER,
    load_seconds=90.0,
)
DRAIN = 30.0
NOW = at(0).timestamp()


def route(**fields: Any) -> Any:
    server = {name[7:]: fields.pop(name) for name in list(fields) if name.startswith("server_")}
    lane = replace(LANE, **fields)
    return lane_route(replace(lane, server=replace(SERVER, **server)) if server else lane, DRAIN)


def test_a_ready_server_is_the_upstream_under_all_its_names() -> None:
    shown = route()
    assert (shown.phase, shown.draining, shown.eta, shown.target) == ("ready", False, None, "qwen")
    assert shown.upstream.names == ("qwen", "q", "qwen-14b")
    assert shown.upstream.base_url == "http://127.0.0.1:18100"


def test_an_address_of_ip_version_6_is_bracketed() -> None:
    assert route(server_address="fd00::1").upstream.base_url == "http://[fd00::1]:18100"


@pytest.mark.parametrize("phase", ["starting", "stopping"])
def test_a_server_that_does_not_serve_is_no_upstream(phase: str) -> None:
    assert route(server_phase=phase).upstream is None


def test_a_draining_server_stays_the_upstream_of_what_runs() -> None:
    shown = route(server_phase="draining", server_drain_until=at(0.25), target_id=8, generation=4)
    assert shown.draining
    assert shown.upstream is not None
    assert shown.drain_until == NOW + 15


def test_another_target_drains_before_the_host_has_said_so() -> None:
    shown = route(target_id=8, target="other", generation=4)
    assert shown.draining
    assert shown.drain_until == NOW + DRAIN
    assert shown.eta == NOW + DRAIN + 90
    assert not shown.cut


def test_an_unload_drains_too() -> None:
    shown = route(target_id=None, target=None, generation=4, load_seconds=None)
    assert (shown.draining, shown.eta, shown.target) == (True, None, None)


def test_a_return_to_what_is_loaded_does_not_drain() -> None:
    assert not route(generation=5).draining


def test_a_drain_lasts_until_the_host_has_called_it_off() -> None:
    assert route(generation=5, server_phase="draining").draining


def test_a_restart_for_another_owner_drains() -> None:
    shown = route(generation=4, fresh_from=4)
    assert (shown.draining, shown.cut) == (True, False)


def test_a_reload_cuts_and_counts_its_load_from_the_order() -> None:
    shown = route(generation=4, fresh_from=4, is_reload=True)
    assert (shown.draining, shown.cut) == (True, True)
    assert shown.eta == NOW + 90


def test_a_reload_that_is_carried_out_cuts_no_more() -> None:
    shown = route(generation=4, fresh_from=4, is_reload=True, server_generation=4)
    assert (shown.draining, shown.cut) == (False, False)


def test_a_load_is_expected_to_end_by_its_estimate() -> None:
    shown = route(server_phase="starting", server_started_at=at(1))
    assert (shown.phase, shown.draining) == ("starting", False)
    assert shown.eta == NOW + 60 + 90


def test_a_target_without_a_server_is_expected_from_its_order() -> None:
    shown = route(server=None)
    assert (shown.phase, shown.upstream, shown.eta) == ("stopped", None, NOW + 90)


def test_a_failed_target_says_why_and_when_it_is_tried_again() -> None:
    shown = route(server=None, failing=Failing(2, at(1), "out of memory"))
    assert (shown.phase, shown.failure) == ("failed", "out of memory")
    assert shown.retry_at == NOW + 60 + 60
    assert shown.eta == shown.retry_at + 90


def test_a_retry_that_is_loading_is_loading_and_not_failed() -> None:
    shown = route(server_phase="starting", failing=Failing(2, at(1), "out of memory"))
    assert (shown.phase, shown.failure, shown.retry_at) == ("starting", None, None)


def test_a_lane_that_was_never_planned_is_stopped() -> None:
    shown = lane_route(LaneFacts(slug="new", is_enabled=False), DRAIN)
    assert (shown.phase, shown.enabled, shown.target, shown.eta) == ("stopped", False, None, None)
    assert not shown.draining
