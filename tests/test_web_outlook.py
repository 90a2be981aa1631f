"""What the form says of a slot before it is booked."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.template import Context, Template

from bookings.foretelling import Foretold, Why
from bookings.models import Policy
from bookings.policies import standing_of
from bookings.refusals import Interval, SlotTaken
from lanes.models import Lane, LoadRecord, Phase, Preset
from slotserve.web.outlook import Asked, Load, expectations, in_the_way, must_wait, outlook
from slotserve.web.rows import offers
from tests import browser_pages as pages
from tests import builders
from tests.builders import at
from tests.conftest import Moment

WAITS = "The first 90 s of your slot are loading, "


def said(facts: tuple[Any, ...], model: str = "Qwen") -> str:
    """The sentence about the wait, for a model that takes 90 s."""
    why, waits, drained = (*facts, 0.0, 0.0)[:3]
    return expectations(Load(model, 90.0), Foretold(why, at(57), waits, drained), at(0))[-1]


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ((Why.SAME_BEFORE,), "No reload: the same model runs before you."),
        ((Why.LOADED,), "No reload: it is loaded by then."),
        ((Why.EARLY,), "Warm at 12:57 UTC, before your slot starts."),
        ((Why.AT_ONCE, 90), WAITS + "which starts at once. Warm at 12:57 UTC."),
        (
            (Why.OTHER_BEFORE, 90, 30),
            WAITS + "because the slot before runs another model. Warm at 12:57 UTC. "
            "Running requests may finish first, for up to 30 s.",
        ),
        (
            (Why.GPU_BEFORE, 90),
            WAITS + "because the slot before has the whole GPU. Warm at 12:57 UTC.",
        ),
        (
            (Why.CLOSED_BEFORE, 90),
            "The first 90 s of your slot are without a model, because of maintenance. "
            "Warm at 12:57 UTC.",
        ),
        (
            (Why.OWNER_CHANGES, 90),
            WAITS + "because this lane restarts its server for each owner. Warm at 12:57 UTC.",
        ),
    ],
)
def test_the_wait_at_the_start_of_a_slot_is_told(facts: Any, sentence: str) -> None:
    assert said(facts) == sentence


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ((Why.EARLY,), "No model server runs on the lane when your slot starts."),
        ((Why.LOADED,), "yours at once"),
        ((Why.AT_ONCE, 0, 30), "is stopped when your slot starts. Running requests may finish"),
        ((Why.CLOSED_BEFORE, 60), "under maintenance"),
    ],
)
def test_the_whole_gpu_needs_the_server_to_stop(facts: Any, words: str) -> None:
    assert words in said(facts, model="")


def test_an_estimate_says_where_it_comes_from() -> None:
    found = Foretold(Why.EARLY, at(57))
    assert (
        "about 90 s to load, as its last loads here did"
        in (expectations(Load("Qwen", 90.0), found, at(0))[0])
    )
    guess = expectations(Load("Qwen", 600.0, is_measured=False), found, at(0))[0]
    assert "takes about 10 min to load, guessed from the file's size: it has never" in guess


@pytest.fixture
def lane(db: None, moment: Moment) -> Lane:
    """A lane whose default is loaded."""
    lane = builders.lane("demo", default_preset=builders.preset("small"))
    assert lane.default_preset is not None
    pages.order(lane, lane.default_preset)
    pages.runtime(lane, lane.default_preset, Phase.READY)
    return lane


def outlook_of(lane: Lane, preset: Preset | None, start: datetime | None = None) -> str:
    return " ".join(outlook(Asked(lane, preset, start, None), builders.person(), at(0)))


def test_what_is_loaded_now_needs_no_load(lane: Lane) -> None:
    assert outlook_of(lane, lane.default_preset) == "No reload: it is loaded by then."
    assert "which starts at once" in outlook_of(lane, builders.preset("other"))


def test_a_model_that_is_loaded_early_is_said_to_be_warm(lane: Lane) -> None:
    assert "Warm at 12:57:45 UTC, before your slot" in outlook_of(
        lane, builders.preset("other"), at(60)
    )


def test_loads_on_this_lane_are_the_measure(lane: Lane) -> None:
    preset = builders.preset("measured")
    assert preset.current is not None
    LoadRecord.objects.create(
        lane=lane,
        revision=preset.current,
        generation=1,
        started_at=at(-60),
        seconds=42.0,
        succeeded=True,
    )
    assert "about 42 s to load, as its last loads" in outlook_of(lane, preset)
    assert "guessed" in outlook_of(builders.lane(), preset)


def test_the_slot_just_before_decides_what_is_loaded(lane: Lane) -> None:
    same, other = builders.preset("same"), builders.preset("other")
    builders.booking(lane=lane, preset=same, start=at(10), end=at(60))
    assert "the same model runs before you" in outlook_of(lane, same, at(60))
    assert "because the slot before runs another model" in outlook_of(lane, other, at(60))
    Lane.objects.update(restart_on_owner_change=True)
    person = builders.person("stranger")
    found = outlook(Asked(lane, same, at(60), None), person, at(0))
    assert "restarts its server for each owner" in found[-1]


def test_a_pending_slot_before_loads_nothing(lane: Lane) -> None:
    builders.booking(lane=lane, kind="gpu", start=at(0), end=at(60), state="pending")
    assert "before your slot starts" in outlook_of(lane, builders.preset("other"), at(60))


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"approval": "never"}, ""),
        ({"approval": "always"}, "An administrator must approve it."),
        ({"approval": "gpu"}, "it is the whole GPU"),
        ({"approval": "beyond", "approval_hours": 0.5}, "it is longer than 30 min"),
        ({"approval": "beyond", "approval_hours": 1.5}, "with your slots that touch it, it is"),
        ({"approval": "beyond", "approval_hours": 3}, ""),
    ],
)
def test_why_it_needs_approval_is_said(lane: Lane, rules: dict[str, Any], words: str) -> None:
    person = builders.person("member")
    if rules.get("approval_hours", 0) > 1:
        builders.booking(lane=lane, owner=person, start=at(0), end=at(60))
    Policy.objects.create(**rules)
    found = must_wait(Asked(lane, None, at(60), at(120)), standing_of(person, lane, at(0)))
    assert (words in found) if words else found == ""


def test_administrators_are_told_of_no_approval(lane: Lane) -> None:
    Policy.objects.create(approval="always")
    boss, asked = builders.administrator(), Asked(lane, None, at(60), at(120))
    assert must_wait(asked, standing_of(boss, lane, at(0))) == ""


def test_a_file_larger_than_the_gpu_memory_is_pointed_out(lane: Lane) -> None:
    large = builders.preset("large", model_file=builders.model_file(size_bytes=25 * 10**9))
    assert "Larger than GPU memory" not in outlook_of(lane, large)  # the CPU has no such limit
    lane.gpus.add(builders.gpu(memory_bytes=24 * 10**9))
    assert "Larger than GPU memory" in outlook_of(lane, large)


def test_a_taken_time_is_said_before_it_is_sent(lane: Lane) -> None:
    builders.booking(lane=lane, kind="gpu", start=at(0), end=at(60))
    standing = standing_of(builders.person("member"), lane, at(0))
    assert in_the_way(Asked(lane, None, None, at(30)), standing) is not None
    assert in_the_way(Asked(lane, None, at(60), at(90)), standing) is None
    assert in_the_way(Asked(lane, None, None, None), standing) is None  # no end yet
    nonsense = Asked(lane, None, at(-60), at(-30))
    assert in_the_way(nonsense, standing) is None  # that is the service's


def test_a_slot_that_begins_now_is_offered_by_leaving_the_start_out() -> None:
    nearest = (Interval(at(0), at(40), is_now=True),)
    (offer,) = offers(SlotTaken("slot_taken", "", nearest=nearest), {"lane": "demo"})
    assert offer.query == "lane=demo&begins=now&end=2030-01-15T12%3A40"


def test_free_slots_are_offered_in_whole_minutes_inside_them() -> None:
    second = timedelta(seconds=1)
    nearest = (Interval(at(10) + second, at(40) + 59 * second), Interval(at(0) + second, at(1)))
    (offer,) = offers(SlotTaken("slot_taken", "", nearest=nearest), {"lane": "demo", "what": "gpu"})
    assert (offer.start, offer.end) == (at(11), at(40))
    assert offer.query == (
        "lane=demo&what=gpu&begins=later&start=2030-01-15T12%3A11&end=2030-01-15T12%3A40"
    )
    assert offers(None, {}) == []


@pytest.mark.parametrize(
    ("start", "end", "words"),
    [
        ("2030-01-15T10:00Z", "2030-01-15T11:00Z", "15 Jan 2030 10:00 &ndash; 11:00"),
        ("2030-12-31T23:00Z", "2031-01-01T01:00Z", "31 Dec 2030 23:00 &ndash; 1 Jan 2031 01:00"),
        ("2030-01-15T23:00Z", "2030-01-16T01:00Z", "15 Jan 2030 23:00 &ndash; 16 Jan 01:00"),
    ],
)
def test_days_are_said_where_they_differ(start: str, end: str, words: str) -> None:
    template = Template("{% load times %}{% interval start end %}")
    times = {"start": datetime.fromisoformat(start), "end": datetime.fromisoformat(end)}
    shown = template.render(Context(times))
    plain = "".join(part.split(">", 1)[-1] for part in shown.split("<"))
    assert plain == words
