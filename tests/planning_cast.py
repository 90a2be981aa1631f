"""The planner's service in tests: a clock, and what a host would report."""

from bookings.models import Booking
from bookings.planning import PlanOutcome, plan_lanes
from lanes.models import Lane, Order, Phase, Preset, PresetFailure, Runtime
from tests.builders import NOON, at


class Clock:
    """The database's clock, as a test sets it."""

    def __init__(self) -> None:
        self.now = NOON

    def plan(self, minute: float) -> PlanOutcome:
        self.now = at(minute)
        return plan_lanes()


def serving(lane: Lane, phase: Phase = Phase.READY) -> Runtime:
    """The host's report: a server of the lane's order."""
    order = Order.objects.get(lane=lane)
    assert order.target is not None
    return Runtime.objects.create(
        lane=lane,
        revision=order.target,
        generation=order.generation,
        phase=phase,
        phase_since=order.ordered_at,
        started_at=order.ordered_at,
        ready_at=order.ordered_at if phase == Phase.READY else None,
        address="127.0.0.1",
        port=1,
    )


def failing(lane: Lane, preset: Preset, **fields: object) -> PresetFailure:
    """The host's report: a preset's current revision has failed."""
    revision = preset.revisions.order_by("number").last()
    assert revision is not None
    return PresetFailure.objects.create(lane=lane, revision=revision, **{"count": 1, **fields})


def pinned(booking: Booking) -> int | None:
    booking.refresh_from_db()
    return booking.pinned_revision_id
