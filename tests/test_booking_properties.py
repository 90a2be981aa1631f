"""Random histories of bookings: the services and a naive model always agree, row by row."""

from typing import Any
from unittest.mock import patch

import pytest
from django.db import transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from bookings import services
from bookings.models import Booking, Kind, Status
from lanes.models import Lane
from tests import builders
from tests.booking_cast import code
from tests.booking_model import GPU, NaiveBookings, Row
from tests.builders import NOON, at

LANES = ("free", "asking")
ACTORS = ("owner", "member", "administrator")
PRESETS = ("small", "large", GPU)
owners, lanes, presets = (st.sampled_from(names) for names in (ACTORS, LANES, PRESETS))
# Mostly people who may, or nothing would ever happen.
actors = st.sampled_from(("its owner", "its owner", "administrator", "member"))
# A day of a few minutes, so that bookings meet, touch and are overtaken by the clock often.
minutes = st.integers(0, 24)
lengths = st.integers(-1, 9)
picks = st.integers(0, 1000)


class Histories(RuleBasedStateMachine):
    """Whatever is asked in whatever order, of the services and of the model."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = transaction.atomic()
        self.inner.__enter__()
        self.model = NaiveBookings({"asking"}, {"administrator"})
        self.clock = patch("lanes.clock.database_now", lambda: at(self.model.now))
        self.clock.start()
        builders.administrator()
        self.people = {name: builders.person(name) for name in ACTORS}
        self.presets = {name: builders.preset(name) for name in PRESETS if name}
        self.lanes = {name: builders.lane(name, needs_approval=name == "asking") for name in LANES}
        self.pks: list[int] = []

    def teardown(self) -> None:
        self.clock.stop()
        transaction.set_rollback(True)
        self.inner.__exit__(None, None, None)

    @rule(by=st.integers(1, 4))
    def time_passes(self, by: int) -> None:
        self.model.now += by

    @rule(lane=lanes, is_closed=st.booleans())
    def a_lane_is_closed_or_opened(self, lane: str, is_closed: bool) -> None:
        (self.model.closed.add if is_closed else self.model.closed.discard)(lane)
        Lane.objects.filter(slug=lane).update(enabled=not is_closed)

    @rule(owner=owners, lane=lanes, preset=presets, start=st.none() | minutes, length=lengths)
    def book(self, owner: str, lane: str, preset: str, start: int | None, length: int) -> None:
        end = (self.model.now if start is None else start) + length
        answer = services.book(
            owner=self.people[owner],
            lane=self.lanes[lane],
            kind=Kind.MODEL if preset else Kind.GPU,
            preset=self.presets.get(preset),
            start=None if start is None else at(start),
            end=at(end),
        )
        if isinstance(answer, Booking):
            self.pks.append(answer.pk)
        number = answer.pk if isinstance(answer, Booking) else -1
        assert self.model.book(number, owner, lane, preset, start, end) == code(answer)

    @precondition(lambda self: self.pks)
    @rule(pick=picks, actor=actors, lane=lanes, preset=presets, start=minutes, length=lengths)
    def move(self, pick: int, actor: str, lane: str, preset: str, start: int, length: int) -> None:
        self.move_to(self.pick(pick), actor, lane, preset, (start, start + length))

    @precondition(lambda self: self.pks)
    @rule(pick=picks, actor=actors, by=st.integers(-3, 3))
    def change_only_the_end(self, pick: int, actor: str, by: int) -> None:
        row = self.model.rows[self.pick(pick)]
        self.move_to(self.pick(pick), actor, row.lane, row.preset, (row.start, row.end + by))

    def who(self, pk: int, actor: str) -> str:
        return self.model.rows[pk].owner if actor == "its owner" else actor

    def move_to(self, pk: int, actor: str, lane: str, preset: str, span: tuple[int, int]) -> None:
        actor = self.who(pk, actor)
        answer = services.move(
            Booking.objects.get(pk=pk),
            actor=self.people[actor],
            start=at(span[0]),
            end=at(span[1]),
            lane=self.lanes[lane],
            kind=Kind.MODEL if preset else Kind.GPU,
            preset=self.presets.get(preset),
        )
        assert self.model.move(pk, actor, lane, preset, *span) == code(answer)

    @precondition(lambda self: self.pks)
    @rule(pick=picks, actor=actors, by=st.integers(-1, 5))
    def extend(self, pick: int, actor: str, by: int) -> None:
        pk = self.pick(pick)
        actor = self.who(pk, actor)
        end = self.model.rows[pk].end + by
        answer = services.extend(Booking.objects.get(pk=pk), actor=self.people[actor], end=at(end))
        assert self.model.extend(pk, actor, end) == code(answer)

    @precondition(lambda self: self.pks)
    @rule(pick=picks, actor=actors)
    def release(self, pick: int, actor: str) -> None:
        self.change("release", pick, actor)

    @precondition(lambda self: self.pks)
    @rule(pick=picks, actor=actors)
    def cancel(self, pick: int, actor: str) -> None:
        self.change("cancel", pick, actor)

    @precondition(lambda self: self.pks)
    @rule(pick=picks, actor=actors)
    def restore(self, pick: int, actor: str) -> None:
        self.change("restore", pick, actor)

    @precondition(lambda self: self.pks)
    @rule(pick=picks, actor=actors, name=st.sampled_from(("approve", "reject")))
    def decide(self, pick: int, actor: str, name: str) -> None:
        self.change(name, pick, actor)

    @invariant()
    def the_table_is_the_models(self) -> None:
        rows = Booking.objects.select_related("owner", "lane", "preset")
        assert {booking.pk: row_of(booking) for booking in rows} == self.model.rows

    @invariant()
    def at_most_one_booking_is_in_progress_on_a_lane(self) -> None:
        now = at(self.model.now)
        running = [b.lane_id for b in Booking.objects.all() if b.status(now) is Status.IN_PROGRESS]
        assert len(running) == len(set(running))

    def pick(self, number: int) -> int:
        return self.pks[number % len(self.pks)]

    def change(self, name: str, pick: int, actor: str) -> None:
        pk = self.pick(pick)
        actor = self.who(pk, actor)
        answer = getattr(services, name)(Booking.objects.get(pk=pk), actor=self.people[actor])
        assert getattr(self.model, name)(pk, actor) == code(answer)


def minute_of(moment: Any) -> Any:
    return None if moment is None else round((moment - NOON).total_seconds() / 60)


def row_of(booking: Booking) -> Row:
    return Row(
        owner=booking.owner.username,
        lane=booking.lane.slug,
        preset=booking.preset.slug if booking.preset else GPU,
        start=minute_of(booking.start),
        end=minute_of(booking.end),
        original_end=minute_of(booking.original_end),
        state=booking.state,
        confirmed=minute_of(booking.confirmed_at),
        released=minute_of(booking.released_at),
    )


@pytest.mark.django_db
def test_services_and_the_naive_model_agree_on_every_history() -> None:
    run_state_machine_as_test(
        Histories,
        settings=settings(
            max_examples=60,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
