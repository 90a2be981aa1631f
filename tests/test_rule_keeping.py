"""What rules do as time passes: bookings expire that nobody approved, and end that nobody uses."""

from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User

from bookings import rule_keeping, services, settling
from bookings.models import Booking, Lapse, Policy, State, Status
from bookings.rule_keeping import (
    Silence,
    expire_pending,
    note_first_requests,
    release_no_shows,
)
from gateway.silence import listen
from gateway.usage import store_records
from lanes import ticks
from lanes.models import Lane, LaneEvent, Preset
from tests import builders
from tests.booking_cast import ask, booked, code, done
from tests.builders import at
from tests.conftest import Moment
from tests.usage_cast import CALL, served
from wire.edges import EDGES, EdgeReport, LaneCount, encode_report
from wire.usage import USAGE_WAITING


@pytest.fixture
def lane(moment: Moment, db: None) -> Lane:
    return builders.lane("demo")


@pytest.fixture
def owner() -> User:
    return builders.person("owner")


def between(monkeypatch: pytest.MonkeyPatch, deed: Callable[[], object]) -> None:
    """Have somebody do this after the look and before the lock."""
    hold = settling.hold

    def held(booking: Booking, actor: User) -> object:
        deed()
        return hold(booking, actor)

    monkeypatch.setattr(rule_keeping, "hold", held)


class TestPending:
    """A booking that waits for approval does so only as long as the rules allow."""

    @pytest.fixture
    def booking(self, lane: Lane, owner: User) -> Booking:
        Policy.objects.create(approval="always", pending_hours=2)
        return booked(lane, owner, start=at(600), end=at(660))

    def test_it_expires_after_its_hours_and_its_time_is_free(
        self, booking: Booking, lane: Lane, moment: Moment
    ) -> None:
        assert expire_pending(moment.set(119)) == 0
        assert expire_pending(moment.set(120)) == 1
        assert expire_pending(moment.now) == 0
        booking.refresh_from_db()
        assert (booking.state, booking.status(moment.now)) == (State.EXPIRED, Status.EXPIRED)
        sentence = LaneEvent.objects.get(kind="booking.expired").sentence
        assert sentence.startswith("The booking of owner expired, as nobody approved it: ")
        booked(lane, builders.person("member"), start=at(600), end=at(660))

    def test_it_expires_at_its_start_at_the_latest(self, booking: Booking, moment: Moment) -> None:
        Policy.objects.update(pending_hours=100)
        assert expire_pending(moment.set(599)) == 0
        assert expire_pending(moment.set(600)) == 1

    def test_one_that_was_approved_meanwhile_stays(self, booking: Booking, moment: Moment) -> None:
        done(services.approve(booking, actor=builders.administrator()))
        assert expire_pending(moment.set(400)) == 0

    def test_one_that_is_approved_after_the_look_stays(
        self, booking: Booking, moment: Moment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        approve = partial(services.approve, booking, actor=builders.administrator())
        between(monkeypatch, approve)
        assert expire_pending(moment.set(120)) == 0
        booking.refresh_from_db()
        assert booking.state == State.CONFIRMED

    def test_one_that_was_moved_waits_anew(self, booking: Booking, moment: Moment) -> None:
        moment.set(100)
        Booking.objects.update(asked_at=moment.now)
        assert expire_pending(moment.set(219)) == 0
        assert expire_pending(moment.set(220)) == 1

    def test_what_expired_is_asked_for_anew_and_not_restored(
        self, booking: Booking, owner: User, moment: Moment
    ) -> None:
        expire_pending(moment.set(120))
        administrator = builders.administrator()
        assert code(services.restore(booking, actor=owner)) == "wrong_state"
        assert code(services.approve(booking, actor=administrator)) == "wrong_state"

    def test_without_the_rule_it_waits_until_its_end(
        self, booking: Booking, moment: Moment
    ) -> None:
        Policy.objects.update(pending_hours=0)
        assert expire_pending(moment.set(655)) == 0


def all_silent(slugs: Collection[str], now: datetime) -> Silence:
    return Silence(slugs, at(-1000))


def none_silent(slugs: Collection[str], now: datetime) -> Silence:
    return Silence((), at(-1000))


class TestNoShows:
    """A slot of a model that nobody uses goes back to all."""

    @pytest.fixture
    def preset(self) -> Preset:
        return builders.preset("qwen")

    @pytest.fixture
    def booking(self, lane: Lane, owner: User, preset: Preset) -> Booking:
        Policy.objects.create(no_show_minutes=30)
        return booked(lane, owner, kind="model", preset=preset, start=at(0), end=at(240))

    def test_it_is_released_when_nobody_came_and_counts_whole(
        self, booking: Booking, lane: Lane, owner: User, moment: Moment
    ) -> None:
        served(booking, ready=5)
        assert release_no_shows(moment.set(34), all_silent) == 0
        assert release_no_shows(moment.set(35), all_silent) == 1
        assert release_no_shows(moment.now, all_silent) == 0
        booking.refresh_from_db()
        assert (booking.end, booking.original_end) == (at(35), at(240))
        assert (booking.lapse, booking.released_at) == (Lapse.NO_SHOW, at(35))
        sentence = LaneEvent.objects.get(kind="booking.no_show").sentence
        assert "nobody sent a request for 30 minutes: qwen" in sentence
        Policy.objects.update(day_hours=4)
        assert code(ask(lane, owner, start=at(300), end=at(310))) == "rules_broken"

    def test_a_slot_that_nobody_came_for_is_beside_no_other(
        self, booking: Booking, lane: Lane, owner: User, moment: Moment
    ) -> None:
        Policy.objects.update(max_minutes=240)
        served(booking, ready=0)
        release_no_shows(moment.set(60), all_silent)
        assert code(ask(lane, owner, start=at(240), end=at(480))) == ""

    def test_a_slot_that_was_released_is(
        self, booking: Booking, lane: Lane, owner: User, moment: Moment
    ) -> None:
        Policy.objects.update(max_minutes=240)
        moment.set(60)
        done(services.release(booking, actor=owner))
        assert code(ask(lane, owner, start=at(60), end=at(300))) == "rules_broken"

    def test_it_counts_from_its_start_where_the_model_was_warm(
        self, booking: Booking, moment: Moment
    ) -> None:
        served(booking, ready=-100)
        assert release_no_shows(moment.set(29), all_silent) == 0
        assert release_no_shows(moment.set(30), all_silent) == 1

    def test_the_first_request_is_showing_up(self, booking: Booking, moment: Moment) -> None:
        served(booking, ready=0)
        note_first_requests({booking.pk: at(3), 10**9: at(1)})
        note_first_requests({booking.pk: at(9)})
        assert release_no_shows(moment.set(200), all_silent) == 0
        booking.refresh_from_db()
        assert booking.first_request_at == at(3)

    def test_who_comes_after_the_look_has_come(
        self, booking: Booking, moment: Moment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        served(booking, ready=0)
        between(monkeypatch, lambda: note_first_requests({booking.pk: at(29)}))
        assert release_no_shows(moment.set(30), all_silent) == 0
        booking.refresh_from_db()
        assert (booking.end, booking.lapse) == (at(240), "")

    def test_whoever_is_given_it_in_progress_is_to_come_too(
        self, booking: Booking, moment: Moment
    ) -> None:
        served(booking, ready=0)
        note_first_requests({booking.pk: at(3)})
        moment.set(20)
        done(services.transfer(booking, actor=booking.owner, to=builders.person("heir")))
        assert release_no_shows(moment.set(49), all_silent) == 0
        assert release_no_shows(moment.set(50), all_silent) == 1

    def test_usage_records_of_the_booking_are_showing_up(
        self, booking: Booking, owner: User
    ) -> None:
        call = replace(CALL, booking_id=booking.pk, owner_id=owner.pk, lane="demo")
        later = replace(call, request_id="r-2", at=call.at + 60)
        store_records([later, call, replace(CALL, request_id="r-3")])
        booking.refresh_from_db()
        assert booking.first_request_at == at(0)

    def test_a_lane_that_may_be_in_use_is_left_alone(
        self, booking: Booking, moment: Moment
    ) -> None:
        served(booking, ready=0)
        assert release_no_shows(moment.set(100), none_silent) == 0

    def test_time_in_which_the_gateway_was_not_heard_excuses(
        self, booking: Booking, moment: Moment
    ) -> None:
        served(booking, ready=0)

        def heard_from(minute: float) -> Any:
            return lambda slugs, now: Silence(slugs, at(minute))

        assert release_no_shows(moment.set(31), lambda slugs, now: Silence(slugs, None)) == 0
        assert release_no_shows(moment.now, heard_from(20)) == 0
        assert release_no_shows(moment.set(49), heard_from(20)) == 0
        assert release_no_shows(moment.set(50), heard_from(20)) == 1

    def test_whose_model_never_ran_is_no_no_show(self, booking: Booking, moment: Moment) -> None:
        assert release_no_shows(moment.set(100), all_silent) == 0
        fallback = builders.booking(lane=builders.lane(), start=at(0))
        served(fallback, ready=0)  # another lane's
        assert release_no_shows(moment.now, all_silent) == 0

    def test_the_whole_gpu_has_no_requests_to_wait_for(
        self, lane: Lane, owner: User, moment: Moment
    ) -> None:
        Policy.objects.create(no_show_minutes=30)
        booked(lane, owner, start=at(0), end=at(240))
        assert release_no_shows(moment.set(100), all_silent) == 0


def report(edge: str, now_ms: int, in_flight: int = 0, **changed: Any) -> None:
    lanes = {"demo": LaneCount(1, in_flight)}
    said = EdgeReport(edge, now_ms, lanes, **changed)
    ticks.valkey().hset(EDGES, edge, encode_report(said))


def valkey_ms() -> int:
    seconds, micros = ticks.valkey().time()
    return int(seconds) * 1000 + int(micros) // 1000


def silent(*slugs: str) -> set[str]:
    return set(listen(slugs, at(0)).lanes)


@pytest.mark.usefixtures("valkey")
class TestSilence:
    """Only what is sure counts as silence."""

    def test_no_edge_is_no_silence(self) -> None:
        assert silent("demo") == set()
        report("a", valkey_ms(), goodbye=True)
        assert silent("demo") == set()

    def test_edges_that_have_nothing_there_are(self) -> None:
        report("a", valkey_ms())
        assert silent("demo", "other") == {"demo", "other"}

    def test_a_request_in_flight_is_not(self) -> None:
        report("a", valkey_ms())
        report("b", valkey_ms(), in_flight=1)
        assert silent("demo", "other") == {"other"}

    def test_an_edge_that_fell_silent_may_hold_one_for_a_while(self) -> None:
        report("a", valkey_ms())
        report("b", valkey_ms() - 60_000)
        assert silent("demo") == set()
        report("b", valkey_ms() - 3_600_000)
        assert silent("demo") == {"demo"}

    def test_records_that_wait_may_tell_of_one(self) -> None:
        report("a", valkey_ms())
        ticks.valkey().set(USAGE_WAITING, 1)
        assert silent("demo") == set()
        assert listen(["demo"], at(0)).since == at(0)  # but the gateway is heard

    def test_heard_without_a_gap_is_heard_since_the_first_look(self) -> None:
        for seconds in range(0, 300, 50):
            report("a", valkey_ms())
            assert listen(["demo"], at(seconds / 60)).since == at(0)

    @pytest.mark.parametrize("minute", [-1, 3])
    def test_looks_too_far_apart_leave_a_gap(self, minute: float) -> None:
        report("a", valkey_ms())
        listen(["demo"], at(0))
        assert listen(["demo"], at(minute)).since == at(minute)

    def test_an_edge_that_was_away_for_a_moment_leaves_one(self) -> None:
        report("a", valkey_ms())
        listen(["demo"], at(0))
        report("a", valkey_ms() - 30_000)
        assert listen(["demo"], at(0.5)) == Silence((), None)
        report("a", valkey_ms())
        assert listen(["demo"], at(0.75)).since == at(0.75)

    def test_an_emptied_valkey_leaves_one(self) -> None:
        report("a", valkey_ms())
        listen(["demo"], at(0))
        ticks.valkey().flushdb()
        report("a", valkey_ms())
        assert listen(["demo"], at(0.5)).since == at(0.5)


def test_without_valkey_nothing_is_silent() -> None:
    assert listen(["demo"], at(0)) == Silence((), None)


@pytest.mark.django_db
def test_without_rules_one_look_at_each_kind_is_all(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(2):  # is there a rule of either kind?
        assert expire_pending(at(0)) == 0
        assert release_no_shows(at(0), all_silent) == 0
