"""The line of a log that a failure was read in: for those who may read the log, nobody else."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client

from bookings.failure_notices import tell_failures
from lanes import clock
from lanes.failures.causes import Cause, Kind
from lanes.log_reading import may_read
from lanes.models import Lane, Notice, Order, Phase, PresetFailure, Runtime
from lanes.reporting import report_failed
from lanes.seeing import see
from lanes.steps import Process
from tests import browser_pages as pages
from tests import builders

pytestmark = pytest.mark.django_db
LINE = "E srv: cannot answer 'write to Alice Liddell about it'"
PLACES = (
    "/",
    "/lanes/demo/",
    "/bookings/",
    "/notices/",
    "/api/v1/lanes/",
    "/api/v1/lanes/demo/",
    "/api/v1/lanes/demo/events/",
    "/api/v1/bookings/",
    "/api/v1/notices/",
)
WITH_LINE = {"/", "/lanes/demo/", "/api/v1/lanes/", "/api/v1/lanes/demo/"}


@pytest.fixture
def owner() -> User:
    return builders.person("owner", email="owner@example.org")


@pytest.fixture
def lane(owner: User) -> Lane:
    """A lane whose server has failed as its host reports it; its booker and others were told."""
    preset = builders.preset("qwen")
    lane = builders.lane("demo", default_preset=preset)
    now = clock.database_now()
    lane.host.seen_at = now
    lane.host.save()
    pages.order(lane, preset, "loading qwen")
    booking = builders.booking(lane=lane, owner=owner, preset=preset, start=now)
    Order.objects.update(booking_id_for=booking.pk)
    pages.runtime(lane, preset, Phase.STARTING)
    builders.administrator()
    sight = see(lane)
    assert sight is not None
    assert sight.runtime is not None
    assert sight.seen.process is Process.UNBORN
    cause = Cause(Kind.UNKNOWN, "It ended with status 1.", LINE, "Look at the server's log.")
    assert report_failed(sight, sight.runtime, cause, counts=True, was_steady=False)
    assert tell_failures(now) == 2
    return lane


def read(person: User, place: str) -> str:
    """What this person is shown there."""
    client = Client()
    client.force_login(person)
    answer = client.get(place)
    assert answer.status_code == 200, place
    return answer.content.decode()


@pytest.mark.parametrize("place", PLACES)
def test_members_see_no_line_anywhere(lane: Lane, owner: User, place: str) -> None:
    for person in (owner, builders.person("member")):
        assert "Alice" not in read(person, place)


@pytest.mark.parametrize("place", PLACES)
def test_administrators_see_it_where_the_failure_is(lane: Lane, place: str) -> None:
    assert ("Alice" in read(builders.administrator(), place)) is (place in WITH_LINE)


def test_members_see_sentence_and_advice(lane: Lane) -> None:
    page = read(builders.person("member"), "/lanes/demo/")
    assert "It ended with status 1." in page
    assert "Look at the server&#x27;s log." in page


def test_no_notice_and_no_event_holds_it(lane: Lane) -> None:
    assert Runtime.objects.get().failure_line == PresetFailure.objects.get().failure_line == LINE
    told = [f"{each.sentence} {each.advice}" for each in Notice.objects.all()]
    told += lane.events.values_list("sentence", flat=True)
    assert len(told) == 3
    assert "Alice" not in " ".join(told)


@pytest.mark.parametrize(
    ("make", "is_so"),
    [
        (builders.administrator, True),
        (lambda: builders.person("member"), False),
        (lambda: builders.person("gone", is_staff=True, is_active=False), False),
    ],
)
def test_who_may_read_a_log(make: Callable[[], User], is_so: bool) -> None:
    assert may_read(make()) is is_so
