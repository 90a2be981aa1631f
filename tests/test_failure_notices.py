"""Who is told of a preset that fails, and how often."""

from datetime import datetime, timedelta

import pytest

from bookings.failure_notices import tell_failures
from bookings.models import Booking, State
from lanes import clock
from lanes.models import Notice, PresetFailure
from notices.models import Delivery, Endpoint
from notices.routing import route
from tests import builders
from tests.builders import NOON, at
from wire.words import Reader, retold, said

pytestmark = pytest.mark.django_db
SOON = at(10)


@pytest.fixture
def failure() -> PresetFailure:
    """A preset that failed once, tried for nobody."""
    builders.administrator()
    preset = builders.preset("qwen")
    return PresetFailure.objects.create(
        lane=builders.lane("left"),
        revision=builders.revision(preset),
        count=1,
        since=NOON,
        failed_at=NOON,
        reason="The GPU ran out of memory.",
        failure_advice="Lower -ngl or -c.",
    )


def booked(failure: PresetFailure, start: datetime = SOON, **fields: object) -> Booking:
    """A booking that it was tried for."""
    made = builders.booking(
        lane=failure.lane, preset=failure.revision.preset, start=start, **fields
    )
    PresetFailure.objects.update(booking_id_for=made.pk)
    return made


def told() -> dict[str, str]:
    return dict(Notice.objects.values_list("recipient__username", "sentence"))


def test_administrators_are_told_of_a_failure_once(failure: PresetFailure) -> None:
    assert tell_failures(at(1)) == 1
    PresetFailure.objects.update(count=2, failed_at=at(2))
    assert tell_failures(at(2)) == 0
    notice = Notice.objects.get()
    assert notice.recipient == builders.administrator()
    assert notice.sentence == "qwen does not run on left: The GPU ran out of memory."
    assert notice.advice == "Lower -ngl or -c."
    assert notice.lane == failure.lane


def test_a_failure_that_was_cleared_and_comes_again_is_another(failure: PresetFailure) -> None:
    tell_failures(at(1))
    PresetFailure.objects.update(since=at(30))
    assert tell_failures(at(31)) == 0  # not within the hour
    assert tell_failures(at(62)) == 1
    assert tell_failures(at(180)) == 0


def test_one_that_is_over_is_no_news(failure: PresetFailure) -> None:
    PresetFailure.objects.update(count=0)
    assert tell_failures(at(1)) == 0


def test_whose_booking_it_is_is_told_of_the_slot(failure: PresetFailure) -> None:
    booked(failure)
    tell_failures(at(1))
    assert told() == {
        "owner": "qwen does not run on left for your slot from 12:10 UTC: "
        "The GPU ran out of memory.",
        "administrator": "qwen does not run on left: The GPU ran out of memory.",
    }
    booker = Notice.objects.get(recipient__username="owner")
    assert booker.advice.startswith("Lower -ngl or -c. It is tried again by itself; ")


def test_another_try_in_the_same_slot_is_told_once(failure: PresetFailure) -> None:
    booked(failure, at(-10))
    tell_failures(at(1))
    PresetFailure.objects.update(since=at(2))
    again = PresetFailure.objects.create(
        lane=failure.lane,
        revision=builders.revision(failure.revision.preset),
        count=1,
        since=at(3),
        failed_at=at(3),
        reason="The GPU ran out of memory.",
        booking_id_for=PresetFailure.objects.get().booking_id_for,
    )
    assert tell_failures(at(4)) == 0
    PresetFailure.objects.filter(pk=again.pk).update(failure_kind="file_broken")
    assert tell_failures(at(5)) == 1


def test_once_the_slot_has_begun_its_end_is_said(failure: PresetFailure) -> None:
    booked(failure, at(-10))
    tell_failures(at(1))
    assert "for your slot until 12:50 UTC: " in told()["owner"]


def test_another_booking_s_owner_is_told_as_well(failure: PresetFailure) -> None:
    booked(failure)
    tell_failures(at(1))
    booked(failure, at(120), owner=builders.person("member"))
    assert tell_failures(at(2)) == 1
    assert set(told()) == {"owner", "administrator", "member"}


def test_an_administrator_s_own_booking_is_one_notice(failure: PresetFailure) -> None:
    booked(failure, owner=builders.administrator())
    assert tell_failures(at(1)) == 1
    assert "for your slot" in told()["administrator"]


@pytest.mark.parametrize("state", [State.CANCELLED, State.REJECTED])
def test_a_booking_that_was_given_up_is_not_told_of(failure: PresetFailure, state: State) -> None:
    booking = booked(failure)
    Booking.objects.filter(pk=booking.pk).update(state=state)
    tell_failures(at(1))
    assert set(told()) == {"administrator"}


def test_a_failure_from_before_an_update_is_told_of(failure: PresetFailure) -> None:
    PresetFailure.objects.update(since=None)
    assert tell_failures(at(1)) == 1
    assert tell_failures(at(1) + timedelta(hours=1)) == 0


def test_it_is_told_to_each_reader_in_their_language(failure: PresetFailure) -> None:
    kept = said("{size} are missing", size="2 GiB").kept()
    PresetFailure.objects.update(reason="2 GiB are missing", words={"reason": kept})
    booked(failure)
    tell_failures(at(1))
    reader = Reader(lambda text: text.replace("are missing", "fehlen"), str)
    words = Notice.objects.get(recipient__username="owner").words
    assert words is not None
    assert words["sentence"]["values"]["reason"] == kept
    assert words["sentence"]["values"]["slot"]["values"]["start"] == {"moment": SOON.isoformat()}
    assert words["advice"]["text"] == "{first} {second}"
    assert retold(words["sentence"]["values"]["reason"], reader) == "2 GiB fehlen"


def test_chat_rooms_and_programs_are_told_once_whoever_else_is(failure: PresetFailure) -> None:
    endpoint = Endpoint.objects.create(
        name="room", kind="webhook", shown="", sealed_url="", events=["failure"], created_at=NOON
    )
    booked(failure)
    builders.person("second", is_staff=True)
    now = clock.database_now()
    PresetFailure.objects.update(since=now)
    assert tell_failures(now) == 3
    route(now)
    delivery = Delivery.objects.get(endpoint=endpoint)
    assert delivery.payload["data"]["sentence"].startswith("qwen does not run on left: ")
    again = now + timedelta(hours=2)
    PresetFailure.objects.update(since=again)
    tell_failures(again)
    route(again)
    assert Delivery.objects.filter(endpoint=endpoint).count() == 2
