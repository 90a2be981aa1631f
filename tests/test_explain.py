"""The command `explain`: what a person reads, and that it changes nothing."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from bookings.explaining import explain
from bookings.planning import plan_lanes
from lanes import clock
from lanes.models import ManualChoice, Order, PresetFailure
from tests import builders
from tests.builders import NOON, at

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "database_now", lambda: NOON)


def said(*arguments: str) -> str:
    out = StringIO()
    call_command("explain", *arguments, stdout=out)
    return out.getvalue()


def test_a_lane_is_explained_with_its_facts_and_decision() -> None:
    small, large = builders.preset("small"), builders.preset("large")
    lane = builders.lane("gpu-a", default_preset=small)
    plan_lanes()
    booking = builders.booking(lane=lane, preset=large, start=at(2))

    text = said("gpu-a").splitlines()

    assert text[0] == "gpu-a at 12:00 UTC"
    assert text[1].startswith("  decision     rule 2: preloading large for the 12:02 UTC slot")
    assert "large (revision" in text[2]
    assert "(ordered now: small" in text[2]
    assert any(f"booking      #{booking.pk} 12:02 UTC to 13:02 UTC" in line for line in text)
    assert any(line.startswith("  order        g1 small") for line in text)


def test_choices_and_failures_are_part_of_it() -> None:
    preset = builders.preset("small")
    lane = builders.lane("gpu-a")
    ManualChoice.objects.create(lane=lane, preset=preset, made_at=at(-1), until=at(60))
    PresetFailure.objects.create(
        lane=lane, revision=preset.revisions.get(), count=3, failed_at=at(-1)
    )

    text = explain(lane, NOON)

    assert "choice       small" in text
    assert "3 in a row" in text


def test_every_lane_is_explained_by_name() -> None:
    builders.lane("b")
    builders.lane("a", enabled=False)

    text = said()

    assert text.index("a (disabled) at 12:00 UTC") < text.index("b at 12:00 UTC")


def test_another_moment_may_be_asked_about() -> None:
    booking = builders.booking(start=at(60), kind="gpu")

    text = said(booking.lane.slug, "--at", "2030-01-15T14:30+01:00")

    assert "at 13:30 UTC" in text
    assert "rule 1" in text
    assert "whole GPU, in progress" in text


def test_nothing_is_written() -> None:
    builders.booking(start=at(1))

    with CaptureQueriesContext(connection) as queries:
        said("--at", "2030-01-15T12:01")

    assert all(query["sql"].startswith(("SELECT", "WITH", "\nWITH")) for query in queries)
    assert not Order.objects.exists()


def test_without_lanes_it_says_so() -> None:
    assert said() == "There are no lanes yet.\n"


def test_an_unknown_lane_is_refused_with_the_known_ones() -> None:
    builders.lane("gpu-a")

    with pytest.raises(CommandError, match=r"no lane 'gpu-b'\. Lanes: gpu-a\."):
        said("gpu-b")


@pytest.mark.parametrize("text", ["tomorrow", "2030-02-30T10:00", "9999-12-31T23:59", "0001-01-01"])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(CommandError, match="--at"):
        said("--at", text)
