"""The whole product through bin/up for the stories of a module, and windows on it."""

import sys
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser

from slotserve.stack.parts import ROOT
from tests import browser_pages as pages
from tests.running import Up
from tests.story_people import (
    ADMIN,
    FIRST_START_SECONDS,
    MAKE_MEMBERS,
    OTHER,
    OWNER,
    PASSWORD,
    People,
    Stage,
    manage,
)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """bin/up on a fresh data folder, with two members."""
    data = tmp_path_factory.mktemp("stories") / "data"
    more = {"SLOTSERVE_VENV": sys.prefix, "SLOTSERVE_ADMIN_PASSWORD": PASSWORD}
    product = Up(data, sys.executable, str(ROOT / "bin" / "up"), **more)
    try:
        product.start().wait_for("SlotServe runs.", FIRST_START_SECONDS)
        manage(product, "shell", "-c", MAKE_MEMBERS)
        scopes = ("--scope", "inference", "--scope", "admin")
        tokens = {
            name: manage(product, "create_token", name, *scopes).strip()
            for name in (ADMIN, OWNER, OTHER)
        }
        headers = {"Authorization": f"Bearer {tokens[ADMIN]}"}
        address = f"http://127.0.0.1:{product.ports[0]}/api/v1/"
        with httpx.Client(base_url=address, headers=headers, timeout=60) as rest:
            yield Stage(product, rest, tokens)
    finally:
        product.end()


@pytest.fixture
def people(chromium: Browser, stage: Stage) -> Iterator[People]:
    """Windows on the running product, whose lane is free at first; nobody may have complained."""
    stage.clear()
    with pages.windows(chromium, stage.web) as windows:
        yield People(stage, windows)
    assert windows.complaints == []
