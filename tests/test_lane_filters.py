"""Which lanes the overview shows, and which first."""

from datetime import timedelta

import pytest
from django.test import Client

from lanes import clock
from lanes.models import Lane, Phase
from tests import browser_pages as pages
from tests import builders

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> Client:
    """alpha is free and runs qwen, beta is bob's, gamma is the reader's next, delta is closed."""
    now, hour = clock.database_now(), timedelta(hours=1)
    qwen, llama = builders.preset("qwen"), builders.preset("llama")
    lanes = {name: builders.lane(name, default_preset=qwen) for name in ("alpha", "beta", "gamma")}
    builders.lane("delta", enabled=False)
    pages.order(lanes["alpha"], qwen)
    pages.runtime(lanes["alpha"], qwen, Phase.READY)
    bob, reader = builders.person("bob"), builders.person("reader")
    builders.booking(lane=lanes["beta"], owner=bob, preset=llama, start=now - hour, end=now + hour)
    builders.booking(lane=lanes["gamma"], owner=reader, preset=llama, start=now + hour)
    client = Client()
    client.force_login(reader)
    return client


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["gamma", "alpha", "beta", "delta"]),
        ("?show=free", ["gamma", "alpha"]),
        ("?show=mine", ["gamma"]),
        ("?q=BETA", ["beta"]),
        ("?q=qwen+alp", ["alpha"]),
        ("?q=test-host", ["gamma", "alpha", "beta", "delta"]),
        ("?q=nowhere", []),
        ("?show=free&q=beta", []),
        ("?show=nonsense", ["gamma", "alpha", "beta", "delta"]),
    ],
)
def test_what_is_wished_for_is_shown_and_ones_own_first(
    world: Client, query: str, names: list[str]
) -> None:
    answer = world.get(f"/{query}")
    assert [view.lane.slug for view in answer.context["lanes"]] == names
    assert ("No lane is like that" in answer.content.decode()) is (not names)


def test_a_refresh_keeps_the_wish(world: Client) -> None:
    part = world.get("/?q=beta&show=", headers={"HX-Request": "true"}).content.decode()
    assert 'hx-get="/?q=beta"' in part
    assert "alpha" not in part


def test_a_card_alone_is_asked_for_by_its_lane(world: Client) -> None:
    card = world.get("/?lane=beta", headers={"HX-Request": "true"}).content.decode()
    assert card.count("<article") == 1
    assert world.get("/?lane=gone", headers={"HX-Request": "true"}).status_code == 404


def test_snippets_carry_the_address_and_the_model(world: Client) -> None:
    shown = world.get("/lanes/alpha/").content.decode()
    assert "http://127.0.0.1:8001/lanes/alpha/v1" in shown
    assert 'model="qwen"' in shown
    lane = Lane.objects.get(slug="alpha")
    Lane.objects.filter(pk=lane.pk).update(default_preset=None)
    pages.order(lane, None)
    assert 'model="qwen"' in world.get("/lanes/alpha/").content.decode()  # it still runs
    lane.runtimes.update(ended_at=clock.database_now())
    assert 'model="auto"' in world.get("/lanes/alpha/").content.decode()
