"""The pages of hosts in a real Chromium, with all that a host may have, on desk and phone."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from lanes import clock, joining
from lanes.models import Gpu, GpuState, Host, HostReport
from lanes.version import code_version
from tests import browser_pages as pages
from tests import builders
from tests.browser_pages import DESK, PHONE, Windows

pytest_plugins = ["tests.browser_fixtures"]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        pages.chromium() is None, reason="NOT TESTED HERE: pages in a browser (install chromium)"
    ),
]
GIB = 2**30


@pytest.fixture
def administrator(settings: Settings) -> User:
    settings.SLOTSERVE_HOSTS_DATABASE_URL = "postgres://slotserve_host:secret@10.0.0.1/slotserve"
    settings.SLOTSERVE_HOSTS_REDIS_URL = "redis://slotserve_host:secret@10.0.0.1:6379/0"
    return builders.administrator()


@pytest.fixture
def windows(chromium: Browser, administrator: User, live_server: LiveServer) -> Iterator[Windows]:
    with pages.windows(chromium, live_server.url) as opened:
        yield opened
    assert opened.complaints == []


def machine(key: str, address: str, cards: int = 0, **report: object) -> Host:
    """A host that has just looked, with its report and cards."""
    now = clock.database_now()
    host = Host.objects.create(key=key, name=f"Machine {key}", address=address, seen_at=now)
    said: dict[str, object] = {
        "at": now,
        "version": code_version(),
        "machine": f"{key}.lab.example.org",
        "clock_skew": 0.012,
        "disk_free_bytes": 812 * GIB,
        "disk_total_bytes": 1800 * GIB,
        "driver": "well",
        "driver_words": f"driver 560.35.03, {cards} cards",
        "servers_run_as": "slotserve-models",
        "is_user_shared": False,
    }
    HostReport.objects.create(host=host, **said | report)
    for number in range(cards):
        gpu = Gpu.objects.create(
            host=host,
            uuid=f"GPU-{key}-5f7a1c2e-{number:08x}",
            name="NVIDIA RTX 6000 Ada Generation",
            memory_bytes=48 * GIB,
        )
        GpuState.objects.create(gpu=gpu, read_at=now, number=number, used_bytes=GIB)
    return host


def furnish(administrator: User) -> None:
    """A host that is well, one in every trouble, one that is gone, one never seen; tokens."""
    well = machine("gpu1", "10.0.0.5", cards=4)
    for number, gpu in enumerate(well.gpus.order_by("uuid")):
        if number < 3:
            builders.lane(f"rtx-{number + 1}", host=well).gpus.add(gpu)
    ill = machine(
        "gpu2",
        "203.0.113.9",
        cards=1,
        clock_skew=4.2,
        disk_free_bytes=GIB,
        version="0.0.9+00000000",
        driver="failing",
        driver_words="Driver/library version mismatch",
        is_user_shared=True,
        servers_run_as="root",
    )
    builders.lane("far", host=ill)
    gone = machine("gpu3", "10.0.0.7", cards=1)
    Host.objects.filter(pk=gone.pk).update(
        unreachable_since=clock.database_now() - timedelta(hours=3),
        seen_at=clock.database_now() - timedelta(hours=3),
    )
    Host.objects.create(key="gpu4", name="Machine gpu4", address="127.0.0.1")
    for key in ("gpu5", "gpu5", "gpu6", "gpu7"):
        made = joining.create_join_token(
            actor=administrator, key=key, name=f"Machine {key}", address="10.0.0.9"
        )
        assert isinstance(made, tuple)
        if key == "gpu6":
            joining.join(made[1], "machine")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [DESK, PHONE])
def test_the_page_of_hosts_fits_desk_and_phone(
    windows: Windows, administrator: User, width: int, scheme: str
) -> None:
    furnish(administrator)
    page = windows.open(administrator, width=width, scheme=scheme)
    page.goto("/administration/hosts/")
    expect(page.get_by_role("article", name="Machine gpu1")).to_be_visible()
    first = page.get_by_role("article").first
    expect(first).to_contain_text("Machine gpu3 has not answered since")  # what is worst
    expect(page.get_by_role("button", name="Revoke the join token for")).to_have_count(3)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [DESK, PHONE])
def test_a_host_is_added_by_a_command_that_can_be_copied(
    windows: Windows, administrator: User, width: int, scheme: str
) -> None:
    page = windows.open(administrator, width=width, scheme=scheme)
    page.goto("/administration/hosts/add/")
    page.get_by_label("Key").fill("gpu8")
    page.get_by_label("Address").fill("10.0.0.12")
    page.get_by_role("button", name="Make a join token").click()
    command = page.get_by_label("Command")
    expect(command).to_contain_text("bin/join http")
    expect(command).to_be_in_viewport()
    expect(page.get_by_role("button", name="Copy")).to_be_visible()
    expect(page.get_by_role("button", name="Make a join token")).to_have_count(0)
    assert command.evaluate("command => command.scrollWidth <= command.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
