"""Test loads: an administrator has a lane run a preset's revision for as long as the test takes.

A test is a choice with a marker. The planner treats it as any choice, so a booking, its preload and
everything else that goes before a choice goes before a test; it is then interrupted.
"""

import logging
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Unpack

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from bookings.facts import LaneFacts, read_facts, situation_of
from bookings.planner import decide
from bookings.situation import Choice, Target
from bookings.test_load_steps import Ask, End, Failure, Seen, Step, next_of
from lanes import clock, presets, ticks
from lanes.archived import archived_objection
from lanes.estimates import load_estimates
from lanes.events import add_event
from lanes.locking import lock_lane
from lanes.models import (
    Lane,
    LoadRecord,
    ManualChoice,
    ModelFile,
    Phase,
    Preset,
    PresetFailure,
    PresetRevision,
    Runtime,
)
from lanes.models.trying import Outcome, TestLoad
from lanes.preset_content import PresetWish
from lanes.presets import SavedPreset
from lanes.refusals import NOT_ADMINISTRATOR, Refusal
from wire.words import kept_of, said

log = logging.getLogger(__name__)
TRIAL_SECONDS = 180.0  # of a test's time are for what comes after the load
GONE = Refusal("not_found", said("This lane has been deleted meanwhile."))


def try_out(
    lane: Lane, preset: Preset, model_file: ModelFile, *, actor: User, **wish: Unpack[PresetWish]
) -> TestLoad | Refusal:
    """Have the lane run what is wished, as a draft of the preset; a refusal leaves no draft.

    Refusals: those of `presets.save_preset` and of `begin`.
    """
    with transaction.atomic():
        done: TestLoad | SavedPreset | Refusal
        done = presets.save_draft(preset, model_file, actor=actor, **wish)
        if isinstance(done, SavedPreset):
            done = begin(lane, done.revision, actor=actor)
        if isinstance(done, Refusal):
            transaction.set_rollback(True)
    return done


def begin(lane: Lane, revision: PresetRevision, *, actor: User) -> TestLoad | Refusal:
    """Have the lane run this revision now, to see whether and how fast it loads.

    Refusals: not_administrator, unknown_preset, archived, host_unreachable; not_free (disabled,
    booked now or too soon, another choice or test in force, loaded already); not_found.
    """
    if not actor.is_staff:
        return NOT_ADMINISTRATOR
    if revision.model_file.host_id != lane.host_id:
        words = said(
            "{lane} cannot run {preset}: its file is not on the host.",
            lane=str(lane),
            preset=str(revision.preset),
        )
        return Refusal("unknown_preset", words)
    with transaction.atomic():
        locked = lock_lane(lane)
        if locked is None:
            return GONE
        now = clock.database_now()
        refusal = archived_objection(revision.preset) or _objection(lane, revision, now)
        if refusal:
            return refusal
        test = _make(lane, revision, actor, now)
        words = said("a test load of {revision} was asked for", revision=str(revision))
        add_event(lane, now, "test", words, actor=actor)
        ticks.plan_soon()
    return test


def stop(test: TestLoad, *, actor: User) -> Refusal | None:
    """End a test. Refusals: not_administrator, wrong_state when it has ended."""
    if not actor.is_staff:
        return NOT_ADMINISTRATOR
    ended = _end(test, End("stopped"), clock.database_now(), actor=actor)
    return None if ended else Refusal("wrong_state", said("This test has ended already."))


def follow(now: datetime | None = None) -> None:
    """Take each test that runs one step further; one query when none does."""
    running = TestLoad.objects.filter(ended_at=None).select_related(
        "revision__preset", "lane__host"
    )
    tests = list(running)
    if not tests:
        return
    now = now or clock.database_now()
    facts = read_facts({test.lane_id for test in tests}, now)
    for test in tests:
        _take(test, next_of(_seen(test, facts[test.lane_id], now), now), now)


def _take(test: TestLoad, step: Step | None, now: datetime) -> None:
    if isinstance(step, End):
        _end(test, step, now)
    elif isinstance(step, Ask):
        fresh = TestLoad.objects.filter(pk=test.pk, trial_asked_at=None)
        fresh.update(trial_asked_at=now, load_seconds=step.load_seconds)
        ticks.request_trial(test.pk, test.lane.host.key)


def _seen(test: TestLoad, facts: LaneFacts, now: datetime) -> Seen:
    """What bears on a test that runs."""
    decision = decide(situation_of(facts), now)
    is_ours = facts.choice is not None and facts.choice.pk == test.choice_id
    wanted = decision.target.revision_id if decision.target else None
    failures = PresetFailure.objects.filter(
        lane=test.lane_id, revision=test.revision_id, count__gt=0, failed_at__gte=test.asked_at
    )
    failure = failures.values_list("reason", "failure_advice", "words").first()
    loads = LoadRecord.objects.filter(
        lane=test.lane_id, revision=test.revision_id, succeeded=True, started_at__gte=test.asked_at
    )
    is_ready = Runtime.objects.filter(
        lane=test.lane_id, revision=test.revision_id, phase=Phase.READY, ended_at=None
    ).exists()
    return Seen(
        is_wanted=is_ours and decision.rule == 4 and wanted == test.revision_id,
        why_not=decision.sentence,
        is_ready=is_ready,
        load_seconds=loads.values_list("seconds", flat=True).first(),
        failure=Failure(*failure) if failure else None,
        trial_asked_at=test.trial_asked_at,
        is_trial_over=test.trial_ended_at is not None,
    )


def _objection(lane: Lane, revision: PresetRevision, now: datetime) -> Refusal | None:
    """Why it cannot be tested on this lane now: by the planner's own answer, were it chosen."""
    facts = read_facts({lane.pk}, now)[lane.pk]
    host = facts.lane.host
    if host.unreachable_since is not None or host.seen_at is None:
        return Refusal(
            "host_unreachable",
            said("{host} does not answer: nothing starts there.", host=host.name),
        )
    if facts.choice is not None and not facts.is_choice_over:
        words = said("A choice or a test is in force on {lane}: end it first.", lane=str(lane))
        return Refusal("not_free", words)
    runtime = facts.runtime
    if runtime and runtime.revision_id == revision.pk and runtime.ended_at is None:
        return Refusal(
            "not_free",
            said("{lane} has loaded this already: change something, or reload.", lane=str(lane)),
        )
    until = now + _longest()
    pair = (lane.pk, revision.preset_id)
    target = Target(revision.pk, revision.preset.slug, load_estimates([pair]).get(pair, 0.0))
    choice = Choice(target, made_at=now, until=until)
    decision = decide(replace(situation_of(facts), choice=choice), now)
    if decision.rule == 4:
        return None
    words = said("{lane} is not free for a test: {why}.", lane=str(lane), why=decision.sentence)
    return Refusal("not_free", words)


def _make(lane: Lane, revision: PresetRevision, actor: User, now: datetime) -> TestLoad:
    ManualChoice.objects.filter(lane=lane, ended_at=None).update(ended_at=now)
    choice = ManualChoice.objects.create(
        lane=lane,
        preset=revision.preset,
        revision=revision,
        made_at=now,
        until=now + _longest(),
        made_by=actor,
    )
    return TestLoad.objects.create(
        lane=lane, revision=revision, choice=choice, asked_at=now, asked_by=actor
    )


def _longest() -> timedelta:
    return timedelta(seconds=settings.SLOTSERVE_LOAD_TIMEOUT_SECONDS + TRIAL_SECONDS)


def _end(test: TestLoad, end: End, now: datetime, *, actor: User | None = None) -> bool:
    """Write the outcome once, give the lane back, and tell."""
    with transaction.atomic():
        columns = {"outcome": end.outcome, "ended_at": now, **_cause(end)}
        if end.load_seconds is not None:
            columns["load_seconds"] = end.load_seconds
        if not TestLoad.objects.filter(pk=test.pk, ended_at=None).update(**columns):
            return False
        ManualChoice.objects.filter(test_load=test, ended_at=None).update(ended_at=now)
        told = _TOLD[Outcome(end.outcome)](str(test.revision))
        add_event(test.lane, now, "test", told, actor=actor)
        ticks.plan_soon()
    log.info("test load ended lane=%s outcome=%s", test.lane_id, end.outcome)
    return True


def _cause(end: End) -> dict[str, object]:
    if end.failure is not None:
        return asdict(end.failure)
    kept = kept_of(end.why)
    return {"reason": str(end.why)[:500], "words": {"reason": kept} if kept else None}


_TOLD: dict[Outcome, Callable[[str], str]] = {
    Outcome.PASSED: lambda name: said("the test load of {revision} passed", revision=name),
    Outcome.FAILED: lambda name: said("the test load of {revision} failed", revision=name),
    Outcome.STOPPED: lambda name: said("the test load of {revision} was stopped", revision=name),
    Outcome.INTERRUPTED: lambda name: said(
        "the test load of {revision} was interrupted", revision=name
    ),
}
