"""The planner's reasons in sentences a person can read. Pure; they name no person."""

from dataclasses import dataclass
from datetime import datetime, tzinfo

from bookings.planner_fallback import Course, failure_of
from bookings.planner_rules import Ruling
from bookings.situation import Choice, Failure, Situation, Target
from lanes.backoff import retry_wait


def sentence(situation: Situation, ruling: Ruling, taken: Course, now: datetime) -> str:
    """What runs or is coming, why, and until when."""
    scene = _Scene(situation, ruling, now)
    if ruling.rule == 0:
        return f"nothing is loaded: the lane {situation.lane} is disabled"
    if ruling.wanted is None:
        return f"nothing is loaded: {_why_nothing(scene)}"
    if taken.failure is not None and (taken.is_fallback or not scene.is_ready(ruling.wanted)):
        return _failing(scene, ruling.wanted, taken, taken.failure)
    return _running(scene, ruling.wanted)


def clock(moment: datetime, now: datetime, zone: tzinfo) -> str:
    """A time with its zone's name: "14:00 UTC"; seconds if it has any; the day unless today."""
    local, today = moment.astimezone(zone), now.astimezone(zone).date()
    words = [f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}", local.tzname() or ""]
    if local.date() != today:
        year = f" {local.year}" if local.year != today.year else ""
        words.insert(0, f"{local.day} {local:%b}{year}")
    return " ".join(words).strip()


def slot(start: datetime, end: datetime, now: datetime, zone: tzinfo) -> str:
    """A slot by what matters of it: when it begins or, once it has, when it ends."""
    return f"until {clock(end, now, zone)}" if start <= now else f"from {clock(start, now, zone)}"


@dataclass(frozen=True, slots=True)
class _Scene:
    """What a sentence is about, and the times in it."""

    situation: Situation
    ruling: Ruling
    now: datetime

    def clock(self, moment: datetime) -> str:
        return clock(moment, self.now, self.situation.zone)

    def is_ready(self, target: Target) -> bool:
        """Whether the host says that this very target is loaded."""
        report = self.situation.report
        return (
            report is not None
            and report.phase == "ready"
            and report.revision_id == target.revision_id
        )


def _why_nothing(scene: _Scene) -> str:
    """Why no model server is wanted."""
    ruling = scene.ruling
    if ruling.claim is not None:
        start, end = scene.clock(ruling.claim.active_from), scene.clock(ruling.claim.end)
        if ruling.is_hold and ruling.skipped is not None:
            skipped = ruling.skipped.preset
            return f"there is no time to load {skipped} before the whole-GPU slot at {start}"
        return f"the whole GPU is booked {f'until {end}' if ruling.rule == 1 else f'from {start}'}"
    if ruling.choice is not None:
        return f"an administrator chose so {_choice_end(scene, ruling.choice)}"
    return f"no slot is in progress and the lane has no default{_next_slot(scene)}"


def _running(scene: _Scene, wanted: Target) -> str:
    """A target that runs or loads, with no failure in the way."""
    ruling, purpose = scene.ruling, _purpose(scene)
    if scene.is_ready(wanted):
        said = f"running {wanted.preset} {purpose}"
    else:
        verb = "preloading" if ruling.served is not None and ruling.rule != 1 else "loading"
        said = f"{verb} {wanted.preset} {purpose}: {_load(wanted)}"
    if ruling.skipped is not None:
        return f"{said}; there is no time to load {ruling.skipped.preset} before it"
    return said + (_next_slot(scene) if ruling.rule == 5 else "")


def _failing(scene: _Scene, wanted: Target, taken: Course, failure: Failure) -> str:
    """A target that failed: what runs meanwhile and when it is tried, or that it is tried now."""
    purpose, failed = _purpose(scene), f"failed {_times(failure.count)}"
    if taken.retry_at is not None and scene.now >= taken.retry_at:
        return f"trying {wanted.preset} again {purpose}: {failed}, {_load(wanted)}"
    if taken.retry_at is None:
        moment = f"{round(retry_wait(failure.count))} s after that is loaded"
    else:
        moment = f"at {scene.clock(taken.retry_at)}"
    meanwhile = _meanwhile(scene, wanted, taken)
    return f"{wanted.preset}, wanted {purpose}, {failed}{meanwhile}; next attempt {moment}"


def _meanwhile(scene: _Scene, wanted: Target, taken: Course) -> str:
    """What runs in place of a failed target, or why nothing does."""
    default = scene.situation.default
    if scene.ruling.served is None:  # rules 4 and 5 have no fallback
        return ""
    if default is None:
        return " and the lane has no default to run meanwhile"
    if taken.is_fallback:
        return f": {default.preset}, the default, runs meanwhile"
    if default.preset == wanted.preset:
        return " and is the lane's default as well"
    is_failing = failure_of(scene.situation, default) is not None
    return f" and {default.preset}, the default, fails too" if is_failing else ""


def _purpose(scene: _Scene) -> str:
    """What a preset is wanted for, with the time that bounds it."""
    ruling = scene.ruling
    if ruling.choice is not None:
        return f"as an administrator's choice {_choice_end(scene, ruling.choice)}"
    if ruling.claim is None:
        return "as the lane's default"
    if ruling.rule == 1:
        return f"for the slot until {scene.clock(ruling.claim.end)}"
    start = scene.clock(ruling.claim.active_from)
    return f"until the whole-GPU slot at {start}" if ruling.is_hold else f"for the {start} slot"


def _choice_end(scene: _Scene, choice: Choice) -> str:
    """Until when a choice lasts: its time, or the next slot."""
    upcoming = scene.ruling.upcoming
    if upcoming is not None and upcoming.active_from <= choice.until:
        return f"until the {scene.clock(upcoming.active_from)} slot"
    return f"until {scene.clock(choice.until)}"


def _next_slot(scene: _Scene) -> str:
    upcoming = scene.ruling.upcoming
    return f"; next slot at {scene.clock(upcoming.active_from)}" if upcoming is not None else ""


def _load(target: Target) -> str:
    return f"load ≈ {round(target.load_seconds)} s"


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
