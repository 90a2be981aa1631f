"""Moving and extending: what may change when, who must ask, what others keep."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from django.contrib.auth.models import User

from bookings import services
from bookings.changes import Seen
from bookings.models import Booking, State
from lanes.models import Lane, LaneEvent, Preset
from lanes.refusals import Refusal
from tests import builders
from tests.booking_cast import ask, booked, code, done, taken, times
from tests.builders import at
from tests.conftest import Moment

pytestmark = pytest.mark.django_db


@pytest.fixture
def lane(moment: Moment) -> Lane:
    return builders.lane("demo")


@pytest.fixture
def booking(lane: Lane) -> Booking:
    return booked(lane)


def move(booking: Booking, actor: User | None = None, **changed: Any) -> Booking | Refusal:
    booking.refresh_from_db()
    wish = {"start": booking.start, "end": booking.end} | changed
    return services.move(booking, actor=actor or booking.owner, **wish)


def extend(booking: Booking, minutes: float, actor: User | None = None) -> Booking | Refusal:
    return services.extend(booking, actor=actor or booking.owner, end=at(minutes))


def test_an_upcoming_booking_moves_to_other_times(booking: Booking) -> None:
    moved = done(move(booking, start=at(90), end=at(150)))
    assert times(moved) == (at(90), at(150))
    assert moved.original_end == at(150)


def test_it_may_move_over_its_own_time_but_not_over_anothers(lane: Lane, booking: Booking) -> None:
    other = booked(lane, builders.person("member"), start=at(120), end=at(180))
    done(move(booking, start=at(30), end=at(90)))
    refusal = taken(move(booking, start=at(90), end=at(150)))
    assert [c.booking_id for c in refusal.conflicts] == [other.pk]
    assert times(booking) == (at(30), at(90))


def test_it_moves_to_another_lane_and_both_lanes_are_told(booking: Booking, lane: Lane) -> None:
    elsewhere = builders.lane("other")
    LaneEvent.objects.all().delete()
    assert done(move(booking, lane=elsewhere)).lane == elsewhere
    assert set(LaneEvent.objects.values_list("lane__slug", "kind")) == {
        ("demo", "booking.moved"),
        ("other", "booking.moved"),
    }
    booked(lane, builders.person("member"))


def test_it_cannot_move_to_a_lane_that_is_taken_disabled_or_gone(booking: Booking) -> None:
    full, closed, gone = builders.lane(), builders.lane(enabled=False), builders.lane()
    booked(full, builders.person("member"))
    Lane.objects.filter(pk=gone.pk).delete()
    answers = [code(move(booking, lane=lane)) for lane in (full, closed, gone)]
    assert answers == ["slot_taken", "lane_disabled", "wrong_state"]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"start": datetime(2030, 1, 15, 13)}, "naive_time"),  # noqa: DTZ001
        ({"end": at(60)}, "ends_before_start"),
        ({"start": at(-1)}, "in_the_past"),
        ({"start": at(-60), "end": at(-30)}, "in_the_past"),
        ({"end": at(60 * 24 * 367)}, "too_far"),
        ({"kind": "model"}, "wrong_kind"),
        ({"kind": "half"}, "wrong_kind"),
    ],
)
def test_a_move_to_what_cannot_be_booked_is_refused(
    booking: Booking, changed: dict[str, Any], expected: str
) -> None:
    assert code(move(booking, **changed)) == expected
    assert times(booking) == (at(60), at(120))


@pytest.mark.parametrize("what", ["start", "end", "lane_id"])
def test_a_move_of_a_booking_that_changed_meanwhile_is_refused(booking: Booking, what: str) -> None:
    seen = Seen(booking.start, booking.end, booking.lane_id)
    changed: dict[str, Any] = {"start": at(61), "end": at(121), "lane_id": booking.lane_id + 1}
    wish: dict[str, Any] = {"start": at(90), "end": at(150)}
    assert code(move(booking, seen=replace(seen, **{what: changed[what]}), **wish)) == "changed"
    assert times(booking) == (at(60), at(120))
    done(move(booking, seen=seen, **wish))


def test_only_the_owner_and_administrators_may_move(booking: Booking) -> None:
    assert code(move(booking, builders.person("member"), end=at(90))) == "not_yours"
    done(move(booking, builders.administrator(), end=at(90)))
    assert times(booking) == (at(60), at(90))


def test_kind_and_preset_change_together(booking: Booking) -> None:
    preset = builders.preset()
    assert code(move(booking, preset=preset)) == "wrong_kind"
    moved = done(move(booking, kind="model", preset=preset))
    assert (moved.kind, moved.preset) == ("model", preset)
    assert done(move(booking, kind="model", end=at(100))).preset == preset
    assert done(move(booking, kind="gpu")).preset is None


def pinned(lane: Lane, preset: Preset) -> Booking:
    made = booked(lane, kind="model", preset=preset)
    Booking.objects.filter(pk=made.pk).update(pinned_revision=preset.current)
    return made


def test_the_pinned_revision_stays_when_only_the_end_changes(lane: Lane) -> None:
    preset = builders.preset()
    made = pinned(lane, preset)
    assert done(move(made, end=at(90))).pinned_revision == preset.current
    assert done(extend(made, 100)).pinned_revision == preset.current


@pytest.mark.parametrize("what", ["preset", "start", "lane"])
def test_the_pin_is_dropped_when_the_commitment_changes(lane: Lane, what: str) -> None:
    made = pinned(lane, builders.preset())
    other: dict[str, Any] = {"preset": builders.preset(), "start": at(70), "lane": builders.lane()}
    assert done(move(made, **{what: other[what]})).pinned_revision is None


def test_a_preset_of_another_host_cannot_be_moved_to(lane: Lane) -> None:
    made = pinned(lane, builders.preset())
    away = builders.preset(model_file=builders.model_file(host=builders.host("elsewhere")))
    assert code(move(made, preset=away)) == "unknown_preset"
    far = builders.lane(host=builders.host("elsewhere"))
    assert code(move(made, lane=far)) == "unknown_preset"


def test_in_progress_only_the_end_and_the_preset_change(booking: Booking, moment: Moment) -> None:
    moment.set(75)
    assert code(move(booking, start=at(80))) == "wrong_state"
    assert code(move(booking, lane=builders.lane())) == "wrong_state"
    assert code(move(booking, end=at(75))) == "in_the_past"
    done(move(booking, end=at(100)))
    done(move(booking, end=at(140), kind="model", preset=builders.preset()))
    assert times(booking) == (at(60), at(140))


def test_a_booking_that_is_over_or_given_up_does_not_change(
    lane: Lane, booking: Booking, moment: Moment
) -> None:
    given_up = booked(lane, start=at(200), end=at(260))
    done(services.cancel(given_up, actor=given_up.owner))
    moment.set(120)
    assert code(move(booking, end=at(300))) == code(extend(booking, 300)) == "too_late"
    assert code(move(given_up, end=at(300))) == code(extend(given_up, 300)) == "wrong_state"


def test_a_deleted_booking_is_a_refusal(booking: Booking) -> None:
    Booking.objects.all().delete()
    assert code(extend(booking, 200)) == "wrong_state"


@pytest.mark.parametrize("minutes", [0, 60, 119])
def test_an_extension_holds_the_lane_longer(
    lane: Lane, booking: Booking, moment: Moment, minutes: int
) -> None:
    moment.set(minutes)
    assert done(extend(booking, 150)).original_end == at(150)
    assert code(ask(lane, builders.person("member"), start=at(149), end=at(160))) == "slot_taken"


def test_an_extension_into_anothers_slot_is_refused(lane: Lane, booking: Booking) -> None:
    booked(lane, builders.person("member"), start=at(130), end=at(180))
    done(extend(booking, 130))
    assert code(extend(booking, 131)) == "slot_taken"
    assert times(booking) == (at(60), at(130))


@pytest.mark.parametrize("minutes", [119, 120])
def test_an_extension_must_end_later(booking: Booking, minutes: int) -> None:
    assert code(extend(booking, minutes)) == "not_later"


def test_nobody_elses_booking_is_extended(booking: Booking) -> None:
    assert code(extend(booking, 150, builders.person("member"))) == "not_yours"
    done(extend(booking, 150, builders.administrator()))


def test_an_extension_without_a_zone_is_refused(booking: Booking) -> None:
    naive = at(150).replace(tzinfo=None)
    assert code(services.extend(booking, actor=booking.owner, end=naive)) == "naive_time"


def test_a_disabled_lane_lets_a_booking_shrink_but_not_grow(lane: Lane, booking: Booking) -> None:
    Lane.objects.update(enabled=False)
    assert code(extend(booking, 150)) == code(move(booking, start=at(50))) == "lane_disabled"
    done(move(booking, start=at(70), end=at(100)))


class TestWhereApprovalIsNeeded:
    """A lane that asks administrators."""

    @pytest.fixture
    def booking(self, lane: Lane) -> Booking:
        made = booked(lane)
        Lane.objects.update(needs_approval=True)
        return made

    def test_making_it_shorter_asks_nobody(self, booking: Booking) -> None:
        assert done(move(booking, start=at(70), end=at(110))).state == State.CONFIRMED

    @pytest.mark.parametrize("changed", [{"end": at(121)}, {"start": at(59)}])
    def test_any_other_move_asks_again(self, booking: Booking, changed: dict[str, Any]) -> None:
        moved = done(move(booking, **changed))
        assert (moved.state, moved.confirmed_at) == (State.PENDING, None)

    def test_an_administrators_move_is_its_own_approval(self, booking: Booking) -> None:
        moved = done(move(booking, builders.administrator(), start=at(200), end=at(260)))
        assert moved.state == State.CONFIRMED

    def test_an_extension_cannot_wait_and_is_refused(self, booking: Booking) -> None:
        assert code(extend(booking, 130)) == "needs_approval"
        done(extend(booking, 130, builders.administrator()))

    def test_a_booking_in_progress_keeps_its_slot(self, booking: Booking, moment: Moment) -> None:
        moment.set(70)
        assert code(move(booking, end=at(130))) == "needs_approval"
        assert code(move(booking, kind="model", preset=builders.preset())) == "needs_approval"
        assert done(move(booking, end=at(100))).state == State.CONFIRMED

    def test_a_waiting_booking_changes_and_waits_on(self, lane: Lane, booking: Booking) -> None:
        waiting = booked(lane, start=at(200), end=at(260))
        assert done(extend(waiting, 270)).state == State.PENDING
        assert done(move(waiting, builders.administrator(), end=at(240))).state == State.PENDING

    def test_a_waiting_booking_that_has_begun_can_keep_its_start(
        self, lane: Lane, booking: Booking, moment: Moment
    ) -> None:
        waiting = booked(lane, start=at(200), end=at(260))
        moment.set(210)
        assert done(move(waiting, end=at(250))).state == State.PENDING
        assert code(move(waiting, start=at(205))) == "in_the_past"

    def test_moved_to_a_lane_that_asks_nobody_it_is_confirmed_from_then_on(
        self, lane: Lane, booking: Booking, moment: Moment
    ) -> None:
        waiting = booked(lane, start=at(200), end=at(260))
        moment.set(210)
        moved = done(move(waiting, lane=builders.lane()))
        assert (moved.state, moved.confirmed_at) == (State.CONFIRMED, at(210))
        assert moved.active_from == at(210)
