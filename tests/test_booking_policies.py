"""Rules as the booking services keep them."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import IntegrityError, transaction

from bookings import services
from bookings.models import Booking, Policy, State
from bookings.policies import rules_for, standing_of
from bookings.policy import Approval
from bookings.refusals import Interval, RulesBroken, SlotTaken
from lanes.models import Lane
from lanes.refusals import Refusal
from tests import builders
from tests.booking_cast import ask, booked, code, done
from tests.builders import at
from tests.conftest import Moment


@pytest.fixture
def lane(moment: Moment, db: None) -> Lane:
    return builders.lane("demo")


@pytest.fixture
def owner() -> User:
    return builders.person("owner")


def broken(answer: Booking | Refusal) -> RulesBroken:
    assert isinstance(answer, RulesBroken), answer
    return answer


def grouped(owner: User, name: str) -> Group:
    group = Group.objects.get_or_create(name=name)[0]
    owner.groups.add(group)
    return group


def test_every_broken_rule_is_told_with_its_numbers(lane: Lane, owner: User) -> None:
    Policy.objects.create(max_minutes=180, week_hours=10, notice_minutes=120)
    builders.booking(owner=owner, start=at(-480), end=at(0))
    refusal = broken(ask(lane, owner, start=at(60), end=at(300)))
    assert refusal.code == "rules_broken"
    assert [rule.words for rule in refusal.broken] == [
        "The longest slot is 3 h: this one of 4 h is 1 h too long.",
        "Book at least 2 h ahead: this start is 1 h too soon.",
        "8 h booked this week of 10 h: this one of 4 h is 2 h too long.",
    ]
    assert all(rule.words in refusal.words for rule in refusal.broken)
    assert not Booking.objects.filter(lane=lane).exists()


class TestPieces:
    """Slots of one member on one lane that touch are one, wherever they come from."""

    @pytest.fixture
    def first(self, lane: Lane, owner: User) -> Booking:
        Policy.objects.create(max_minutes=120)
        return booked(lane, owner, start=at(60), end=at(150))

    def test_the_next_piece_is_refused_with_both_lengths(
        self, first: Booking, lane: Lane, owner: User
    ) -> None:
        refusal = broken(ask(lane, owner, start=at(150), end=at(210)))
        assert refusal.broken[0].words == (
            "The longest slot is 2 h, and slots with less than 15 min between them count as one: "
            "with the 1 h 30 min beside it, this one of 1 h makes 2 h 30 min, 30 min too long."
        )
        booked(lane, owner, start=at(150), end=at(180))  # as far as the rule goes
        booked(lane, builders.person("member"), start=at(180), end=at(240))

    def test_one_that_is_over_counts_too(
        self, first: Booking, lane: Lane, owner: User, moment: Moment
    ) -> None:
        moment.now = at(150)
        assert code(ask(lane, owner, start=None, end=at(210))) == "rules_broken"
        moment.now = at(165)
        booked(lane, owner, start=None, end=at(225))

    def test_neither_moves_nor_extensions_put_pieces_together(
        self, first: Booking, lane: Lane, owner: User
    ) -> None:
        other = booked(lane, owner, start=at(300), end=at(400))
        moved = services.move(other, actor=owner, start=at(150), end=at(250))
        assert code(moved) == "rules_broken"
        near = booked(lane, owner, start=at(165), end=at(200))
        assert code(services.extend(first, actor=owner, end=at(160))) == "rules_broken"
        done(services.move(near, actor=owner, start=at(166), end=at(200)))

    def test_a_transfer_does_not_either(self, first: Booking, lane: Lane, owner: User) -> None:
        giver = builders.person("member")
        theirs = booked(lane, giver, start=at(150), end=at(240))
        assert code(services.transfer(theirs, actor=giver, to=owner)) == "rules_broken"
        done(services.transfer(theirs, actor=giver, to=builders.person("stranger")))

    def test_nor_does_bringing_one_back(self, first: Booking, lane: Lane, owner: User) -> None:
        services.cancel(first, actor=owner)
        booked(lane, owner, start=at(150), end=at(240))
        assert code(services.restore(first, actor=owner)) == "rules_broken"

    def test_an_edit_that_only_shrinks_is_allowed_beside_others(
        self, lane: Lane, owner: User
    ) -> None:
        made = booked(lane, owner, start=at(60), end=at(180))
        booked(lane, owner, start=at(180), end=at(300))
        Policy.objects.create(max_minutes=60)
        done(services.move(made, actor=owner, start=at(60), end=at(179)))

    def test_approval_beyond_hours_counts_what_touches(self, lane: Lane, owner: User) -> None:
        Policy.objects.create(approval="beyond", approval_hours=2)
        first = booked(lane, owner, start=at(60), end=at(150))
        assert first.state == State.CONFIRMED
        second = booked(lane, owner, start=at(150), end=at(240))
        assert second.state == State.PENDING
        assert code(services.extend(first, actor=owner, end=at(151))) != ""
        assert booked(lane, owner, start=at(255), end=at(300)).state == State.CONFIRMED

    def test_a_member_nobody_came_for_held_nothing(
        self, first: Booking, lane: Lane, owner: User
    ) -> None:
        Booking.objects.update(end=at(80), released_at=at(80), lapse="no_show")
        booked(lane, owner, start=at(80), end=at(200))


def test_who_holds_the_time_is_told_with_the_rules(lane: Lane, owner: User) -> None:
    Policy.objects.create(max_minutes=30)
    other = booked(lane, builders.person("member"), start=at(60), end=at(90))
    refusal = broken(ask(lane, owner))
    assert refusal.conflicts == (Interval(at(60), at(90), other.pk),)
    assert "demo is taken from 13:00 UTC to 13:30 UTC." in refusal.words


def test_free_slots_that_are_offered_can_be_booked(lane: Lane, owner: User) -> None:
    Policy.objects.create(grid_minutes=30, max_minutes=60, day_hours=2)
    booked(lane, builders.person("member"), start=at(60), end=at(120))
    refusal = ask(lane, owner, start=at(70), end=at(150))
    assert isinstance(refusal, RulesBroken)
    assert len(refusal.nearest) == 3
    for slot in refusal.nearest:
        start = None if slot.is_now else slot.start
        made = done(ask(lane, owner, start=start, end=slot.end))
        done(services.cancel(made, actor=owner) if not slot.is_now else made)


def test_offers_of_a_taken_slot_obey_the_rules(lane: Lane, owner: User) -> None:
    Policy.objects.create(grid_minutes=60, notice_minutes=60)
    builders.booking(lane=lane, kind="gpu", start=at(60), end=at(130))
    refusal = ask(lane, owner)
    assert isinstance(refusal, SlotTaken)
    assert refusal.nearest[0] == Interval(at(180), at(240))


def test_rules_are_read_for_the_lane_and_the_members_groups(lane: Lane, owner: User) -> None:
    students, staff, others = (grouped(owner, "students"), grouped(owner, "staff"), "others")
    Policy.objects.create(max_minutes=60)
    Policy.objects.create(group=students, max_minutes=120)
    Policy.objects.create(group=staff, max_minutes=240)
    Policy.objects.create(group=Group.objects.create(name=others), max_minutes=0)
    Policy.objects.create(lane=builders.lane(), max_minutes=5)
    assert rules_for(owner, lane).max_minutes == 240
    assert rules_for(builders.person("stranger"), lane).max_minutes == 60
    Policy.objects.create(lane=lane, max_minutes=30)
    assert rules_for(owner, lane).max_minutes == 30
    Policy.objects.create(lane=lane, group=staff, max_minutes=90)
    assert rules_for(owner, lane).max_minutes == 90


def test_a_lane_for_one_group_alone(lane: Lane, owner: User) -> None:
    Policy.objects.create(lane=lane, may_book=False)
    Policy.objects.create(lane=lane, group=grouped(owner, "biology"), may_book=True)
    refusal = broken(ask(lane, builders.person("member")))
    assert refusal.words == "The rules of demo do not let member book it."
    assert refusal.nearest == ()
    booked(lane, owner)


def test_presets_that_are_not_listed_are_refused(lane: Lane, owner: User) -> None:
    small, large = builders.preset("small"), builders.preset("large")
    policy = Policy.objects.create(group=grouped(owner, "guests"), preset_choice="listed")
    policy.presets.add(small)
    assert "large is not for you to book" in ask(lane, owner, kind="model", preset=large).words  # type: ignore[union-attr]
    booked(lane, owner, kind="model", preset=small)


def test_the_tick_of_a_lane_is_a_rule_of_the_lane(lane: Lane, owner: User) -> None:
    Lane.objects.update(needs_approval=True)
    lane.refresh_from_db()
    Policy.objects.create(approval="never")
    assert rules_for(owner, lane).approval is Approval.ALWAYS
    Policy.objects.create(lane=lane, approval="beyond", approval_hours=1)
    assert booked(lane, owner).state == State.CONFIRMED
    assert booked(lane, owner, start=at(200), end=at(261)).state == State.PENDING
    Policy.objects.create(lane=lane, group=grouped(owner, "trusted"), approval="never")
    assert booked(lane, owner, start=at(300), end=at(500)).state == State.CONFIRMED


def test_administrators_need_no_approval_but_keep_the_other_rules(lane: Lane) -> None:
    Policy.objects.create(approval="always", max_minutes=60)
    administrator = builders.administrator()
    assert booked(lane, administrator).state == State.CONFIRMED
    assert code(ask(lane, administrator, start=at(200), end=at(300))) == "rules_broken"


class TestEdits:
    """Rules bind the owner, whoever edits; what only shrinks is always fine."""

    @pytest.fixture
    def booking(self, lane: Lane, owner: User) -> Booking:
        made = booked(lane, owner, start=at(60), end=at(180))
        Policy.objects.create(max_minutes=60, grid_minutes=60, day_hours=1, may_book=False)
        return made

    def test_an_edit_that_only_shrinks_is_always_allowed(
        self, booking: Booking, owner: User
    ) -> None:
        for span in ((at(60), at(175)), (at(61), at(170))):
            done(services.move(booking, actor=owner, start=span[0], end=span[1]))

    @pytest.mark.parametrize("actor", ["owner", "administrator"])
    def test_others_are_judged(self, booking: Booking, actor: str) -> None:
        person = builders.administrator() if actor == "administrator" else builders.person(actor)
        assert code(services.extend(booking, actor=person, end=at(240))) == "rules_broken"
        moved = services.move(booking, actor=person, start=at(120), end=at(240))
        assert {rule.broken.code.value for rule in broken(moved).broken} >= {"not_allowed"}

    def test_a_restored_one_is_judged_but_for_its_times(
        self, booking: Booking, owner: User
    ) -> None:
        done(services.cancel(booking, actor=owner))
        refusal = broken(services.restore(booking, actor=owner))
        codes = [rule.broken.code.value for rule in refusal.broken]
        assert codes == ["not_allowed", "too_long", "day_full"]

    def test_approving_looks_at_no_rule(self, booking: Booking) -> None:
        Booking.objects.update(state=State.PENDING, confirmed_at=None)
        done(services.approve(booking, actor=builders.administrator()))


def test_a_longer_booking_may_need_approval(lane: Lane, owner: User) -> None:
    Policy.objects.create(approval="beyond", approval_hours=2)
    booking = booked(lane, owner)
    assert code(services.extend(booking, actor=owner, end=at(200))) == "needs_approval"
    done(services.extend(booking, actor=owner, end=at(180)))
    moved = done(services.move(booking, actor=owner, start=at(60), end=at(240)))
    assert (moved.state, moved.asked_at) == (State.PENDING, at(0))
    moved = done(services.move(booking, actor=owner, start=at(60), end=at(120)))
    assert (moved.state, moved.confirmed_at) == (State.CONFIRMED, at(0))


class TestLateCancels:
    """Given up too late, it counts as if it had been used."""

    @pytest.fixture
    def policy(self, lane: Lane) -> Policy:
        return Policy.objects.create(late_cancel_minutes=30, day_hours=2)

    def test_a_late_cancel_counts(
        self, policy: Policy, lane: Lane, owner: User, moment: Moment
    ) -> None:
        booking = booked(lane, owner, start=at(60), end=at(120))
        moment.set(31)
        assert done(services.cancel(booking, actor=owner)).lapse == "late_cancel"
        refusal = broken(ask(lane, owner, start=at(200), end=at(261)))
        assert refusal.broken[0].broken.used == 1
        booked(lane, owner, start=at(200), end=at(260))

    def test_an_early_one_and_an_administrators_do_not(
        self, policy: Policy, lane: Lane, owner: User, moment: Moment
    ) -> None:
        booking = booked(lane, owner, start=at(60), end=at(120))
        assert done(services.cancel(booking, actor=owner)).lapse == ""
        booking = booked(lane, owner, start=at(60), end=at(120))
        moment.set(31)
        assert done(services.cancel(booking, actor=builders.administrator())).lapse == ""

    def test_nor_one_that_waits_for_approval(
        self, policy: Policy, lane: Lane, owner: User, moment: Moment
    ) -> None:
        Policy.objects.update(approval="always")
        booking = booked(lane, owner, start=at(60), end=at(120))
        moment.set(31)
        assert done(services.cancel(booking, actor=owner)).lapse == ""

    def test_restored_it_counts_once(
        self, policy: Policy, lane: Lane, owner: User, moment: Moment
    ) -> None:
        booking = booked(lane, owner, start=at(60), end=at(180))
        moment.set(31)
        done(services.cancel(booking, actor=owner))
        assert done(services.restore(booking, actor=owner)).lapse == ""


def test_an_early_release_gives_its_hours_back(lane: Lane, owner: User, moment: Moment) -> None:
    Policy.objects.create(day_hours=2)
    booking = booked(lane, owner, start=at(0), end=at(120))
    assert code(ask(lane, owner, start=at(200), end=at(230))) == "rules_broken"
    moment.set(60)
    done(services.release(booking, actor=owner))
    booked(lane, owner, start=at(200), end=at(260))


def test_one_never_approved_and_over_counts_no_more(
    lane: Lane, owner: User, moment: Moment
) -> None:
    Policy.objects.create(day_hours=1, approval="always")
    booked(lane, owner, start=at(0), end=at(60))
    moment.set(61)
    booked(lane, owner, start=at(70), end=at(130))


@pytest.mark.parametrize("of", [(False, False), (True, False), (False, True), (True, True)])
def test_there_is_one_row_for_a_lane_and_group(lane: Lane, owner: User, of: Any) -> None:
    group = grouped(owner, "students")
    who = {"lane": lane if of[0] else None, "group": group if of[1] else None}
    Policy.objects.create(**who)
    with pytest.raises(IntegrityError), transaction.atomic():
        Policy.objects.create(**who)


def test_a_standing_asks_little(lane: Lane, owner: User, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(2):  # rows of rules, maintenance
        standing_of(owner, lane, at(0))
    listed = Policy.objects.create(preset_choice="listed", day_hours=1)
    listed.presets.add(builders.preset())
    with django_assert_num_queries(4):  # and listed presets, and the member's bookings
        standing_of(owner, lane, at(0))
