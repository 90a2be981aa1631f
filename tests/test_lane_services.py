"""Hosts, model files and lanes."""

from typing import Any

import pytest

from lanes import services
from lanes.models import Gpu, Host, Lane, LaneEvent
from lanes.refusals import Refusal
from tests import builders
from tests.nvml.driver import FakeCard, FakeDriver

pytest_plugins = ["tests.nvml.fixtures"]
pytestmark = pytest.mark.django_db


def save(lane: Lane | None = None, **wish: Any) -> Lane | Refusal:
    """Save as an administrator; a new lane is on the test host."""
    wish.setdefault("actor", builders.administrator())
    if lane is None:
        wish = {"slug": "big", "host": builders.host(), **wish}
    return services.save_lane(lane, **wish)


def saved(lane: Lane | None = None, **wish: Any) -> Lane:
    """The same, where it must succeed."""
    done = save(lane, **wish)
    assert isinstance(done, Lane), done
    return done


def refused(lane: Lane | None = None, **wish: Any) -> str:
    """The refusal's code, where it must not."""
    done = save(lane, **wish)
    assert isinstance(done, Refusal), done
    return done.code


def test_a_host_is_registered_with_its_cards_and_again_changes_nothing(
    driver: FakeDriver,
) -> None:
    first = services.register_host("gpu-1", "The big one")
    again = services.register_host("gpu-1", "Another name")
    assert first == again
    assert Host.objects.get().name == "The big one"
    assert [(g.uuid, g.name, g.memory_bytes) for g in Gpu.objects.all()] == [
        ("GPU-a", "NVIDIA GeForce RTX 4090", 24 * 2**30)
    ]


def test_a_new_card_is_added_and_one_that_is_not_seen_stays(driver: FakeDriver) -> None:
    services.register_host("gpu-1", "Host")
    driver.write(cards=[FakeCard("GPU-b")])
    services.register_host("gpu-1", "Host")
    assert {g.uuid for g in Gpu.objects.all()} == {"GPU-a", "GPU-b"}


@pytest.mark.usefixtures("no_driver")
def test_without_a_driver_a_host_has_no_cards() -> None:
    services.register_host("cpu-1", "Host")
    assert not Gpu.objects.exists()


def test_a_host_key_that_cannot_name_a_queue_is_refused() -> None:
    refusal = services.register_host("Not a key", "Host")
    assert isinstance(refusal, Refusal)
    assert not Host.objects.exists()


def test_members_may_save_no_lanes() -> None:
    member = builders.person("member")
    assert refused(actor=member) == "not_administrator"
    assert refused(builders.lane(), actor=member, enabled=False) == "not_administrator"


def test_a_lane_is_made_with_what_was_said_and_defaults() -> None:
    preset, card = builders.preset(), builders.gpu()
    lane = saved(gpus=[card], default_preset=preset, needs_approval=True)
    assert (lane.name, lane.enabled, lane.needs_approval) == ("big", True, True)
    assert (lane.default_preset, list(lane.gpus.all())) == (preset, [card])
    assert LaneEvent.objects.get().sentence == "administrator made this lane."


def test_an_edit_changes_what_was_said_and_says_what_changed() -> None:
    lane = builders.lane(needs_approval=True)
    saved(lane, enabled=False, name=lane.name, gpus=[builders.gpu()])
    lane.refresh_from_db()
    assert (lane.enabled, lane.needs_approval) == (False, True)
    assert LaneEvent.objects.get().sentence == "administrator changed enabled, GPUs."


def test_an_edit_that_changes_nothing_is_no_event() -> None:
    lane = builders.lane()
    saved(lane, enabled=True, slug=lane.slug, host=lane.host, gpus=[], default_preset=None)
    assert not LaneEvent.objects.exists()


def test_a_saved_lane_asks_for_a_plan(django_capture_on_commit_callbacks: Any) -> None:
    with django_capture_on_commit_callbacks() as asked:
        saved()
    assert len(asked) == 1


def test_a_default_can_be_taken_away() -> None:
    lane = builders.lane(default_preset=builders.preset())
    assert saved(lane, default_preset=None).default_preset is None


def test_a_default_whose_model_is_on_another_host_is_refused() -> None:
    far = builders.preset(model_file=builders.model_file(host=builders.host("far")))
    lane = builders.lane()
    assert refused(lane, default_preset=far) == "wrong_host"
    lane.refresh_from_db()
    assert lane.default_preset is None


def test_a_lane_keeps_its_short_name_and_its_host() -> None:
    lane = builders.lane()
    assert refused(lane, slug="renamed") == "invalid"
    assert refused(lane, host=builders.host("far")) == "wrong_host"


def test_a_card_of_another_host_or_lane_is_refused() -> None:
    card = builders.gpu()
    saved(gpus=[card])
    assert refused(slug="second", gpus=[card]) == "gpu_taken"
    assert refused(slug="third", gpus=[builders.gpu(host=builders.host("far"))]) == "wrong_host"
    assert Lane.objects.count() == 1


@pytest.mark.parametrize(
    "wish", [{"slug": "Big Lane"}, {"slug": ""}, {"name": "x" * 101}, {"host": None}]
)
def test_a_lane_that_breaks_its_model_s_rules_is_refused(wish: dict[str, Any]) -> None:
    assert refused(**wish) == "invalid"


def test_a_short_name_is_one_lane_s() -> None:
    saved()
    assert refused() == "invalid"
