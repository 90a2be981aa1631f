"""Cards of the overview are kept, and never shown when they are no longer true."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client

from bookings.models import Booking
from lanes import clock
from lanes.models import Gpu, GpuState, Lane, ManualChoice, Order, Phase, Preset, Runtime
from slotserve.templatetags import lane_cards
from tests import browser_pages as pages
from tests import builders
from tests.conftest import forget_kept

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


@pytest.fixture
def lane() -> Lane:
    """Ready in bob's slot, which carol's follows; one card of GPU memory."""
    forget_kept()
    qwen, now = builders.preset("qwen"), clock.database_now()
    lane = builders.lane("demo", default_preset=qwen)
    lane.host.seen_at = now
    lane.host.save()
    card = builders.gpu(memory_bytes=24 * 2**30)
    lane.gpus.add(card)
    GpuState.objects.create(gpu=card, read_at=now, used_bytes=2**33, utilisation=40)
    for name, begins in (("bob", now - HOUR), ("carol", now + HOUR)):
        owner = builders.person(name)
        builders.booking(lane=lane, owner=owner, preset=qwen, start=begins, end=begins + 2 * HOUR)
    pages.order(lane, qwen)
    pages.runtime(lane, qwen, Phase.READY)
    return lane


def overview(name: str = "alice", **headers: str) -> str:
    client = Client()
    client.force_login(builders.person(name))
    return client.get("/", headers=headers).content.decode()


def test_who_sees_the_same_is_shown_the_same_card(
    lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = overview("alice")
    monkeypatch.setattr(lane_cards, "TEMPLATE", "never-rendered.html")
    assert "bob" in first
    assert "bob" in overview("dora")


def _choose(lane: Lane) -> None:
    now = clock.database_now()
    ManualChoice.objects.create(
        lane=lane, preset=lane.default_preset, made_at=now, until=now + HOUR,
        made_by=builders.administrator(),
    )  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        lambda lane: Lane.objects.update(name="Other"),
        lambda lane: Lane.objects.update(enabled=False),
        lambda lane: Preset.objects.update(name="Other"),
        lambda lane: Preset.objects.update(slug="other"),
        lambda lane: Gpu.objects.update(name="Other"),
        lambda lane: Gpu.objects.update(memory_bytes=48 * 2**30),
        lambda lane: GpuState.objects.update(used_bytes=2**34),
        lambda lane: GpuState.objects.update(utilisation=41),
        lambda lane: User.objects.filter(username="bob").update(username="bert"),
        lambda lane: User.objects.filter(username="carol").update(username="cora"),
        lambda lane: Booking.objects.filter(owner__username="carol").delete(),
        lambda lane: Booking.objects.filter(owner__username="bob").update(
            end=clock.database_now() + HOUR / 2
        ),
        lambda lane: Order.objects.update(sentence="for another reason"),
        lambda lane: Order.objects.update(is_fallback=True),
        lambda lane: Runtime.objects.update(phase=Phase.DRAINING),
        _choose,
    ],
)
def test_whatever_changes_is_shown_at_once(lane: Lane, change: Callable[[Lane], object]) -> None:
    before = overview()
    change(lane)
    after = overview()
    forget_kept()
    assert card(after) == card(overview()) != card(before)


def card(page: str) -> str:
    """The part of the page that is the one card."""
    return page.partition("<article")[2].partition("</article>")[0]


@pytest.mark.parametrize(
    ("name", "headers"),
    [
        ("bob", {}),
        ("carol", {}),
        ("alice", {"cookie-zone": "Asia/Tokyo"}),
        ("alice", {"accept-language": "de"}),
    ],
)
def test_who_sees_something_else_gets_a_card_of_their_own(
    lane: Lane, name: str, headers: dict[str, str]
) -> None:
    of_alice = card(overview())
    client = Client()
    if "cookie-zone" in headers:
        client.cookies["zone"] = headers.pop("cookie-zone")
    client.force_login(builders.person(name))
    assert card(client.get("/", headers=headers).content.decode()) != of_alice


def test_a_card_with_something_to_press_is_each_readers_own(lane: Lane) -> None:
    Runtime.objects.update(phase=Phase.FAILED, ended_at=clock.database_now())
    administrator = builders.administrator()
    assert "See its log" not in overview()
    assert "See its log" in overview(administrator.username)
