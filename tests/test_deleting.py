"""What may be deleted, and the refusals that list what stands in the way."""

import pytest

from bookings.deleting import InTheWay, delete_host, delete_lane, delete_preset
from lanes import clock
from lanes.models import (
    Host,
    Lane,
    LaneEvent,
    ManualChoice,
    Order,
    Phase,
    Preset,
    PresetRevision,
    Runtime,
)
from lanes.refusals import Refusal
from tests import builders
from tests.builders import NOON, administrator, at, person

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "database_now", lambda: NOON)


def runtime(lane: Lane, preset: Preset, **fields: object) -> Runtime:
    return Runtime.objects.create(
        lane=lane,
        revision=preset.revisions.get(),
        generation=1,
        phase=Phase.READY,
        phase_since=NOON,
        started_at=NOON,
        address="127.0.0.1",
        port=1,
        **fields,
    )


def code(answer: object) -> str:
    assert isinstance(answer, Refusal)
    return answer.code


def test_a_lane_that_was_never_booked_goes_with_its_history() -> None:
    lane = builders.lane()
    runtime(lane, builders.preset(), ended_at=NOON)
    LaneEvent.objects.create(lane=lane, at=NOON, kind="order", sentence="loading")
    Order.objects.create(lane=lane, ordered_at=NOON, decided_at=NOON)

    assert delete_lane(lane, actor=administrator()) is None
    assert not Lane.objects.exists()
    assert not Runtime.objects.exists()


def test_a_model_server_and_coming_bookings_are_listed() -> None:
    lane = builders.lane("busy")
    alive = runtime(lane, builders.preset())
    booking = builders.booking(lane=lane, state="pending")

    refusal = delete_lane(lane, actor=administrator())

    assert isinstance(refusal, InTheWay)
    assert refusal.runtime_ids == (alive.pk,)
    assert refusal.booking_ids == (booking.pk,)
    assert "a model server on busy (ready)" in refusal.words
    assert f"#{booking.pk}" in refusal.words


def test_a_lane_that_has_been_booked_is_to_be_disabled_instead() -> None:
    lane = builders.lane()
    builders.booking(lane=lane, start=at(-60), end=NOON)

    refusal = delete_lane(lane, actor=administrator())

    assert code(refusal) == "has_history"
    assert refusal is not None
    assert "disable it instead" in refusal.words


def test_many_bookings_are_counted_rather_than_listed() -> None:
    lane = builders.lane()
    for hour in range(12):
        builders.booking(lane=lane, start=at(60 * hour), state="pending")

    refusal = delete_lane(lane, actor=administrator())

    assert refusal is not None
    assert "and 2 more" in refusal.words


def test_a_host_goes_with_its_cards_and_unused_files() -> None:
    host = builders.host("old")
    builders.gpu(host=host)
    builders.model_file(host=host)

    assert delete_host(host, actor=administrator()) is None
    assert not Host.objects.filter(key="old").exists()


def test_a_hosts_lanes_and_presets_are_listed() -> None:
    host = builders.host("old")
    builders.lane("lane-a", host=host)
    builders.preset("small", model_file=builders.model_file(host=host))

    refusal = delete_host(host, actor=administrator())

    assert code(refusal) == "in_use"
    assert refusal is not None
    assert "lanes lane-a and presets small" in refusal.words


def test_a_host_whose_lane_is_booked_is_refused_with_the_booking() -> None:
    booking = builders.booking()

    refusal = delete_host(booking.lane.host, actor=administrator())

    assert isinstance(refusal, InTheWay)
    assert refusal.booking_ids == (booking.pk,)


def test_an_unused_preset_goes_with_its_revisions_and_past_servers() -> None:
    preset, lane = builders.preset(), builders.lane()
    runtime(lane, preset, ended_at=NOON)
    ManualChoice.objects.create(
        lane=lane, preset=preset, made_at=at(-9), until=at(-1), ended_at=at(-1)
    )

    assert delete_preset(preset, actor=administrator()) is None
    assert not PresetRevision.objects.exists()


def test_a_preset_that_runs_or_is_booked_is_refused() -> None:
    preset = builders.preset()
    alive = runtime(builders.lane(), preset)
    booking = builders.booking(preset=preset)

    refusal = delete_preset(preset, actor=administrator())

    assert isinstance(refusal, InTheWay)
    assert (refusal.runtime_ids, refusal.booking_ids) == ((alive.pk,), (booking.pk,))


def test_a_preset_that_lanes_want_is_refused_with_their_names() -> None:
    preset = builders.preset()
    lane = builders.lane("wants-it", default_preset=preset)
    ManualChoice.objects.create(lane=lane, preset=preset, made_at=at(-1), until=at(60))

    refusal = delete_preset(preset, actor=administrator())

    assert code(refusal) == "in_use"
    assert refusal is not None
    assert "the default of wants-it and chosen on wants-it" in refusal.words


def test_a_preset_that_was_booked_or_pinned_is_kept() -> None:
    booked, pinned = builders.preset(), builders.preset()
    booking = builders.booking(
        preset=booked, pinned_revision=pinned.current, start=at(-60), end=NOON
    )

    refusal = delete_preset(booked, actor=administrator())
    assert isinstance(refusal, InTheWay)
    assert refusal.code == "has_history"
    assert refusal.booking_ids == (booking.pk,)
    assert f"bookings #{booking.pk}" in refusal.words
    assert code(delete_preset(pinned, actor=administrator())) == "has_history"


def test_members_may_delete_nothing() -> None:
    lane, preset, member = builders.lane(), builders.preset(), person("member")

    assert code(delete_lane(lane, actor=member)) == "not_administrator"
    assert code(delete_host(lane.host, actor=member)) == "not_administrator"
    assert code(delete_preset(preset, actor=member)) == "not_administrator"
    assert Lane.objects.exists()
