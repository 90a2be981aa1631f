"""Series: every occurrence is told before, and all are booked or none."""

from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from bookings import services
from bookings.models import Booking, Policy, Series, State
from bookings.recurrence import Every, Pattern
from bookings.refusals import Hold, Interval, RulesBroken, SlotTaken
from bookings.series import AskedSeries, MadeSeries, SeriesRefused, book_series, preview
from bookings.series_changes import Span, cancel_series, move_series, release_series
from bookings.series_judging import Judged
from lanes.models import Lane, LaneEvent, Maintenance
from lanes.refusals import Refusal
from tests import builders
from tests.booking_cast import booked, code, done
from tests.builders import at
from tests.conftest import Moment

DAY = 24 * 60
DAILY = Pattern(Every.DAY, count=4)


wall = datetime.fromisoformat  # naive: as clocks show it


@pytest.fixture
def lane(moment: Moment, db: None) -> Lane:
    return builders.lane("demo")


@pytest.fixture
def owner(db: None) -> User:
    return builders.person("owner")


@pytest.fixture
def asked(lane: Lane) -> AskedSeries:
    """Four days, from 13:00 to 14:00 UTC."""
    start = wall("2030-01-15 13:00")
    end = start + timedelta(hours=1)
    return AskedSeries(lane, "gpu", None, start, end, "UTC", DAILY)


def made(answer: MadeSeries | Refusal) -> MadeSeries:
    assert isinstance(answer, MadeSeries), answer
    return answer


def judged_ones(answer: tuple[Judged, ...] | Refusal) -> tuple[Judged, ...]:
    assert not isinstance(answer, Refusal), answer
    return answer


def told(answer: tuple[Judged, ...] | Refusal) -> list[str]:
    """The codes of what stands against each."""
    return [each.refusal.code if each.refusal else "" for each in judged_ones(answer)]


def days(bookings: Any) -> list[int]:
    return [(each.start - at(0)).days for each in bookings]


def held(lane: Lane, owner: User, **times: datetime) -> Booking:
    """What the waitlist holds for a member."""
    whole = {"kind": "gpu", "preset": None, "state": State.HELD}
    return builders.booking(lane=lane, owner=owner, **whole, **times)


class TestBooking:
    """All or none, or all but what clashes."""

    def test_each_is_a_booking_of_its_own(self, owner: User, asked: AskedSeries) -> None:
        answer = made(book_series(owner=owner, asked=asked))
        rows = list(Booking.objects.order_by("start"))
        assert days(rows) == [0, 1, 2, 3]
        assert {row.series for row in rows} == {answer.series}
        assert {row.state for row in rows} == {State.CONFIRMED}
        done(services.cancel(rows[1], actor=owner))
        assert Booking.objects.current(at(0)).count() == 3
        sentence = LaneEvent.objects.get(kind="series.created").sentence
        assert sentence.startswith("owner booked a series: the whole GPU, 4 times, ")

    def test_one_that_is_taken_is_told_with_its_holder_and_stops_all(
        self, owner: User, asked: AskedSeries, lane: Lane
    ) -> None:
        booked(lane, builders.person("ada"), start=at(DAY + 90), end=at(DAY + 100))
        found = preview(owner=owner, asked=asked)
        assert told(found) == ["", "slot_taken", "", ""]
        answer = book_series(owner=owner, asked=asked)
        assert isinstance(answer, SeriesRefused)
        assert answer.judged == found
        refusal = answer.judged[1].refusal
        assert refusal is not None
        assert refusal.words.startswith("Taken by ada from ")
        assert Booking.objects.count() == 1
        assert not Series.objects.exists()

    def test_what_the_waitlist_holds_for_the_member_is_told_as_theirs(
        self, owner: User, asked: AskedSeries, lane: Lane
    ) -> None:
        booked(lane, builders.person("ada"), start=at(DAY + 60), end=at(DAY + 70))
        own = held(lane, owner, start=at(DAY + 90), end=at(DAY + 120), held_until=at(30))
        refusal = judged_ones(preview(owner=owner, asked=asked))[1].refusal
        assert isinstance(refusal, SlotTaken)
        assert refusal.words.startswith("Taken by ada from ")
        assert " demo is held for you from " in refusal.words
        assert refusal.hold == Hold(Interval(own.start, own.end, own.pk), at(30))
        other = judged_ones(preview(owner=builders.person("bo"), asked=asked))[1].refusal
        assert isinstance(other, SlotTaken)
        assert (other.hold, "held for you" in other.words) == (None, False)

    def test_a_hold_that_has_lapsed_is_not_offered_to_take(
        self, owner: User, asked: AskedSeries, lane: Lane
    ) -> None:
        held(lane, owner, start=at(60), end=at(120), held_until=at(0))
        refusal = judged_ones(preview(owner=owner, asked=asked))[0].refusal
        assert isinstance(refusal, SlotTaken)
        assert refusal.hold is None

    def test_or_is_left_out_where_that_is_wished(
        self, owner: User, asked: AskedSeries, lane: Lane
    ) -> None:
        booked(lane, start=at(DAY + 90), end=at(DAY + 100))
        answer = made(book_series(owner=owner, asked=asked, leaves_out=True))
        assert days(answer.bookings) == [0, 2, 3]
        assert [each.occurrence.start for each in answer.left_out] == [at(DAY + 60)]

    def test_where_all_clash_nothing_is_booked(
        self, owner: User, asked: AskedSeries, lane: Lane
    ) -> None:
        booked(lane, start=at(0), end=at(10 * DAY))
        answer = book_series(owner=owner, asked=asked, leaves_out=True)
        assert isinstance(answer, SeriesRefused)
        assert not Series.objects.exists()

    def test_rules_count_all_of_them_together(self, owner: User, asked: AskedSeries) -> None:
        policy = Policy.objects.create(week_hours=2)
        found = preview(owner=owner, asked=asked)  # Tuesday to Friday
        assert told(found) == ["", "", "rules_broken", "rules_broken"]
        policy.week_hours, policy.bookings_ahead = None, 3
        policy.save()
        assert told(preview(owner=owner, asked=asked)) == ["", "", "", "rules_broken"]
        booked(asked.lane, owner, start=at(600), end=at(660))
        assert told(preview(owner=owner, asked=asked)) == ["", "", "rules_broken", "rules_broken"]

    def test_one_under_maintenance_is_told(
        self, owner: User, asked: AskedSeries, lane: Lane
    ) -> None:
        start, end = at(DAY), at(DAY + 90)
        Maintenance.objects.create(lane=lane, start=start, end=end)
        assert told(preview(owner=owner, asked=asked)) == ["", "maintenance", "", ""]

    def test_one_that_overlaps_the_next_of_its_own_is_told(
        self, owner: User, asked: AskedSeries
    ) -> None:
        long = replace(asked, end=asked.start + timedelta(hours=30))
        found = preview(owner=owner, asked=long)
        assert told(found) == ["", "slot_taken", "", "slot_taken"]
        assert isinstance(found, tuple)
        assert "Another one of this series" in str(found[1].refusal)

    def test_each_waits_for_approval_where_the_lane_wants_it(
        self, owner: User, asked: AskedSeries
    ) -> None:
        Policy.objects.create(approval="always")
        found = preview(owner=owner, asked=asked)
        assert isinstance(found, tuple)
        assert all(each.is_asked for each in found)
        answer = made(book_series(owner=owner, asked=asked))
        assert {each.state for each in answer.bookings} == {State.PENDING}

    def test_an_administrators_waits_for_nobody(self, asked: AskedSeries) -> None:
        Policy.objects.create(approval="always")
        found = judged_ones(preview(owner=builders.administrator(), asked=asked))
        assert {each.is_asked for each in found} == {False}

    def test_what_touches_one_of_its_own_waits_for_approval_as_it_was_told(
        self, owner: User, asked: AskedSeries
    ) -> None:
        Policy.objects.create(approval="beyond", approval_hours=30)
        whole_days = replace(asked, end=asked.start + timedelta(days=1))
        answers = preview(owner=owner, asked=whole_days)
        assert not isinstance(answers, Refusal)
        assert [each.is_asked for each in answers] == [False, True, True, True]
        rows = made(book_series(owner=owner, asked=whole_days)).bookings
        assert [row.state for row in rows] == [State.CONFIRMED, *[State.PENDING] * 3]

    def test_one_that_has_passed_is_told(
        self, owner: User, asked: AskedSeries, moment: Moment
    ) -> None:
        moment.set(90)
        assert told(preview(owner=owner, asked=asked)) == ["in_the_past", "", "", ""]

    @pytest.mark.parametrize(
        ("changed", "expected"),
        [
            ({"pattern": Pattern(Every.DAY)}, "no_end"),
            ({"pattern": Pattern(Every.DAY, count=0)}, "bad_count"),
            ({"pattern": Pattern(Every.DAY, count=101)}, "bad_count"),
            ({"pattern": Pattern(Every.DAY, until=date(2031, 1, 1))}, "too_many"),
            ({"pattern": Pattern(Every.DAY, until=date(2029, 1, 1))}, "no_day"),
            ({"zone": "Nowhere/At_All"}, "unknown_zone"),
            ({"zone": ""}, "unknown_zone"),
            ({"start": at(60)}, "not_local"),
            ({"end": wall("2030-01-15 13:00")}, "ends_before_start"),
            ({"start": wall("9998-01-01 00:00"), "end": wall("9998-01-02 00:00")}, "too_far"),
            ({"end": wall("9998-01-01 00:00")}, "too_far"),
            ({"kind": "model"}, "wrong_kind"),
            ({"purpose": "x" * 201}, "bad_purpose"),
        ],
    )
    def test_refused_wishes(
        self, owner: User, asked: AskedSeries, changed: dict[str, Any], expected: str
    ) -> None:
        wish = replace(asked, **changed)
        for answer in (preview(owner=owner, asked=wish), book_series(owner=owner, asked=wish)):
            assert isinstance(answer, Refusal)
            assert answer.code == expected

    def test_a_member_who_was_removed_meanwhile_gets_none(
        self, owner: User, asked: AskedSeries
    ) -> None:
        User.objects.filter(pk=owner.pk).update(is_active=False)
        answer = book_series(owner=owner, asked=asked)
        assert isinstance(answer, Refusal)
        assert answer.code == "owner_inactive"
        assert not Series.objects.exists()

    def test_a_lane_that_is_disabled_takes_none(self, owner: User, asked: AskedSeries) -> None:
        Lane.objects.update(enabled=False)
        asked.lane.refresh_from_db()
        answer = preview(owner=owner, asked=asked)
        assert isinstance(answer, Refusal)
        assert answer.code == "lane_disabled"

    def test_the_queries_do_not_grow_with_the_series(
        self, owner: User, asked: AskedSeries, django_assert_max_num_queries: Any
    ) -> None:
        long = replace(asked, pattern=Pattern(Every.DAY, count=60))
        with django_assert_max_num_queries(20):
            made(book_series(owner=owner, asked=long))


class TestChanging:
    """This one is changed as any booking is; several at once are, all or none."""

    @pytest.fixture
    def rows(self, owner: User, asked: AskedSeries) -> list[Booking]:
        return list(made(book_series(owner=owner, asked=asked)).bookings)

    def test_this_and_following_or_all(
        self, rows: list[Booking], owner: User, moment: Moment
    ) -> None:
        assert days(cancel_series(rows[2], actor=owner, span=Span.FOLLOWING)) == [2, 3]
        moment.set(90)  # in the middle of the first, which goes on
        assert days(cancel_series(rows[0], actor=owner)) == [1]
        assert Booking.objects.get(state=State.CONFIRMED).pk == rows[0].pk
        assert code(cancel_series(rows[0], actor=owner)) == "too_late"  # type: ignore[arg-type]

    def test_only_ones_own(self, rows: list[Booking], lane: Lane, owner: User) -> None:
        stranger = builders.person("stranger")
        answer = cancel_series(rows[0], actor=stranger)
        assert isinstance(answer, Refusal)
        assert answer.code == "not_yours"
        assert days(cancel_series(rows[0], actor=builders.administrator())) == [0, 1, 2, 3]
        single = booked(lane, owner)
        answer = cancel_series(single, actor=owner)
        assert isinstance(answer, Refusal)
        assert answer.code == "wrong_state"

    def test_giving_back_releases_the_one_in_progress(
        self, rows: list[Booking], owner: User, moment: Moment
    ) -> None:
        moment.set(90)
        answer = release_series(rows[0], actor=owner, span=Span.FOLLOWING)
        assert days(answer) == [0, 1, 2, 3]
        found = Booking.objects.order_by("start")
        assert [each.status(moment.now) for each in found] == ["released", *["cancelled"] * 3]
        assert found[0].end == at(90)

    @pytest.mark.parametrize(
        ("span", "changed"),
        [(Span.THIS, [1]), (Span.FOLLOWING, [1, 2, 3]), (Span.ALL, [0, 1, 2, 3])],
    )
    def test_another_length_is_for_those_that_are_meant(
        self, rows: list[Booking], owner: User, span: Span, changed: list[int]
    ) -> None:
        this = rows[1]
        answer = move_series(
            this, actor=owner, start=this.start, end=this.end + timedelta(minutes=30), span=span
        )
        assert days(answer) == changed
        lengths = [each.end - each.start for each in Booking.objects.order_by("start")]
        assert [n for n in range(4) if lengths[n] == timedelta(minutes=90)] == changed

    def test_one_in_progress_gets_another_end_with_the_others(
        self, rows: list[Booking], owner: User, moment: Moment
    ) -> None:
        moment.set(90)
        answer = move_series(rows[0], actor=owner, start=rows[0].start, end=at(110))
        assert days(answer) == [0, 1, 2, 3]
        rows[1].refresh_from_db()
        answer = move_series(rows[1], actor=owner, start=at(DAY + 90), end=at(DAY + 140))
        assert days(answer) == [1, 2, 3]  # another start is for those that have not begun

    def test_each_keeps_its_own_length_when_they_move(
        self, rows: list[Booking], owner: User
    ) -> None:
        done(services.move(rows[2], actor=owner, start=at(2 * DAY + 60), end=at(2 * DAY + 80)))
        move_series(rows[0], actor=owner, start=at(120), end=at(180))
        lengths = [each.end - each.start for each in Booking.objects.order_by("start")]
        assert lengths == [timedelta(minutes=n) for n in (60, 60, 20, 60)]

    def test_to_another_lane(self, rows: list[Booking], owner: User) -> None:
        other = builders.lane("other")
        move_series(rows[1], actor=owner, start=rows[1].start, end=rows[1].end, lane=other,
                    span=Span.FOLLOWING)  # fmt: skip
        names = Booking.objects.order_by("start").values_list("lane__slug", flat=True)
        assert list(names) == ["demo", "other", "other", "other"]

    def test_one_that_was_moved_meanwhile_moves_nothing(
        self, rows: list[Booking], owner: User
    ) -> None:
        seen = Booking.objects.get(pk=rows[1].pk)
        done(services.move(rows[1], actor=owner, start=at(DAY + 90), end=at(DAY + 150)))
        answer = move_series(seen, actor=owner, start=at(DAY + 120), end=at(DAY + 180))
        assert code(answer) == "changed"  # type: ignore[arg-type]

    def test_giving_time_back_is_allowed_whatever_the_rules_say(
        self, rows: list[Booking], owner: User
    ) -> None:
        Policy.objects.create(may_book=False, max_minutes=5, approval="always")
        answer = move_series(rows[0], actor=owner, start=rows[0].start, end=at(100))
        assert days(answer) == [0, 1, 2, 3]
        assert set(Booking.objects.values_list("state", flat=True)) == {"confirmed"}

    def test_a_refusal_says_which_it_is_about(
        self, rows: list[Booking], owner: User, lane: Lane
    ) -> None:
        booked(lane, start=at(2 * DAY + 120), end=at(2 * DAY + 180))
        answer = move_series(rows[0], actor=owner, start=at(120), end=at(180))
        assert isinstance(answer, SlotTaken)
        assert answer.words.startswith("The one of 17 Jan")
        assert answer.words.count("The nearest free") == 1

    @pytest.mark.parametrize(("span", "number"), [(Span.ALL, 0), (Span.ALL, 1), ("following", 1)])
    def test_a_refused_move_offers_times_at_which_all_that_are_meant_can_be(
        self, rows: list[Booking], owner: User, lane: Lane, span: Span, number: int
    ) -> None:
        booked(lane, start=at(2 * DAY + 120), end=at(2 * DAY + 180))
        this, by = rows[number], timedelta(hours=1)
        move = partial(move_series, this, actor=owner, span=Span(span))
        answer = move(start=this.start + by, end=this.end + by)
        assert isinstance(answer, SlotTaken)
        starts = [(each.start - this.start) / timedelta(minutes=1) for each in answer.nearest]
        assert starts == [120, -15, 180]  # the nearest to what was wished first
        for each in answer.nearest:
            with transaction.atomic():
                assert not isinstance(move(start=each.start, end=each.end), Refusal)
                transaction.set_rollback(True)

    @pytest.mark.parametrize("to_lane", [False, True])
    def test_times_are_offered_where_all_are_or_come_to_be_on_one_lane(
        self, rows: list[Booking], owner: User, lane: Lane, to_lane: bool
    ) -> None:
        booked(lane, start=at(2 * DAY + 120), end=at(2 * DAY + 180))
        Booking.objects.filter(pk=rows[1].pk).update(lane=builders.lane("other"))
        target = lane if to_lane else None
        answer = move_series(rows[0], actor=owner, start=at(120), end=at(180), lane=target)
        assert isinstance(answer, SlotTaken)
        assert bool(answer.nearest) is to_lane

    def test_times_that_rules_forbid_are_not_offered(
        self, rows: list[Booking], owner: User, lane: Lane
    ) -> None:
        booked(lane, start=at(2 * DAY + 120), end=at(2 * DAY + 180))
        policy = Policy.objects.create(max_minutes=70)
        move = partial(move_series, rows[0], actor=owner, start=at(120), end=at(180))
        answer = move()
        assert isinstance(answer, SlotTaken)
        assert len(answer.nearest) == 3
        policy.max_minutes = 30
        policy.save()
        answer = move()
        assert isinstance(answer, RulesBroken)
        assert answer.nearest == ()
        assert "nearest free" not in answer.words

    @pytest.mark.parametrize("hours", [1, -0.5, 24, 36])
    def test_all_move_by_as_much(self, rows: list[Booking], owner: User, hours: float) -> None:
        by = timedelta(hours=hours)
        answer = move_series(
            rows[0], actor=owner, start=rows[0].start + by, end=rows[0].end + by + by / 100
        )
        assert not isinstance(answer, Refusal), answer
        assert [b.start - a.start for a, b in zip(rows, answer, strict=True)] == [by] * 4

    def test_one_that_cannot_move_keeps_all(
        self, rows: list[Booking], owner: User, lane: Lane
    ) -> None:
        booked(lane, start=at(2 * DAY + 120), end=at(2 * DAY + 180))
        answer = move_series(rows[0], actor=owner, start=at(120), end=at(180))
        assert isinstance(answer, Refusal)
        assert answer.code == "slot_taken"
        assert list(
            Booking.objects.filter(series=rows[0].series).values_list("start", flat=True)
        ) == [each.start for each in rows]

    def test_through_a_change_of_clocks_the_wall_is_kept(
        self, owner: User, asked: AskedSeries
    ) -> None:
        start = wall("2030-03-30 09:00")
        berlin = replace(asked, start=start, end=start + timedelta(hours=1), zone="Europe/Berlin")
        first, second, *_ = made(book_series(owner=owner, asked=berlin)).bookings
        assert (first.start.hour, second.start.hour) == (8, 7)
        hour = timedelta(hours=1)
        answer = move_series(first, actor=owner, start=first.start + hour, end=first.end + hour)
        assert not isinstance(answer, Refusal)
        assert [each.start.hour for each in answer[:2]] == [9, 8]


class TestLateChanges:
    """Moving or shortening within the time of late cancelling leaves what is given up counted."""

    @pytest.fixture
    def booking(self, lane: Lane, owner: User) -> Booking:
        Policy.objects.create(late_cancel_minutes=120, day_hours=4)
        return booked(lane, owner, start=at(60), end=at(180))

    def test_shortened_late(self, booking: Booking, lane: Lane, owner: User) -> None:
        done(services.move(booking, actor=owner, start=at(60), end=at(90)))
        lapsed = Booking.objects.get(state=State.CANCELLED)
        assert (lapsed.start, lapsed.end, lapsed.lapse) == (at(90), at(180), "late_cancel")
        assert (
            code(
                services.book(
                    owner=owner, lane=lane, kind="gpu", preset=None, start=at(200), end=at(330)
                )
            )
            == "rules_broken"
        )

    def test_moved_away_late(self, booking: Booking, owner: User) -> None:
        done(services.move(booking, actor=owner, start=at(120), end=at(240)))
        lapsed = Booking.objects.get(state=State.CANCELLED)
        assert (lapsed.start, lapsed.end) == (at(60), at(120))

    def test_to_another_lane_late(self, booking: Booking, owner: User) -> None:
        other = builders.lane("other")
        done(services.move(booking, actor=owner, start=at(60), end=at(180), lane=other))
        lapsed = Booking.objects.get(state=State.CANCELLED)
        assert (lapsed.lane, lapsed.start, lapsed.end) == (booking.lane, at(60), at(180))

    def test_not_in_time_not_by_others_and_not_once_begun(
        self, booking: Booking, owner: User, moment: Moment
    ) -> None:
        moment.set(-70)
        done(services.move(booking, actor=owner, start=at(60), end=at(150)))
        moment.set(0)
        administrator = builders.administrator()
        done(services.move(booking, actor=administrator, start=at(60), end=at(140)))
        moment.set(70)
        done(services.move(booking, actor=owner, start=at(60), end=at(130)))
        assert not Booking.objects.filter(state=State.CANCELLED).exists()


def test_maintenance_stands_against_those_in_its_time(asked: AskedSeries, owner: User) -> None:
    Maintenance.objects.create(lane=asked.lane, start=at(DAY), end=at(2 * DAY))
    assert told(preview(owner=owner, asked=asked)) == ["", "maintenance", "", ""]
