"""A day of a lane's cards: a ring of minutes."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction

from lanes.gpus import history, weeks
from lanes.models import Lane, LaneMinute, LaneStretch
from tests import builders, gpu_cast
from tests.conftest import Moment
from tests.gpu_cast import GIB, poll
from tests.nvml.driver import FakeCard, FakeDriver

pytest_plugins = ["tests.nvml.fixtures"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def lane(moment: Moment) -> Lane:
    """A lane on GPU-a; it is noon."""
    return gpu_cast.gpu_lane()


def test_a_minute_has_the_most_memory_and_the_mean_of_the_rest(
    lane: Lane, driver: FakeDriver, moment: Moment
) -> None:
    for used, use, milliwatts in ((3, 10, 50_000), (9, 30, 70_000), (6, 50, 90_000)):
        driver.change(used=used * GIB, utilisation=use, milliwatts=milliwatts)
        poll(moment)
    row = LaneMinute.objects.get()
    assert (row.minute, row.slot, row.samples) == (builders.at(0), 720, 3)
    assert (row.used_bytes, row.utilisation, row.power_watts) == (9 * GIB, 30.0, 70.0)


def test_a_lane_of_two_cards_has_the_sum_of_memory_and_power_and_the_mean_of_use(
    lane: Lane, driver: FakeDriver, moment: Moment
) -> None:
    lane.gpus.add(builders.gpu())
    other = lane.gpus.exclude(uuid="GPU-a").get()
    cards = [FakeCard(used=GIB, utilisation=10), FakeCard(other.uuid, used=2 * GIB, utilisation=30)]
    driver.write(cards=cards)
    poll(moment)
    row = LaneMinute.objects.get()
    assert (row.used_bytes, row.utilisation, row.power_watts) == (3 * GIB, 20.0, 60.0)


def test_a_card_that_tells_little_leaves_the_rest_empty(
    lane: Lane, driver: FakeDriver, moment: Moment
) -> None:
    driver.change(utilisation=-1, milliwatts=-1)
    poll(moment, 2)
    row = LaneMinute.objects.get()
    assert (row.samples, row.utilisation, row.power_watts) == (2, None, None)


def test_nothing_is_written_of_memory_that_cannot_be_read(
    lane: Lane, driver: FakeDriver, moment: Moment
) -> None:
    driver.change(used=-1)
    poll(moment)
    assert not LaneMinute.objects.exists()


def test_the_ring_never_holds_more_than_a_day(
    lane: Lane, driver: FakeDriver, moment: Moment
) -> None:
    began = moment.now
    LaneMinute.objects.bulk_create(
        LaneMinute(
            lane=lane,
            slot=(720 + n) % 1440,
            minute=began + timedelta(minutes=n),
            used_bytes=n,
            outside_bytes=0,
        )
        for n in range(1440)
    )
    moment.now = began + timedelta(days=1)
    driver.change(used=5 * GIB)
    poll(moment, 13)
    assert LaneMinute.objects.count() == 1440
    today = list(history.of_lane(lane, moment.now))
    assert [row.used_bytes for row in today[-2:]] == [5 * GIB, 5 * GIB]
    assert len(today) == 1440
    assert today == sorted(today, key=lambda row: row.minute)
    assert today[0].minute == began + timedelta(minutes=2)


def test_what_is_older_than_a_day_is_not_shown(
    lane: Lane, driver: FakeDriver, moment: Moment
) -> None:
    poll(moment)
    moment.now += timedelta(days=1, minutes=1)
    assert not history.of_lane(lane, moment.now).exists()


@pytest.mark.parametrize("slot", [5, 1440])
def test_the_database_forbids_a_second_row_of_a_minute_and_a_minute_that_is_none(
    lane: Lane, slot: int
) -> None:
    values = {"lane": lane, "minute": builders.at(0), "used_bytes": 0, "outside_bytes": 0}
    LaneMinute.objects.create(slot=5, **values)
    with pytest.raises(IntegrityError), transaction.atomic():
        LaneMinute.objects.create(slot=slot, **values)


def test_a_week_is_kept_by_five_minutes(lane: Lane, driver: FakeDriver, moment: Moment) -> None:
    for number, (used, use) in enumerate([(3, 10), (9, 30), (6, 50), (2, 20), (1, 40), (8, 90)]):
        moment.now = builders.at(number)
        driver.change(used=used * GIB, utilisation=use)
        poll(moment)
    (row,) = weeks.of_lane(lane, moment.now)
    assert (row.minute, row.samples) == (builders.at(0), 5)
    assert (row.used_bytes, row.utilisation) == (9 * GIB, 30.0)


def test_the_ring_never_holds_more_than_a_week(
    lane: Lane, driver: FakeDriver, moment: Moment
) -> None:
    for day in (0, 7):
        for number in range(3):
            moment.now = builders.at(day * 24 * 60 + 5 * number)
            driver.change(used=(day + 1) * GIB)
            poll(moment)
    found = LaneStretch.objects.order_by("minute")
    assert [row.used_bytes // GIB for row in found] == [8, 8]
    assert not weeks.of_lane(lane, moment.now + weeks.WEEK).exists()


def test_what_a_pause_left_unfinished_is_finished_after_it(
    lane: Lane, driver: FakeDriver, moment: Moment
) -> None:
    poll(moment)
    moment.now = builders.at(1)
    poll(moment)
    moment.now = builders.at(8)
    poll(moment)
    (row,) = weeks.of_lane(lane, moment.now)
    assert row.samples == 2


@pytest.mark.parametrize("slot", [5, 2016])
def test_the_database_forbids_a_second_row_of_a_stretch_and_a_stretch_that_is_none(
    lane: Lane, slot: int
) -> None:
    values = {"lane": lane, "minute": builders.at(0), "samples": 1}
    values |= {"used_bytes": 0, "outside_bytes": 0}
    LaneStretch.objects.create(slot=5, **values)
    with pytest.raises(IntegrityError), transaction.atomic():
        LaneStretch.objects.create(slot=slot, **values)
