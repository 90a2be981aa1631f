"""Planning twice at one moment, whatever happened before."""

import random

import pytest

from bookings import choices
from bookings.planning import plan_lanes
from lanes.models import Lane, Order, Preset, PresetFailure, ReloadRequest
from tests import builders
from tests.builders import administrator, at, person
from tests.planning_cast import Clock

pytest_plugins = ["tests.planning_fixtures"]
pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("seed", range(12))
def test_planning_again_at_the_same_moment_changes_nothing(time: Clock, seed: int) -> None:
    chance = random.Random(seed)
    lasting = ("generation", "target", "rule", "booking_id_for", "sentence")
    presets = [builders.preset() for _ in range(3)]
    for _ in range(3):
        _random_lane(chance, presets)

    for minute in sorted(chance.uniform(0, 90) for _ in range(8)):
        time.plan(minute)
        ordered = list(Order.objects.order_by("pk").values(*lasting))
        plan_lanes()  # knowing its own orders it may see further ahead: a later reconsider_at
        again = plan_lanes()
        assert (again.changed, again.lost, again.failed) == ((), (), ())
        assert list(Order.objects.order_by("pk").values(*lasting)) == ordered
        _something_happens(chance, presets, minute)


def _random_lane(chance: random.Random, presets: list[Preset]) -> None:
    """A lane with a few bookings, some pending or of the whole GPU, and perhaps a default."""
    lane = builders.lane(
        default_preset=chance.choice([None, *presets]),
        restart_on_owner_change=chance.random() < 0.5,
    )
    for minute in (0, 20, 40, 60):
        kind = chance.choice(["model", "model", "gpu"])
        builders.booking(
            lane=lane,
            kind=kind,
            preset=chance.choice(presets) if kind == "model" else None,
            start=at(minute + chance.choice([0, 3, 8])),
            end=at(minute + chance.choice([15, 20])),
            state=chance.choice(["confirmed", "confirmed", "pending", "cancelled"]),
            owner=person(chance.choice(["owner", "member"])),
        )


def _something_happens(chance: random.Random, presets: list[Preset], minute: float) -> None:
    """What people and hosts do between two ticks."""
    lane = chance.choice(list(Lane.objects.all()))
    what = chance.randrange(4)
    if what == 0:
        builders.revision(chance.choice(presets))
    elif what == 1:
        ReloadRequest.objects.update_or_create(lane=lane, defaults={"asked_at": at(minute)})
    elif what == 2:
        chosen = chance.choice([None, *presets])
        choices.choose(lane, preset=chosen, until=at(minute + 10), actor=administrator())
    elif (order := lane.order).target:
        PresetFailure.objects.update_or_create(
            lane=lane,
            revision=order.target,
            defaults={"count": 1, "failed_at": at(minute), "booking_id_for": order.booking_id_for},
        )
