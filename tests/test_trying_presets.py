"""Test loads: who may, when a lane is free for one, and how each ends."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings

from bookings import test_loads
from bookings.planning import plan_lanes
from bookings.test_load_steps import PATIENCE, Ask, End, Failure, Seen, next_of
from lanes import clock, presets, supervisor, trial
from lanes.engines import registry
from lanes.engines.llama_cpp import LlamaCpp
from lanes.models import (
    Host,
    Lane,
    LoadRecord,
    ManualChoice,
    Phase,
    Preset,
    PresetFailure,
    PresetRevision,
    Runtime,
    TestLoad,
)
from lanes.refusals import Refusal
from tests import builders, fleet
from tests.test_web_pages import signed_in

pytest_plugins = ["tests.fleet_fixtures"]
pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
WAITING = Seen(
    is_wanted=True,
    why_not="",
    is_ready=False,
    load_seconds=None,
    failure=None,
    trial_asked_at=None,
    is_trial_over=False,
)


def seen(**fields: Any) -> Seen:
    """A test that waits, but for these."""
    names = {name: getattr(WAITING, name) for name in WAITING.__slots__}
    return Seen(**{**names, **fields})


FAILURE = Failure("no memory")


@pytest.mark.parametrize(
    ("facts", "step"),
    [
        (seen(), None),
        (seen(is_ready=True, load_seconds=3.0), Ask(3.0)),
        (seen(is_ready=True, trial_asked_at=builders.NOON, load_seconds=3.0), Ask(3.0)),
        (
            seen(is_ready=True, trial_asked_at=builders.NOON - PATIENCE - HOUR, load_seconds=3.0),
            End("passed", 3.0),
        ),
        (seen(is_trial_over=True, is_wanted=False, load_seconds=3.0), End("passed", 3.0)),
        (seen(failure=FAILURE, is_wanted=False), End("failed", failure=FAILURE)),
        (seen(is_wanted=False, why_not="a slot"), End("interrupted", why="a slot")),
        (seen(is_wanted=False, is_ready=True), End("interrupted")),
    ],
)
def test_steps(facts: Seen, step: Ask | End | None) -> None:
    assert next_of(facts, builders.NOON) == step


@pytest.fixture
def lane(db: None) -> Lane:
    """One of a host that answers."""
    made = builders.lane("here")
    Host.objects.update(seen_at=clock.database_now())
    return made


def current(preset: Preset) -> PresetRevision:
    """Its newest saved revision."""
    preset.refresh_from_db()
    assert preset.current is not None
    return preset.current


def begun(lane: Lane, preset: Preset) -> TestLoad:
    """A test that has begun."""
    test = test_loads.begin(lane, current(preset), actor=builders.administrator())
    assert isinstance(test, TestLoad), test
    return test


def refusal(lane: Lane, preset: Preset) -> Refusal:
    """Why none begins."""
    found = test_loads.begin(lane, current(preset), actor=builders.administrator())
    assert isinstance(found, Refusal)
    assert not TestLoad.objects.filter(ended_at=None).exists()
    return found


def test_a_free_lane_is_ordered_to_run_what_is_tested(lane: Lane) -> None:
    preset = builders.preset()
    begun(lane, preset)
    plan_lanes()
    lane.refresh_from_db()
    assert (lane.order.target, lane.order.rule) == (current(preset), 4)


def test_members_begin_and_stop_none(lane: Lane) -> None:
    preset, member = builders.preset(), builders.person()
    refused = test_loads.begin(lane, current(preset), actor=member)
    assert isinstance(refused, Refusal)
    stopped = test_loads.stop(begun(lane, preset), actor=member)
    assert refused.code == stopped.code == "not_administrator"  # type: ignore[union-attr]


def test_a_lane_that_is_booked_now_is_not_free(lane: Lane) -> None:
    now = clock.database_now()
    builders.booking(lane=lane, start=now - HOUR, end=now + HOUR)
    assert refusal(lane, builders.preset()).code == "not_free"


def test_a_lane_that_is_booked_soon_is_not_free(lane: Lane) -> None:
    now = clock.database_now()
    start = now + timedelta(minutes=2)
    builders.booking(lane=lane, start=start, end=now + HOUR)
    found = refusal(lane, builders.preset())
    assert found.code == "not_free"
    assert "preload" in found.words or "slot" in found.words


def test_a_lane_that_is_booked_later_is_free(lane: Lane) -> None:
    now = clock.database_now()
    builders.booking(lane=lane, start=now + HOUR, end=now + 2 * HOUR)
    begun(lane, builders.preset())


def test_a_disabled_lane_is_not_free(lane: Lane) -> None:
    Lane.objects.update(enabled=False)
    assert refusal(lane, builders.preset()).code == "not_free"


def test_a_host_that_is_away_starts_nothing(lane: Lane) -> None:
    Host.objects.update(unreachable_since=clock.database_now())
    assert refusal(lane, builders.preset()).code == "host_unreachable"
    Host.objects.update(unreachable_since=None, seen_at=None)
    assert refusal(lane, builders.preset()).code == "host_unreachable"


def test_a_choice_in_force_is_not_replaced(lane: Lane) -> None:
    now = clock.database_now()
    ManualChoice.objects.create(lane=lane, made_at=now, until=now + HOUR)
    assert refusal(lane, builders.preset()).code == "not_free"


def test_one_test_at_a_time(lane: Lane) -> None:
    begun(lane, builders.preset())
    again = test_loads.begin(lane, current(builders.preset()), actor=builders.administrator())
    assert isinstance(again, Refusal)
    assert again.code == "not_free"


def test_what_cannot_run_there_is_refused(lane: Lane) -> None:
    far = builders.preset(model_file=builders.model_file(host=builders.host("far")))
    assert refusal(lane, far).code == "unknown_preset"
    archived = builders.preset()
    Preset.objects.filter(pk=archived.pk).update(archived_at=builders.NOON)
    assert refusal(lane, archived).code == "archived"


def test_what_is_loaded_already_is_not_loaded_again(lane: Lane) -> None:
    preset = builders.preset()
    running(lane, current(preset), Phase.READY)
    assert "already" in refusal(lane, preset).words


def running(lane: Lane, revision: PresetRevision, phase: Phase, **fields: Any) -> Runtime:
    """A server as its host reports it."""
    now = clock.database_now()
    return Runtime.objects.create(
        lane=lane,
        revision=revision,
        generation=1,
        phase=phase,
        phase_since=now,
        started_at=now,
        address="127.0.0.1",
        port=1,
        **fields,
    )


def outcome(test: TestLoad) -> str:
    """How it ended."""
    test.refresh_from_db()
    return test.outcome


def test_a_booking_made_meanwhile_interrupts_it(lane: Lane) -> None:
    test = begun(lane, builders.preset())
    test_loads.follow()
    assert outcome(test) == ""
    now = clock.database_now()
    builders.booking(lane=lane, start=now, end=now + HOUR, created_at=now)
    test_loads.follow()
    assert outcome(test) == "interrupted"
    assert test.reason
    assert not ManualChoice.objects.filter(ended_at=None).exists()


def test_a_preload_that_is_due_interrupts_it(lane: Lane) -> None:
    test = begun(lane, builders.preset())
    now = clock.database_now()
    builders.booking(lane=lane, start=now + timedelta(minutes=1), end=now + HOUR)
    test_loads.follow()
    assert outcome(test) == "interrupted"


def test_time_ends_it(lane: Lane) -> None:
    test = begun(lane, builders.preset())
    test_loads.follow(clock.database_now() + 10 * HOUR)
    assert outcome(test) == "interrupted"


def test_an_administrator_stops_it_once(lane: Lane) -> None:
    test, administrator = begun(lane, builders.preset()), builders.administrator()
    assert test_loads.stop(test, actor=administrator) is None
    assert outcome(test) == "stopped"
    again = test_loads.stop(test, actor=administrator)
    assert again is not None
    assert again.code == "wrong_state"


def test_a_failure_is_told_with_its_advice(lane: Lane) -> None:
    preset = builders.preset()
    test = begun(lane, preset)
    PresetFailure.objects.create(
        lane=lane,
        revision=current(preset),
        count=1,
        failed_at=clock.database_now(),
        reason="Out of memory.",
        failure_advice="Lower -c.",
    )
    test_loads.follow()
    assert outcome(test) == "failed"
    assert (test.reason, test.advice) == ("Out of memory.", "Lower -c.")


def test_an_earlier_failure_is_not_its(lane: Lane) -> None:
    preset = builders.preset()
    before = clock.database_now() - HOUR
    PresetFailure.objects.create(
        lane=lane, revision=current(preset), count=1, failed_at=before, reason="Before."
    )
    test = begun(lane, preset)
    test_loads.follow()
    assert outcome(test) == ""


def test_nothing_to_follow_costs_one_question(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    with django_assert_num_queries(1):  # tests that run
        test_loads.follow()


def drafted(preset: Preset, *arguments: str) -> PresetRevision:
    """A draft with these arguments."""
    file = current(preset).model_file
    saved = presets.save_draft(
        preset, file, actor=builders.administrator(), arguments=list(arguments)
    )
    assert isinstance(saved, presets.SavedPreset), saved
    return saved.revision


def saved(preset: Preset, *arguments: str) -> PresetRevision:
    """The same, saved."""
    made = presets.save_preset(
        slug=preset.slug,
        model_file=current(preset).model_file,
        actor=builders.administrator(),
        arguments=list(arguments),
    )
    assert isinstance(made, presets.SavedPreset), made
    return made.revision


def test_a_draft_is_tested_and_nothing_else_runs_it(lane: Lane) -> None:
    preset = builders.preset("small", arguments=["-c", "4096"])
    Lane.objects.update(default_preset=preset)
    draft = drafted(preset, "-c", "8192")
    assert (draft.is_draft, draft.number, current(preset).number) == (True, 2, 1)
    test = test_loads.begin(lane, draft, actor=builders.administrator())
    assert isinstance(test, TestLoad)
    plan_lanes()
    lane.refresh_from_db()
    assert lane.order.target == draft
    test_loads.stop(test, actor=builders.administrator())
    plan_lanes()
    lane.order.refresh_from_db()
    assert lane.order.target == current(preset)


def test_a_refused_test_leaves_no_draft(lane: Lane) -> None:
    preset, boss = builders.preset("small", arguments=["-c", "4096"]), builders.administrator()
    file, wish = current(preset).model_file, ["-c", "8192"]
    Lane.objects.update(enabled=False)
    found = test_loads.try_out(lane, preset, file, actor=boss, arguments=wish)
    assert isinstance(found, Refusal)
    assert preset.revisions.count() == 1
    Lane.objects.update(enabled=True)
    done = test_loads.try_out(lane, preset, file, actor=boss, arguments=wish)
    assert isinstance(done, TestLoad)
    assert preset.revisions.get(is_draft=True).arguments == ["-c", "8192"]


def test_what_was_tested_is_what_is_saved() -> None:
    preset = builders.preset("small", arguments=["-c", "4096"])
    draft = drafted(preset, "-c", "8192")
    assert drafted(preset, "-c", "8192") == draft
    assert saved(preset, "-c", "8192") == draft
    draft.refresh_from_db()
    assert not draft.is_draft


def test_drafts_that_are_left_are_no_history() -> None:
    preset = builders.preset("small", arguments=["-c", "4096"])
    drafted(preset, "-c", "8192")
    assert saved(preset, "-c", "512").number == 3
    assert drafted(preset, "-c", "512") == current(preset)
    text = signed_in("administrator").get("/models/presets/small/").content.decode()
    assert "8192" not in text
    assert "-c from 4096 to 512" in text


def pumped(lane: Lane, test: TestLoad, condition: Callable[[], bool]) -> None:
    """Planner, host and follower in turn, until it is so."""

    def turned() -> bool:
        plan_lanes()
        supervisor.look(lane.pk)
        test_loads.follow()
        trial.run(test.pk)
        test.refresh_from_db()
        return condition()

    fleet.until(turned, 240)


def is_over(test: TestLoad) -> Callable[[], bool]:
    return lambda: test.ended_at is not None


@pytest.mark.process
def test_a_load_is_measured_and_the_lane_goes_back(fleet_settings: Settings, lane: Lane) -> None:
    usual, tried = fleet.preset(), fleet.preset("telling")
    Lane.objects.update(default_preset=usual)
    test = begun(lane, tried)
    pumped(lane, test, is_over(test))
    load = LoadRecord.objects.get(lane=lane, revision=current(tried))
    assert (test.outcome, test.load_seconds) == ("passed", load.seconds)
    pumped(lane, test, lambda: Runtime.objects.filter(revision=current(usual)).exists())


@pytest.mark.process
def test_a_server_that_dies_fails_it(fleet_settings: Settings, lane: Lane) -> None:
    test = begun(lane, fleet.preset("dies_at_once"))
    pumped(lane, test, is_over(test))
    assert test.outcome == "failed"
    assert test.reason


@pytest.mark.process
def test_the_real_runner_tells_tokens_a_second(
    fleet_settings: Settings, lane: Lane, demo_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry.ENGINES, "llama.cpp", LlamaCpp())
    file = builders.model_file(path=str(demo_model))
    test = begun(lane, builders.preset(model_file=file, arguments=["-c", "512", "-np", "1"]))
    pumped(lane, test, is_over(test))
    assert test.outcome == "passed", test.reason
    assert test.load_seconds
    assert test.tokens, test.trial_note
    assert test.tokens_per_second
    assert test.tokens_per_second > 0


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b'{"usage": {"completion_tokens": 20}}', trial.Trial(20, 10.0)),
        (
            b'{"usage": {"completion_tokens": 20}, "timings": {"predicted_per_second": 40}}',
            trial.Trial(20, 40.0),
        ),
        (
            b'{"usage": {"completion_tokens": 20}, "timings": {"predicted_per_second": 1e9}}',
            trial.Trial(20, 10.0),
        ),
        (b"[]", trial.Trial(note="no-count")),
        (b'{"usage": {"completion_tokens": "many"}}', trial.Trial(note="no-count")),
        (b"not json", trial.Trial(note="no-count")),
    ],
)
def test_answers_are_read(answer: bytes, expected: trial.Trial) -> None:
    assert trial.read(answer, 2.0) == expected


def test_what_makes_no_completions_is_not_asked(lane: Lane) -> None:
    runtime = running(lane, current(builders.preset()), Phase.READY, capabilities=["embedding"])
    assert trial.ask(runtime).note == "no-completions"


def test_however_often_the_host_is_told_it_asks_once_at_a_time(
    lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    preset = builders.preset()
    test = begun(lane, preset)
    running(lane, current(preset), Phase.READY, capabilities=["completion"])
    TestLoad.objects.update(trial_asked_at=clock.database_now())
    asked: list[int] = []

    def ask(_: Runtime) -> trial.Trial:
        asked.append(test.pk)
        trial.run(test.pk)  # told again meanwhile
        return trial.Trial(note="no-answer")

    monkeypatch.setattr(trial, "ask", ask)
    trial.run(test.pk)
    trial.run(test.pk)
    assert asked == [test.pk]


def test_a_server_that_is_not_there_gives_no_rate(lane: Lane) -> None:
    runtime = running(lane, current(builders.preset()), Phase.READY, capabilities=["completion"])
    assert trial.ask(runtime).note == "no-answer"


def form_of(preset: Preset, **fields: str) -> dict[str, str]:
    """What the editor sends."""
    revision = current(preset)
    said = {"name": preset.name, "model_file": str(revision.model_file_id), "engine": "llama.cpp"}
    return {**said, **fields}


def test_the_editor_begins_one_and_its_page_tells(lane: Lane) -> None:
    preset = builders.preset("small", arguments=["-c", "4096"])
    client = signed_in("administrator")
    fields = form_of(preset, arguments="-c 512", preview_lane="here")
    answer = client.post("/administration/presets/small/test/", fields)
    test = TestLoad.objects.get()
    assert answer.headers["Location"] == f"/administration/tests/{test.pk}/"
    assert (test.revision.arguments, test.revision.is_draft) == (["-c", "512"], True)
    assert current(preset).arguments == ["-c", "4096"]
    page = client.get(f"/administration/tests/{test.pk}/").content.decode()
    assert "Waiting for the lane" in page
    client.post(f"/administration/tests/{test.pk}/stop/")
    refresh = client.get(f"/administration/tests/{test.pk}/", headers={"HX-Request": "true"})
    assert (b"data-live" in refresh.content, b"Stopped" in refresh.content) == (False, True)
    assert "stopped" in client.get("/administration/presets/small/").content.decode()


def test_its_page_leads_back_to_what_was_typed(lane: Lane) -> None:
    preset = builders.preset("small", arguments=["-c", "4096"])
    draft = drafted(preset, "-c", "512")
    test = test_loads.begin(lane, draft, actor=builders.administrator())
    assert isinstance(test, TestLoad), test
    client = signed_in("administrator")
    back = f"/administration/presets/small/?revision={draft.number}"
    assert f'href="{back}"' in client.get(f"/administration/tests/{test.pk}/").content.decode()
    text = client.get(back).content.decode()
    assert text.count("-c 512") == 2  # in the form, and in the command beside it
    for number in ("7", "x", "²", "9" * 40):
        answer = client.get(f"/administration/presets/small/?revision={number}")
        assert "-c 4096" in answer.content.decode()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"preview_lane": "none"}, "Choose a lane"),
        ({"preview_lane": "here", "arguments": '"'}, "alert"),
        ({"preview_lane": "here", "name": ""}, "required"),
    ],
)
def test_the_editor_says_why_none_begins(lane: Lane, fields: dict[str, str], words: str) -> None:
    preset = builders.preset("small")
    client = signed_in("administrator")
    answer = client.post("/administration/presets/small/test/", form_of(preset, **fields))
    assert answer.status_code == 400
    assert words in answer.content.decode()
    assert not TestLoad.objects.exists()


def test_members_see_no_tests(lane: Lane) -> None:
    test = begun(lane, builders.preset("small"))
    client = signed_in("member")
    assert client.get(f"/administration/tests/{test.pk}/").status_code == 403
    assert client.post("/administration/presets/small/test/").status_code == 403
    assert client.post(f"/administration/tests/{test.pk}/stop/").status_code == 403
    assert client.get("/api/v1/test-loads/").json()["code"] == "not_administrator"
    answer = posted(client, "presets/small/test-load/", lane="here")
    assert answer["code"] == "not_administrator"


def posted(client: Client, path: str, **body: object) -> Any:
    """REST's answer."""
    return client.post(f"/api/v1/{path}", body, content_type="application/json").json()


def test_rest_begins_reads_and_stops_them(lane: Lane) -> None:
    builders.preset("small")
    client = signed_in("administrator")
    made = posted(client, "presets/small/test-load/", lane="here", arguments=["-c", "512"])
    assert (made["outcome"], made["is_draft"], made["revision"]) == ("running", True, 2)
    place = f"test-loads/{made['id']}/"
    assert client.get(f"/api/v1/{place}").json()["lane"] == "here"
    assert client.get("/api/v1/test-loads/").json()["results"][0]["id"] == made["id"]
    assert posted(client, f"{place}stop/")["outcome"] == "stopped"
    assert posted(client, f"{place}stop/")["code"] == "wrong_state"


def test_rest_refuses_what_cannot_be_tested(lane: Lane) -> None:
    builders.preset("small")
    client = signed_in("administrator")
    assert posted(client, "presets/small/test-load/")["fields"]["lane"]
    assert posted(client, "presets/small/test-load/", lane="here", x=1)["code"] == "invalid"
    Lane.objects.update(enabled=False)
    assert posted(client, "presets/small/test-load/", lane="here")["code"] == "not_free"


def test_a_preset_that_was_tested_can_be_deleted(lane: Lane) -> None:
    preset = builders.preset("small")
    test_loads.stop(begun(lane, preset), actor=builders.administrator())
    answer = signed_in("administrator").delete("/api/v1/presets/small/")
    assert answer.status_code == 204
    assert not TestLoad.objects.exists()


def test_a_moment_is_told(lane: Lane) -> None:
    test = begun(lane, builders.preset())
    assert isinstance(test.asked_at, datetime)
    assert list(lane.events.values_list("kind", flat=True)) == ["test"]
