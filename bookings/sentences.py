"""The planner's reasons in sentences a person can read. Pure; they name no person."""

from dataclasses import dataclass
from datetime import datetime, tzinfo

from bookings.planner_fallback import Course, failure_of
from bookings.planner_rules import Ruling
from bookings.situation import Choice, Failure, Situation, Target
from lanes.backoff import retry_wait
from wire.words import At, Words, said


def sentence(situation: Situation, ruling: Ruling, taken: Course, now: datetime) -> Words:
    """What runs or is coming, why, and until when."""
    scene = _Scene(situation, ruling, now)
    if ruling.rule == 0:
        return said("nothing is loaded: {why}", why=_why_closed(scene))
    if ruling.wanted is None:
        return said("nothing is loaded: {why}", why=_why_nothing(scene))
    if taken.failure is not None and (taken.is_fallback or not scene.is_ready(ruling.wanted)):
        return _failing(scene, ruling.wanted, taken, taken.failure)
    return _running(scene, ruling.wanted)


def slot(start: datetime, end: datetime, now: datetime, zone: tzinfo) -> Words:
    """A slot by what matters of it: when it begins or, once it has, when it ends."""
    if start <= now:
        return said("until {end}", end=At(end, now, zone))
    return said("from {start}", start=At(start, now, zone))


@dataclass(frozen=True, slots=True)
class _Scene:
    """What a sentence is about, and the times in it."""

    situation: Situation
    ruling: Ruling
    now: datetime

    def at(self, moment: datetime) -> At:
        return At(moment, self.now, self.situation.zone)

    def is_ready(self, target: Target) -> bool:
        """Whether the host says that this very target is loaded."""
        report = self.situation.report
        return (
            report is not None
            and report.phase == "ready"
            and report.revision_id == target.revision_id
        )


def _why_closed(scene: _Scene) -> Words:
    """Why rule 0 lets nothing run."""
    closure = scene.ruling.closure
    if closure is None:
        return said("the lane {lane} is disabled", lane=scene.situation.lane)
    if closure.start > scene.now:
        words = said("maintenance begins at {start}", start=scene.at(closure.start))
    elif closure.end is None:
        words = said("maintenance until it is ended")
    else:
        words = said("maintenance until {end}", end=scene.at(closure.end))
    if not closure.reason:
        return words
    return said("{sentence} ({reason})", sentence=words, reason=closure.reason)


def _why_nothing(scene: _Scene) -> Words:
    """Why no model server is wanted."""
    ruling = scene.ruling
    if ruling.claim is not None:
        start, end = scene.at(ruling.claim.active_from), scene.at(ruling.claim.end)
        if ruling.is_hold and ruling.skipped is not None:
            return said(
                "there is no time to load {preset} before the whole-GPU slot at {start}",
                preset=ruling.skipped.preset,
                start=start,
            )
        if ruling.rule == 1:
            return said("the whole GPU is booked until {end}", end=end)
        return said("the whole GPU is booked from {start}", start=start)
    if ruling.choice is not None:
        return said("an administrator chose so {until}", until=_choice_end(scene, ruling.choice))
    return _with_next_slot(scene, said("no slot is in progress and the lane has no default"))


def _running(scene: _Scene, wanted: Target) -> Words:
    """A target that runs or loads, with no failure in the way."""
    ruling, purpose = scene.ruling, _purpose(scene)
    if scene.is_ready(wanted):
        words = said("running {preset} {purpose}", preset=wanted.preset, purpose=purpose)
    else:
        words = _loading(scene, wanted, purpose)
    if ruling.skipped is not None:
        return said(
            "{sentence}; there is no time to load {preset} before it",
            sentence=words,
            preset=ruling.skipped.preset,
        )
    return _with_next_slot(scene, words) if ruling.rule == 5 else words


def _loading(scene: _Scene, wanted: Target, purpose: Words) -> Words:
    what = {"preset": wanted.preset, "purpose": purpose, "load": _load(wanted)}
    if scene.ruling.served is not None and scene.ruling.rule != 1:
        return said("preloading {preset} {purpose}: {load}", **what)
    return said("loading {preset} {purpose}: {load}", **what)


def _failing(scene: _Scene, wanted: Target, taken: Course, failure: Failure) -> Words:
    """A target that failed: what runs meanwhile and when it is tried, or that it is tried now."""
    what = {"preset": wanted.preset, "purpose": _purpose(scene), "failed": _failed(failure.count)}
    if taken.retry_at is not None and scene.now >= taken.retry_at:
        return said("trying {preset} again {purpose}: {failed}, {load}", **what, load=_load(wanted))
    return said(
        "{preset}, wanted {purpose}, {failed}{meanwhile}; next attempt {moment}",
        **what,
        meanwhile=_meanwhile(scene, wanted, taken),
        moment=_next_attempt(scene, taken, failure),
    )


def _next_attempt(scene: _Scene, taken: Course, failure: Failure) -> Words:
    if taken.retry_at is None:
        return said("{seconds} s after that is loaded", seconds=round(retry_wait(failure.count)))
    return said("at {moment}", moment=scene.at(taken.retry_at))


def _meanwhile(scene: _Scene, wanted: Target, taken: Course) -> str:
    """What runs in place of a failed target, or why nothing does."""
    default = scene.situation.default
    if scene.ruling.served is None:  # rules 4 and 5 have no fallback
        return ""
    if default is None:
        return said(" and the lane has no default to run meanwhile")
    if taken.is_fallback:
        return said(": {preset}, the default, runs meanwhile", preset=default.preset)
    if default.preset == wanted.preset:
        return said(" and is the lane's default as well")
    is_failing = failure_of(scene.situation, default) is not None
    words = said(" and {preset}, the default, fails too", preset=default.preset)
    return words if is_failing else ""


def _purpose(scene: _Scene) -> Words:
    """What a preset is wanted for, with the time that bounds it."""
    ruling = scene.ruling
    if ruling.choice is not None:
        until = _choice_end(scene, ruling.choice)
        return said("as an administrator's choice {until}", until=until)
    if ruling.claim is None:
        return said("as the lane's default")
    if ruling.rule == 1:
        return said("for the slot until {end}", end=scene.at(ruling.claim.end))
    start = scene.at(ruling.claim.active_from)
    if ruling.is_hold:
        return said("until the whole-GPU slot at {start}", start=start)
    return said("for the {start} slot", start=start)


def _choice_end(scene: _Scene, choice: Choice) -> Words:
    """Until when a choice lasts: its time, or the next slot."""
    upcoming = scene.ruling.upcoming
    if upcoming is not None and upcoming.active_from <= choice.until:
        return said("until the {start} slot", start=scene.at(upcoming.active_from))
    return said("until {end}", end=scene.at(choice.until))


def _with_next_slot(scene: _Scene, words: Words) -> Words:
    upcoming = scene.ruling.upcoming
    if upcoming is None:
        return words
    start = scene.at(upcoming.active_from)
    return said("{sentence}; next slot at {start}", sentence=words, start=start)


def _load(target: Target) -> Words:
    return said("load ≈ {seconds} s", seconds=round(target.load_seconds))


def _failed(count: int) -> Words:
    if count == 1:
        return said("failed once")
    return said("failed twice") if count == 2 else said("failed {count} times", count=count)
