"""Usage by day: worked out anew as often as one likes, late records found, the gone kept."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries, Settings

from gateway import tasks, usage_days
from gateway.models import UsageDay, UsageDueDay
from gateway.usage_days import bounds, roll_due_days
from lanes import clock, ticks
from tests import builders
from tests.builders import at
from tests.conftest import Moment, ValkeyServer
from tests.usage_cast import record, served

pytestmark = pytest.mark.django_db
DAY = date(2030, 1, 15)


def rows(**narrowed: Any) -> list[tuple[object, ...]]:
    """Day, owner, lane, preset, and the four kinds of seconds, in order."""
    found = UsageDay.objects.filter(**narrowed).order_by("day", "owner_name", "preset", "pk")
    return list(
        found.values_list(
            "day",
            "owner_name",
            "lane_name",
            "preset",
            "used_seconds",
            "loading_seconds",
            "idle_seconds",
            "unmeasured_seconds",
        )
    )


def counts(**narrowed: Any) -> list[tuple[int, ...]]:
    """Requests, refused, tokens of prompts and of answers."""
    found = UsageDay.objects.filter(**narrowed).order_by("day", "owner_name", "preset", "pk")
    names = ("requests", "refused", "prompt_tokens", "completion_tokens")
    return list(found.values_list(*names))


def test_a_slot_and_what_was_asked_in_it_are_one_row() -> None:
    booking = builders.booking(lane=builders.lane("fast"), preset=builders.preset("qwen"))
    served(booking, ready=10)
    record(booking, at=at(20), prompt_tokens=5, completion_tokens=60)
    record(booking, at=at(30), prompt_tokens=5, status=503, code="model_switching")
    roll_due_days(at(120))
    assert rows() == [(DAY, "owner", "fast", "qwen", 120.0, 600.0, 2880.0, 0.0)]
    assert counts() == [(2, 1, 10, 60)]


def test_requests_outside_of_bookings_are_counted_and_strangers_are_not() -> None:
    lane = builders.lane("fast")
    record(at=at(0), owner=builders.person("bob"), lane=lane, preset="qwen", prompt_tokens=3)
    record(at=at(0), owner=builders.person("bob"), status=404, code="model_not_found")
    record(at=at(0), status=401, code="invalid_api_key")
    roll_due_days(at(1))
    assert [row[1:4] for row in rows()] == [("bob", "", ""), ("bob", "fast", "qwen")]
    assert counts() == [(1, 1, 0, 0), (1, 0, 3, 0)]


def test_rolling_again_changes_nothing_and_writes_nothing(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    for hour in (0, 2, 30):
        record(builders.booking(start=at(60 * hour)))
    roll_due_days(at(6000))
    before = list(UsageDay.objects.values())
    usage_days.roll_day(DAY, at(6000))
    assert list(UsageDay.objects.values()) == before
    # Held rows; people, lanes, counts, bookings, running requests, servers.
    with django_assert_num_queries(7):
        usage_days.roll_day(DAY, at(6000))


def test_today_grows_and_what_is_to_come_is_not_counted() -> None:
    booking = builders.booking(start=at(0), end=at(240))
    served(booking, ready=0)
    roll_due_days(at(60))
    assert [row[6] for row in rows()] == [3600.0]
    roll_due_days(at(90))
    assert [row[6] for row in rows()] == [5400.0]
    booking.end = at(100)
    booking.save()
    roll_due_days(at(200))
    assert [row[6] for row in rows()] == [6000.0]


def test_a_row_that_is_wanted_no_more_goes() -> None:
    booking = builders.booking()
    roll_due_days(at(60))
    booking.state = "cancelled"
    booking.save()
    roll_due_days(at(61))
    assert rows() == []


def test_a_slot_over_midnight_has_a_part_in_each_day() -> None:
    booking = builders.booking(start=at(660), end=at(780))
    served(booking, ready=600)
    record(booking, at=at(719), duration_ms=120_000)
    roll_due_days(at(2000))
    assert [(row[0], row[4], row[6]) for row in rows()] == [
        (DAY, 60.0, 3540.0),
        (DAY + timedelta(days=1), 60.0, 3540.0),
    ]
    assert [each[0] for each in counts()] == [1, 0]


def test_a_record_that_comes_late_is_added_to_its_day() -> None:
    lane, bob = builders.lane("fast"), builders.person("bob")
    record(at=at(0), owner=bob, lane=lane)
    roll_due_days(at(10))
    roll_due_days(at(5 * 1440))
    assert UsageDueDay.objects.count() == 0
    record(at=at(1), owner=bob, lane=lane)
    assert roll_due_days(at(5 * 1440 + 1)) == 2  # that day, and today
    assert counts() == [(2, 0, 0, 0)]


def test_days_on_which_nobody_looked_are_made_up_for() -> None:
    booking = builders.booking(start=at(60), end=at(60 + 3 * 1440))
    roll_due_days(at(61))
    roll_due_days(at(4 * 1440))
    assert sum(row[5] for row in rows() if isinstance(row[5], float)) == 3 * 86400.0
    assert booking.pk


def test_whom_and_what_is_gone_keep_their_rows() -> None:
    lane, bob = builders.lane("fast"), builders.person("bob")
    alice = builders.person("alice")
    record(at=at(0), owner=bob, lane=lane, preset="qwen")
    record(at=at(0), owner=alice, lane=lane, preset="qwen")
    roll_due_days(at(10))
    bob.delete()
    lane.delete()
    record(at=at(1), owner=alice, preset="qwen")
    roll_due_days(at(20))
    roll_due_days(at(21))
    assert [(row[1], row[2]) for row in rows()] == [
        ("alice", "fast"),
        ("alice", ""),
        ("bob", "fast"),
    ]
    assert [each[0] for each in counts()] == [1, 1, 1]


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", date(2030, 3, 31), 23),
        ("Europe/Berlin", date(2030, 10, 27), 25),
        ("America/New_York", date(2030, 3, 10), 23),
        ("Australia/Lord_Howe", date(2030, 4, 7), 24.5),
        ("UTC", DAY, 24),
    ],
)
def test_a_day_is_as_long_as_its_zone_has_it(
    settings: Settings, zone: str, day: date, hours: float
) -> None:
    settings.TIME_ZONE = zone
    found = bounds(day)
    assert found.last - found.first == timedelta(hours=hours)
    builders.booking(
        start=found.first - timedelta(hours=5), end=found.last + timedelta(hours=7), kind="gpu"
    )
    roll_due_days(found.last + timedelta(days=3))
    assert [row[7] for row in rows(day=day)] == [hours * 3600]
    assert sum(UsageDay.objects.values_list("unmeasured_seconds", flat=True)) == (hours + 12) * 3600


def test_another_zone_has_every_day_worked_out_again(settings: Settings) -> None:
    builders.booking(kind="gpu", start=datetime(2030, 1, 15, 22, tzinfo=UTC))
    roll_due_days(at(5000))
    assert [row[0] for row in rows()] == [DAY]
    settings.TIME_ZONE = "Asia/Tokyo"
    roll_due_days(at(5000))
    assert [row[0] for row in rows()] == [DAY + timedelta(days=1)]


def test_many_days_are_worked_out_over_several_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_days, "BUDGET_SECONDS", 0.0)
    builders.booking(start=at(0), end=at(3 * 1440))
    done = []
    for _ in range(3):
        assert roll_due_days(at(3 * 1440)) == 2  # today, and one that was left
        done.append(UsageDay.objects.count())
    assert done == [2, 3, 4]
    assert roll_due_days(at(3 * 1440)) == 1


def never(now: datetime) -> None:
    raise AssertionError(f"done at {now}, although nothing was worked out")


@pytest.mark.usefixtures("valkey")
def test_the_task_works_it_out_one_at_a_time(moment: Moment) -> None:
    moment.set(60)
    builders.booking()
    assert clock.database_now() == at(60)
    tasks.usage_days()
    assert len(rows()) == 1
    assert ticks.claim(usage_days.LOCK, 5)
    assert usage_days.roll_up(at(61), never) == 0


@pytest.mark.usefixtures("valkey")
def test_without_valkey_it_says_so(
    valkey_server: ValkeyServer, caplog: pytest.LogCaptureFixture
) -> None:
    valkey_server.stop()
    assert usage_days.roll_up(at(0), never) == 0
    assert "Valkey does not answer" in caplog.text
