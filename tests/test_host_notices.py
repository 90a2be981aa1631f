"""Who is told of a host in trouble, what, and how often."""

from datetime import timedelta

import pytest

from bookings.host_notices import AWAY, BACK, tell_hosts
from bookings.models import Booking, State
from lanes import clock, host_watch
from lanes.models import Host, HostReport, Lane, LaneEvent, Notice
from lanes.version import code_version
from notices.models import Delivery
from notices.routing import route
from tests import builders
from tests.builders import NOON, at
from tests.conftest import Moment

pytestmark = pytest.mark.django_db


@pytest.fixture
def lane() -> Lane:
    builders.administrator()
    return builders.lane("left", host=builders.host("gpu1"))


def look(lane: Lane, *, is_there: bool) -> int:
    """One beat in which the host has looked or has long not; how many notices it makes."""
    seen = clock.database_now() - timedelta(seconds=0 if is_there else 60)
    Host.objects.filter(pk=lane.host_id).update(seen_at=seen, asked_at=seen + timedelta(seconds=1))
    host_watch.watch_hosts()
    return tell_hosts(clock.database_now())


def come_back(lane: Lane, moment: Moment) -> int:
    """It looks with each minute until its alarm is over."""
    told = 0
    for _ in range(3):
        moment.now += timedelta(minutes=1)
        told += look(lane, is_there=True)
    return told


def told(**wanted: object) -> list[str]:
    return list(Notice.objects.filter(**wanted).order_by("pk").values_list("sentence", flat=True))


def test_whose_slot_is_in_progress_is_told_once_what_happens(lane: Lane, moment: Moment) -> None:
    builders.booking(lane=lane, start=at(-10))
    assert look(lane, is_there=False) == 2
    assert look(lane, is_there=False) == 0
    assert told(recipient__username="owner") == [
        "gpu1 does not answer, so nothing is known of left, where your slot until 12:50 UTC is."
    ]
    advice = Notice.objects.get(recipient__username="owner").advice
    assert "503 host_unreachable" in advice
    assert "The booking stays and nothing is lost by waiting" in advice
    assert "cancel it, or move it to another lane" in advice
    assert len(told(recipient__username="administrator")) == 1


def test_they_are_told_once_that_it_is_back(lane: Lane, moment: Moment) -> None:
    builders.booking(lane=lane, start=at(-10))
    look(lane, is_there=False)
    assert come_back(lane, moment) == 2
    assert come_back(lane, moment) == 0
    assert told(recipient__username="owner")[1:] == [
        "gpu1 answers now: your slot on left until 12:50 UTC goes on as booked."
    ]
    assert told(recipient__username="administrator")[1:] == ["gpu1 answers now."]


def test_who_has_an_address_gets_both_by_e_mail(lane: Lane, moment: Moment) -> None:
    owner = builders.person(email="owner@example.org")
    builders.booking(lane=lane, start=at(-10), owner=owner)
    look(lane, is_there=False)
    come_back(lane, moment)
    route(moment.now)
    assert Delivery.objects.filter(notice__recipient=owner, channel="mail").count() == 2


# start in minutes, state -> told
SLOTS = [
    (-10, State.CONFIRMED, True),
    (59, State.CONFIRMED, True),
    (61, State.CONFIRMED, False),  # time enough to tell later
    (-60, State.CONFIRMED, False),  # over
    (-10, State.CANCELLED, False),
    (10, State.PENDING, False),
]


@pytest.mark.parametrize(("start", "state", "is_told"), SLOTS)
def test_who_is_concerned(
    lane: Lane, moment: Moment, start: int, state: State, is_told: bool
) -> None:
    builders.booking(lane=lane, start=at(start), state=state)
    look(lane, is_there=False)
    assert bool(told(recipient__username="owner")) == is_told


def test_a_slot_that_draws_near_is_told_of_when_it_does(lane: Lane, moment: Moment) -> None:
    builders.booking(lane=lane, start=at(120))
    look(lane, is_there=False)
    assert told(recipient__username="owner") == []
    moment.set(61)
    look(lane, is_there=False)
    assert "your slot from 14:00 UTC" in told(recipient__username="owner")[0]


def test_slots_on_other_hosts_are_nobody_s_worry(lane: Lane, moment: Moment) -> None:
    builders.booking(start=at(-10))
    look(lane, is_there=False)
    assert told(recipient__username="owner") == []


def test_an_administrator_s_own_slot_is_one_notice_each(lane: Lane, moment: Moment) -> None:
    builders.booking(lane=lane, start=at(-10), owner=builders.administrator())
    assert look(lane, is_there=False) == 1
    assert come_back(lane, moment) == 1
    assert "your slot" in told()[0]


@pytest.mark.parametrize("change", ["cancelled", "moved"])
def test_a_booking_that_was_given_up_is_not_told_of_the_return(
    lane: Lane, moment: Moment, change: str
) -> None:
    booking = builders.booking(lane=lane, start=at(30))
    look(lane, is_there=False)
    change_to = {"state": State.CANCELLED} if change == "cancelled" else {"lane": builders.lane()}
    Booking.objects.filter(pk=booking.pk).update(**change_to)
    come_back(lane, moment)
    assert len(told(recipient__username="owner")) == 1


def test_a_slot_that_ended_meanwhile_is_said_to_have(lane: Lane, moment: Moment) -> None:
    builders.booking(lane=lane, start=at(-10))
    look(lane, is_there=False)
    moment.set(180)
    look(lane, is_there=False)
    come_back(lane, moment)
    assert told(recipient__username="owner")[-1] == (
        "gpu1 answers now: your slot on left has ended meanwhile, at 12:50 UTC."
    )


def test_a_host_that_vanishes_again_within_the_hour_is_told_of_after_it(
    lane: Lane, moment: Moment
) -> None:
    look(lane, is_there=False)
    come_back(lane, moment)
    moment.set(10)
    assert look(lane, is_there=False) == 0
    moment.set(59)
    assert look(lane, is_there=False) == 0
    moment.set(61)
    assert look(lane, is_there=False) == 1
    assert come_back(lane, moment) == 1


def test_one_that_an_earlier_release_found_away_is_not_back_before_it_is(
    lane: Lane, moment: Moment
) -> None:
    builders.booking(lane=lane, start=at(-10))
    look(lane, is_there=False)
    Notice.objects.all().delete()
    Host.objects.update(alarm_times={})
    assert tell_hosts(moment.now) == 0
    assert look(lane, is_there=False) == 2
    assert tell_hosts(moment.now) == 0
    assert {notice.kind for notice in Notice.objects.all()} == {AWAY}


def test_one_that_vanishes_again_before_its_return_was_told_is_not_back(
    lane: Lane, moment: Moment
) -> None:
    builders.booking(lane=lane, start=at(-10))
    look(lane, is_there=False)
    for minute in (1, 2, 3):
        moment.set(minute)
        Host.objects.update(seen_at=moment.now)
        host_watch.watch_hosts()  # over, and nobody is told at once
    moment.set(5)
    assert look(lane, is_there=False) == 0
    assert not Notice.objects.filter(kind=BACK).exists()
    assert come_back(lane, moment) == 2
    assert come_back(lane, moment) == 0


def test_one_that_looks_for_the_first_time_is_not_said_to_be_back(
    lane: Lane, moment: Moment
) -> None:
    long_ago = moment.now - timedelta(minutes=1)
    Host.objects.update(seen_at=None, asked_at=long_ago)
    host_watch.watch_hosts()
    tell_hosts(moment.now)
    come_back(lane, moment)
    assert told()[-1] == "gpu1 answers now."
    assert [event.sentence for event in LaneEvent.objects.order_by("pk")][-1] == (
        "gpu1 answers for the first time, and has looked at its servers"
    )


def test_a_disk_that_hovers_at_its_limit_is_told_of_once(lane: Lane, moment: Moment) -> None:
    gib = 2**30
    report = HostReport.objects.create(
        host=lane.host,
        at=NOON,
        version=code_version(),
        machine="gpu1",
        clock_skew=0.0,
        disk_free_bytes=10 * gib,
        disk_total_bytes=50 * gib,
        driver="none",
        driver_words="",
        servers_run_as="models",
        is_user_shared=False,
    )
    for minute in range(55):
        moment.set(minute)
        report.disk_free_bytes = int((1.9 if minute % 2 else 3.5) * gib)
        report.save()
        look(lane, is_there=True)
    assert len(told()) == 1
    assert "The data folder's disk of gpu1 has" in told()[0]


def test_no_trouble_costs_few_queries(
    lane: Lane, moment: Moment, django_assert_num_queries: object
) -> None:
    with django_assert_num_queries(4):  # type: ignore[operator]  # alarms, notices twice, hosts
        tell_hosts(moment.now)
