"""What a browser that comes for the first time must fetch, in compressed bytes."""

import gzip
import re

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from lanes.models import Phase
from tests import browser_pages as pages
from tests import builders

pytestmark = pytest.mark.django_db
MOST_BYTES = 250_000
LANES = 12


def _compressed(content: bytes) -> int:
    """As WhiteNoise does it when static files are collected."""
    return len(gzip.compress(content, compresslevel=9))


def _static(name: str) -> bytes:
    path = finders.find(name)
    assert isinstance(path, str), name
    with open(path, "rb") as file:
        return file.read()


def test_the_overview_and_all_that_it_names_stay_within_the_budget() -> None:
    preset = builders.preset("qwen")
    for _ in range(LANES):
        lane = builders.lane(default_preset=preset)
        pages.order(lane, preset, "running qwen as the lane's default")
        pages.runtime(lane, preset, Phase.READY)
    client = Client()
    client.force_login(builders.person())
    html = client.get("/").content
    names = set(re.findall(r'(?:src|href)="/static/([^"]+)"', html.decode()))
    assert {"vendor/tabler.min.css", "slotserve/live.js"} <= names
    sizes = {name: _compressed(_static(name)) for name in names} | {"/": len(html)}
    assert sum(sizes.values()) < MOST_BYTES, sizes
