"""Fixtures of tests that start model servers; each checks that nothing is left behind."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from lanes import records, watch
from lanes.engines import registry
from lanes.stopping import stop_all
from tests import fleet, ports


@pytest.fixture
def fleet_settings(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Settings]:
    """A data folder of its own, the fake engine, short limits; afterwards no process is left."""
    settings.SLOTSERVE_DATA = tmp_path
    settings.SLOTSERVE_HOST_KEY = "test-host"
    model_servers = ports.of_model_servers()
    settings.SLOTSERVE_PORT_FIRST = model_servers[0]
    settings.SLOTSERVE_PORT_LAST = model_servers[-1]
    settings.SLOTSERVE_DRAIN_SECONDS = 1.0
    settings.SLOTSERVE_STOP_TIMEOUT_SECONDS = 2.0
    settings.SLOTSERVE_LOAD_TIMEOUT_SECONDS = 20.0
    monkeypatch.setitem(registry.ENGINES, "llama.cpp", fleet.FakeEngine())
    yield settings
    list(stop_all(1.0))
    time.sleep(0.05)  # a shim that was forked for a test's last look shows itself once it is exec'd
    list(stop_all(1.0))
    left = fleet.processes_of(records.installation_id())
    watch.reap()
    assert not left, f"left behind: {left}"
    told = [path.read_text() for path in tmp_path.glob("starts-*")]
    assert not [text for text in told if "DOUBLE" in text], "two servers ran on one lane"


@pytest.fixture
def foreign_server() -> Iterator[int]:
    """The port of a server that is not ours and says 200 to everything."""
    with fleet.Foreigner() as foreigner:
        yield foreigner.port
