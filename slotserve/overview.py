"""What a person or program is shown of lanes: order, runtime, bookings, progress. Reads only."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from django.contrib.auth.models import User
from django.db.models import OuterRef, Prefetch, QuerySet, Subquery

from bookings.models import Booking
from lanes.estimates import ALMOST, eta, load_estimates, progress
from lanes.fitting import warnings
from lanes.log_reading import may_read
from lanes.models import (
    Gpu,
    Lane,
    LaneEvent,
    Maintenance,
    ManualChoice,
    Order,
    Phase,
    PresetFailure,
    Runtime,
)
from slotserve import overview_facts as facts_of
from slotserve.gpus import CardFigures, figures_of
from slotserve.live.state import digest_of
from slotserve.troubles import Trouble, trouble_of


@dataclass(frozen=True, slots=True)
class LaneOverview:
    """One lane at one moment."""

    lane: Lane
    now: datetime
    order: Order | None
    runtime: Runtime | None  # the living one, or the failed one of the present order
    booking: Booking | None  # in progress
    next_booking: Booking | None
    choice: ManualChoice | None
    maintenance: Maintenance | None  # in force, or the next to come
    trouble: Trouble | None  # why what is wanted does not run
    held_up: str  # what its start waits for, and passes by itself; empty: nothing
    estimate: float | None  # seconds the runtime's load takes
    progress: float | None  # 0..1 while starting
    eta: datetime | None  # when a starting server is expected to be ready

    @property
    def phase(self) -> str:
        """The runtime's phase. Without one: failed, when what is wanted could not be started, else
        stopped."""
        if self.runtime is None:
            has_failed = self.trouble is not None and not self.trouble.is_fallback
            return Phase.FAILED if has_failed else Phase.STOPPED
        return self.runtime.phase

    @property
    def reason(self) -> str:
        """Why its server ended, or is not started yet."""
        return self.held_up or (self.runtime.told_reason if self.runtime else "")

    @property
    def warnings(self) -> list[str]:
        """What may go wrong with its default."""
        return warnings(self.lane, self.lane.default_preset)

    @property
    def percent(self) -> int:
        """The load's progress as a whole number."""
        return round(100 * (self.progress or 0))

    @property
    def load_age(self) -> int:
        """For how many seconds the runtime has existed."""
        return int((self.now - self.runtime.started_at).total_seconds()) if self.runtime else 0

    @property
    def is_switching(self) -> bool:
        """Whether the lane is on its way from one server to another."""
        return self.phase in {Phase.STARTING, Phase.DRAINING, Phase.STOPPING}

    @property
    def seconds_left(self) -> int:
        """Until a load is expected to end; 0 when it takes longer than expected."""
        left = (self.estimate or 0.0) * (1 - (self.progress or 0.0))
        return round(left) if (self.progress or 0.0) < ALMOST else 0

    @property
    def memory(self) -> CardFigures:
        """What its cards hold, as of their newest readings."""
        return figures_of(self.lane.gpus.all())

    @property
    def model(self) -> str:
        """What requests to the lane would name: what it is to run, as it will when somebody has
        copied the name; else what runs, its default, or whatever is."""
        if self.order is not None and self.order.target is not None:
            return self.order.target.preset.slug
        if self.runtime is not None and self.runtime.phase != Phase.FAILED:
            return self.runtime.revision.preset.slug
        return self.lane.default_preset.slug if self.lane.default_preset else "auto"

    @property
    def is_closed(self) -> bool:
        """Whether maintenance is in force."""
        return self.maintenance is not None and self.maintenance.is_in_force(self.now)

    @property
    def is_free(self) -> bool:
        """Whether everybody may use it now."""
        return self.lane.enabled and self.booking is None and not self.is_closed

    def is_mine(self, person: User) -> bool:
        """Whether this person has it now, or has it next."""
        claims = (self.booking, self.next_booking)
        return any(claim is not None and claim.owner_id == person.pk for claim in claims)

    @property
    def digest(self) -> str:
        """Differs whenever what people see of the lane does; the same for every viewer."""
        return digest_of(*_lane_facts(self), *_claim_facts(self), *_server_facts(self))

    @property
    def is_host_silent(self) -> bool:
        """Whether nothing is known of the host, so that its report may be old."""
        host = self.lane.host
        return host.seen_at is None or host.unreachable_since is not None


@dataclass(frozen=True, slots=True)
class _Facts:
    """What was read, by lane."""

    now: datetime
    orders: dict[int, Order]
    runtimes: dict[int, Runtime]
    bookings: dict[int, list[Booking]]
    choices: dict[int, ManualChoice]
    maintenance: dict[int, list[Maintenance]]  # not over, by start
    failures: dict[int, list[PresetFailure]]
    estimates: dict[tuple[int, int], float]
    refusals: dict[int, LaneEvent]  # the newest word of lanes without a server: it is not started
    has_lines: bool  # whether lines of logs may be shown


def lanes_for_people() -> QuerySet[Lane]:
    """Every lane with what its pages need beside it."""
    newest = LaneEvent.objects.filter(lane=OuterRef("pk")).order_by("-at", "-pk").values("pk")[:1]
    lanes = Lane.objects.select_related("host", "default_preset__current__model_file")
    unsaid = facts_of.left_out(
        host=facts_of.HOST,
        default_preset=facts_of.PRESET,
        default_preset__current=facts_of.REVISION,
        default_preset__current__model_file=facts_of.MODEL_FILE,
    )
    states = facts_of.left_out(state=facts_of.READING)
    cards = Prefetch("gpus", Gpu.objects.select_related("state").defer(*states))
    lanes = lanes.defer(*unsaid).prefetch_related(cards)
    return lanes.annotate(newest_event=Subquery(newest))


def overviews(lanes: Iterable[Lane], now: datetime, viewer: User) -> list[LaneOverview]:
    """The lanes at `now` as this person may see them, in their order; a fixed number of queries."""
    lanes = list(lanes)
    unsaid = facts_of.left_out(target=facts_of.REVISION, target__preset=facts_of.PRESET)
    orders = Order.objects.filter(lane__in=lanes).select_related("target__preset").defer(*unsaid)
    choices = ManualChoice.objects.filter(lane__in=lanes, ended_at=None, until__gt=now)
    runtimes = facts_of.newest_runtimes(lanes)
    ordered = {order.lane_id: order for order in orders}
    facts = _Facts(
        now=now,
        orders=ordered,
        refusals=facts_of.refusals(
            [o for o in ordered.values() if facts_of.is_waited_for(o, runtimes)]
        ),
        runtimes=runtimes,
        bookings=facts_of.claims(lanes, now),
        choices={choice.lane_id: choice for choice in choices.select_related("preset")},
        maintenance=facts_of.maintenance(lanes, now),
        failures=facts_of.failures(lanes),
        has_lines=may_read(viewer),
        estimates=load_estimates([(r.lane_id, r.revision.preset_id) for r in runtimes.values()]),
    )
    return [_overview(lane, facts) for lane in lanes]


def _lane_facts(view: LaneOverview) -> tuple[object, ...]:
    lane, host, choice, closed = view.lane, view.lane.host, view.choice, view.maintenance
    return (
        *(lane.name, lane.enabled, lane.needs_approval, lane.default_preset_id),
        *(host.name, host.seen_at is None, _stamp(host.unreachable_since)),
        *((choice.pk, _stamp(choice.until)) if choice else ()),
        *((closed.pk, _stamp(closed.start), _stamp(closed.end), closed.reason) if closed else ()),
        view.is_closed,
        getattr(lane, "newest_event", None),
    )


def _claim_facts(view: LaneOverview) -> list[tuple[object, ...]]:
    claims = (view.booking, view.next_booking)
    return [
        (claim.pk, _stamp(claim.start), _stamp(claim.end), claim.owner_id, claim.preset_id)
        if claim
        else ()
        for claim in claims
    ]


def _server_facts(view: LaneOverview) -> tuple[object, ...]:
    order, runtime, trouble = view.order, view.runtime, view.trouble
    estimate = None if view.progress is None else round(view.estimate or 0)
    return (
        (order.generation, order.rule, order.sentence, order.is_fallback) if order else (),
        (runtime.pk, view.phase, _stamp(runtime.drain_until), runtime.reason) if runtime else (),
        (trouble.revision.pk, trouble.count, _stamp(trouble.retry_at)) if trouble else (),
        (view.held_up, estimate),
    )


def _stamp(moment: datetime | None) -> float | None:
    return moment.timestamp() if moment else None


def recent_events(lane: Lane, limit: int = 20) -> QuerySet[LaneEvent]:
    """The newest sentences about a lane."""
    return lane.events.select_related("actor")[:limit]


def _overview(lane: Lane, facts: _Facts) -> LaneOverview:
    order = facts.orders.get(lane.pk)
    runtime = _shown_runtime(facts.runtimes.get(lane.pk), order)
    claims = facts.bookings.get(lane.pk, [])
    pair = (lane.pk, runtime.revision.preset_id if runtime else 0)
    estimate = facts.estimates.get(pair)
    trouble = trouble_of(runtime, order, facts.failures.get(lane.pk, []), facts.now)
    if trouble is not None and not facts.has_lines:
        trouble = replace(trouble, line="")
    loading = None if lane.host.unreachable_since else _loading(runtime, estimate, facts.now)
    return LaneOverview(
        lane=lane,
        now=facts.now,
        order=order,
        runtime=runtime,
        booking=next((b for b in claims if b.start <= facts.now), None),
        next_booking=next((b for b in claims if b.start > facts.now), None),
        choice=facts.choices.get(lane.pk),
        maintenance=next(iter(facts.maintenance.get(lane.pk, ())), None),
        trouble=trouble,
        held_up="" if trouble or lane.pk not in facts.refusals else facts.refusals[lane.pk].told,
        estimate=estimate,
        progress=loading[0] if loading else None,
        eta=loading[1] if loading else None,
    )


def _loading(
    runtime: Runtime | None, estimate: float | None, now: datetime
) -> tuple[float, datetime] | None:
    """Progress and expected end of a load, while there is one."""
    if runtime is None or estimate is None or runtime.phase != Phase.STARTING:
        return None
    return progress(runtime.started_at, estimate, now), eta(runtime.started_at, estimate, now)


def _shown_runtime(runtime: Runtime | None, order: Order | None) -> Runtime | None:
    """A living runtime, or the failed one of the present order; an ended one is no news."""
    if runtime is None or runtime.ended_at is None:
        return runtime
    is_news = order is not None and runtime.generation == order.generation
    return runtime if is_news and runtime.phase == Phase.FAILED else None
