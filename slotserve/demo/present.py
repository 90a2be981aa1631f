"""What its lanes do at this moment, each in another state: ready in somebody's slot, loading, a
fallback, the default, a whole-GPU slot, and an administrator's choice."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bookings.models import Booking, Kind, State
from lanes.gpus.readings import Holder
from lanes.gpus.stored import holders_to_json
from lanes.models import (
    GpuState,
    HostGpus,
    Lane,
    LoadRecord,
    ManualChoice,
    Order,
    Phase,
    Preset,
    PresetFailure,
    Runtime,
)
from lanes.notices import News, administrators, tell_people
from slotserve.demo.cast import GIB
from slotserve.demo.company import Company
from slotserve.demo.scale import Demo, sure
from wire.words import At, Words, kept_of, said

PIDS = 40_000
OUT_OF_MEMORY = said("The GPU ran out of memory (it asked for {0} more).", "6.1 GiB")
ADVICE = said("Lower -ngl or -c in the preset, or quantise the KV cache with -ctk and -ctv.")


@dataclass(frozen=True, slots=True)
class Doing:
    """What a lane does. Ages in seconds."""

    target: Preset | None
    rule: int
    sentence: Words
    phase: Phase | None = Phase.READY
    age: float = 3000
    booking: Booking | None = None
    is_fallback: bool = False


def make_present(demo: Demo, company: Company) -> None:
    """Orders, servers, cards, a failure and a choice."""
    for number, lane in enumerate(company.lanes):
        doing = _doing(demo, company, lane, number)
        _order(demo, lane, doing)
        _server(demo, lane, doing)
        _cards(demo, company, lane, doing)


def _doing(demo: Demo, company: Company, lane: Lane, number: int) -> Doing:
    on = Booking.objects.filter(lane=lane, state=State.CONFIRMED, start__lte=demo.now)
    booking = on.filter(end__gt=demo.now).select_related("preset", "owner").first()
    default = sure(lane.default_preset)
    if booking is None and number == len(company.lanes) - 1:
        return _chosen(demo, company, lane)
    if booking is None:
        words = said("running {preset} as the lane's default", preset=default.slug)
        return Doing(default, 5, words)
    end = At(booking.end, demo.now, UTC)
    if booking.kind == Kind.GPU or booking.preset is None:
        words = said("nothing is loaded: the whole GPU is booked until {end}", end=end)
        return Doing(None, 1, words, None, booking=booking)
    slug = booking.preset.slug
    if number == 1:
        words = said("loading {preset} for the slot until {end}", preset=slug, end=end)
        return Doing(booking.preset, 1, words, Phase.STARTING, 14, booking)
    if number == 3 and booking.preset != default:
        return _failing(demo, lane, booking, default)
    words = said("running {preset} for the slot until {end}", preset=slug, end=end)
    return Doing(booking.preset, 1, words, booking=booking)


def _failing(demo: Demo, lane: Lane, booking: Booking, default: Preset) -> Doing:
    wanted = sure(booking.preset)
    PresetFailure.objects.create(
        lane=lane,
        revision=sure(wanted.current),
        count=2,
        since=demo.now - timedelta(minutes=4),
        failed_at=demo.now - timedelta(seconds=40),
        reason=OUT_OF_MEMORY,
        failure_kind="gpu_memory",
        failure_advice=ADVICE,
        words={"reason": kept_of(OUT_OF_MEMORY), "advice": kept_of(ADVICE)},
        booking_id_for=booking.pk,
    )
    words = said(
        "{preset}, wanted for the slot, failed twice: {default}, the default, runs meanwhile",
        preset=wanted.slug,
        default=default.slug,
    )
    fact = said(
        "{preset} does not run on {lane}: {reason}",
        preset=str(wanted),
        lane=lane.name,
        reason=OUT_OF_MEMORY,
    )
    news = News(f"demo:{lane.pk}", "failure", fact, ADVICE, lane)
    tell_people([booking.owner, *administrators()], news, demo.now)
    return Doing(default, 1, words, age=120, booking=booking, is_fallback=True)


def _chosen(demo: Demo, company: Company, lane: Lane) -> Doing:
    preset = company.presets[lane.pk][-1]
    until = demo.now + timedelta(hours=3)
    ManualChoice.objects.create(
        lane=lane,
        preset=preset,
        made_at=demo.now - timedelta(minutes=30),
        until=until,
        made_by=company.administrator,
    )
    end = At(until, demo.now, UTC)
    words = said(
        "running {preset} as an administrator's choice until {end}", preset=preset.slug, end=end
    )
    return Doing(preset, 4, words)


def _order(demo: Demo, lane: Lane, doing: Doing) -> None:
    booking = doing.booking
    Order.objects.create(
        lane=lane,
        target=doing.target.current if doing.target else None,
        generation=7,
        ordered_at=demo.now - timedelta(seconds=doing.age),
        decided_at=demo.now,
        rule=doing.rule,
        booking_id_for=booking.pk if booking else None,
        booking_start_for=booking.start if booking else None,
        booking_preset_for=booking.preset.slug if booking and booking.preset else "",
        owner_id_for=booking.owner_id if booking else None,
        is_fallback=doing.is_fallback,
        sentence=doing.sentence,
        words=kept_of(doing.sentence),
    )


def _server(demo: Demo, lane: Lane, doing: Doing) -> None:
    if doing.target is None or doing.target.current is None or doing.phase is None:
        return
    started = demo.now - timedelta(seconds=doing.age)
    is_ready = doing.phase == Phase.READY
    if is_ready:
        _load_of(lane, doing.target, started - timedelta(days=1))
    Runtime.objects.create(
        lane=lane,
        revision=doing.target.current,
        generation=7,
        phase=doing.phase,
        phase_since=started,
        started_at=started,
        ready_at=started + timedelta(seconds=20) if is_ready else None,
        address="127.0.0.1",
        port=18100 + lane.pk,
        sealed_key="-",
        pid=PIDS + lane.pk,
        slots=4 if is_ready else None,
        context_length=8192 if is_ready else None,
        capabilities=["completion"] if is_ready else [],
    )


def _load_of(lane: Lane, preset: Preset, started: datetime) -> None:
    LoadRecord.objects.create(
        lane=lane,
        revision=sure(preset.current),
        generation=6,
        started_at=started,
        seconds=31.5,
        succeeded=True,
    )


def _cards(demo: Demo, company: Company, lane: Lane, doing: Doing) -> None:
    HostGpus.objects.get_or_create(
        host=lane.host, defaults={"read_at": demo.now, "driver": "580.95.05"}
    )
    cards = list(lane.gpus.all())
    size = company.models[doing.target.pk].size_bytes if doing.target else 0
    is_busy = doing.booking is not None and doing.phase == Phase.READY
    held = int(size * 1.15 / len(cards)) if cards and doing.phase else 0
    for number, gpu in enumerate(cards):
        GpuState.objects.create(
            gpu=gpu,
            read_at=demo.now,
            number=number,
            used_bytes=min(held + GIB // 2, gpu.memory_bytes),
            utilisation=demo.dice.randint(58, 97) if is_busy else demo.dice.randint(0, 3),
            power_watts=demo.dice.uniform(170, 290) if is_busy else 24.0,
            temperature=demo.dice.randint(58, 74) if is_busy else 36,
            processes=holders_to_json([_server_of(lane, held)] if held else []),
        )


def _server_of(lane: Lane, held: int) -> Holder:
    return Holder(
        pid=PIDS + lane.pk,
        ticks=1,
        user="slotserve",
        command="llama-server",
        memory_bytes=held,
        lane=lane.slug,
    )
