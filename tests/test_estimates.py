"""Load estimates against the real database, and the progress of a load."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from lanes.estimates import eta, first_guess, load_estimates, mean_loads, progress
from lanes.models import Lane, LoadRecord, Preset
from tests import builders
from tests.builders import NOON


def loaded(lane: Lane, preset: Preset, minute: float, seconds: float, **fields: object) -> None:
    fields.setdefault("revision", preset.current)
    fields.setdefault("succeeded", True)
    LoadRecord.objects.create(
        lane=lane, generation=1, started_at=builders.at(minute), seconds=seconds, **fields
    )


@pytest.mark.django_db
def test_before_any_load_the_file_size_gives_the_estimate() -> None:
    lane = builders.lane()
    preset = builders.preset(model_file=builders.model_file(size_bytes=3_000_000_000))

    # 3000 MB at 150 MB/s, and 15 s
    assert load_estimates([(lane.pk, preset.pk)]) == {(lane.pk, preset.pk): 35.0}


@pytest.mark.django_db
def test_the_mean_of_the_last_five_successful_loads_counts() -> None:
    lane, preset = builders.lane(), builders.preset()
    for minute, seconds in enumerate([500, 10, 20, 30, 40, 50]):
        loaded(lane, preset, minute, seconds)
    loaded(lane, preset, 9, 999, succeeded=False)

    assert load_estimates([(lane.pk, preset.pk)]) == {(lane.pk, preset.pk): 30.0}


@pytest.mark.django_db
def test_loads_of_older_revisions_count_by_their_age() -> None:
    lane, preset = builders.lane(), builders.preset()
    first = preset.current
    builders.revision(preset)
    for minute in range(5):
        loaded(lane, preset, minute, 10, revision=first)
    for minute in range(2):
        loaded(lane, preset, minute + 0.5, 60)

    # Newest five: three of the first revision at minutes 4, 3, 2, then 60 at 1.5 and 10 at 1.
    assert mean_loads([(lane.pk, preset.pk)]) == {(lane.pk, preset.pk): 20.0}


@pytest.mark.django_db
def test_loads_on_another_lane_do_not_count() -> None:
    lane, other = builders.lane(), builders.lane()
    preset = builders.preset(model_file=builders.model_file(size_bytes=150_000_000))
    loaded(other, preset, 0, 77)

    found = load_estimates([(lane.pk, preset.pk), (other.pk, preset.pk)])

    assert found[other.pk, preset.pk] == 77
    assert found[lane.pk, preset.pk] == first_guess(150_000_000) == 16.0


@pytest.mark.django_db
def test_many_pairs_take_two_queries() -> None:
    lanes = [builders.lane() for _ in range(4)]
    presets = [builders.preset() for _ in range(3)]
    pairs = [(lane.pk, preset.pk) for lane in lanes for preset in presets]

    with CaptureQueriesContext(connection) as queries:  # newest loads; sizes of files
        assert len(load_estimates(pairs)) == 12
    assert len(queries) == 2


@pytest.mark.django_db
def test_no_pairs_need_no_loads_and_unknown_presets_are_left_out() -> None:
    assert mean_loads([]) == {}
    assert load_estimates([(1, 999_999)]) == {}


@pytest.mark.parametrize(
    ("elapsed", "expected"), [(-5, 0.0), (0, 0.0), (25, 0.25), (100, 0.99), (5000, 0.99)]
)
def test_progress_runs_to_its_estimate_and_never_says_ready(elapsed: int, expected: float) -> None:
    assert progress(NOON, 100, NOON + timedelta(seconds=elapsed)) == expected


def test_progress_without_an_estimate_is_almost_done() -> None:
    assert progress(NOON, 0, NOON + timedelta(seconds=1)) == 0.99


def test_the_eta_is_the_estimate_and_then_always_a_second_away() -> None:
    assert eta(NOON, 90, NOON) == NOON + timedelta(seconds=90)
    assert eta(NOON, 90, builders.at(10)) == builders.at(10) + timedelta(seconds=1)
