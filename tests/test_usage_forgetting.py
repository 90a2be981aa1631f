"""What is old is forgotten: single requests and lanes' events; what was counted from them stays."""

from dataclasses import replace
from datetime import date, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from pytest_django import DjangoAssertNumQueries, Settings

from bookings.models import Booking
from gateway import usage, usage_days
from gateway.models import UsageDay, UsageDueDay, UsageProgress, UsageRecord
from gateway.receipts import receipt_of, use_by_person
from gateway.tasks import usage_days as task
from gateway.usage_days import roll_due_days
from gateway.usage_forgetting import forget_records
from lanes import ticks
from lanes.events import add_event, forget_old
from lanes.models import LaneEvent
from tests import builders
from tests.builders import at
from tests.conftest import Moment, ValkeyServer
from tests.usage_cast import record, served

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]
DAY = timedelta(days=1)
LATER = at(60) + 50 * DAY
WORK_OUT = usage_days.roll_day


@pytest.fixture(autouse=True)
def _short(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.SLOTSERVE_USAGE_DAYS = settings.SLOTSERVE_EVENT_DAYS = 40.0
    monkeypatch.setattr(usage, "PAUSE_SECONDS", 0.0)


def used_slot() -> Booking:
    """A slot that is over and worked out by day: its owner's and a guest's requests."""
    booking = builders.booking(preset=builders.preset("qwen"))
    served(booking, ready=10)
    record(booking, at=at(20), prompt_tokens=5, completion_tokens=60)
    record(booking, at=at(30), code="model_switching", status=503)
    record(booking, at=at(40), owner=builders.person("guest"), prompt_tokens=7)
    roll_due_days(at(120))
    return booking


def rows() -> list[tuple[object, ...]]:
    return list(UsageDay.objects.order_by("pk").values_list())


def test_requests_are_forgotten_and_their_days_and_receipts_stay() -> None:
    booking = used_slot()
    days, receipt = rows(), receipt_of(booking, LATER)
    uses = use_by_person(receipt)
    assert forget_records(LATER) == 3
    assert not UsageRecord.objects.exists()
    roll_due_days(LATER)
    assert rows() == days
    by_day = receipt_of(booking, LATER)
    assert by_day == replace(receipt, is_by_day=True)
    assert use_by_person(by_day) == uses
    assert [use.name for use in uses] == ["guest", "owner"]


def test_younger_ones_stay() -> None:
    used_slot()
    assert forget_records(at(60) + 42 * DAY) == 0  # what a day that is kept may need
    assert UsageRecord.objects.count() == 3


def test_another_zone_works_no_day_out_again_whose_requests_are_gone(settings: Settings) -> None:
    used_slot()
    days = rows()
    forget_records(LATER)
    settings.TIME_ZONE = "Asia/Tokyo"
    roll_due_days(LATER)
    assert rows() == days


def test_a_request_that_comes_late_does_not_empty_its_day() -> None:
    booking = used_slot()
    days = rows()
    forget_records(LATER)
    record(booking, at=at(50))
    roll_due_days(LATER)
    assert rows() == days


def test_what_is_not_counted_yet_is_not_forgotten() -> None:
    booking = used_slot()
    record(booking, at=at(50))
    UsageDueDay.objects.create(day=at(50).date())
    assert forget_records(LATER) == 0
    roll_due_days(LATER)
    assert forget_records(LATER) == 4
    assert sum(UsageDay.objects.values_list("requests", flat=True)) == 4


def test_a_longer_age_brings_nothing_back(settings: Settings) -> None:
    booking = used_slot()
    receipt = receipt_of(booking, LATER)
    forget_records(LATER)
    settings.SLOTSERVE_USAGE_DAYS = 400.0
    forget_records(LATER)
    assert receipt_of(booking, LATER) == replace(receipt, is_by_day=True)
    assert UsageProgress.objects.get().kept_from == (LATER - 40 * DAY).date()


@pytest.mark.usefixtures("valkey")
def test_the_task_of_each_minute_forgets(moment: Moment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.usage_days.BUDGET_SECONDS", 600.0)  # for fifty days on any machine
    used_slot()
    moment.set((LATER - at(0)) // timedelta(minutes=1))
    task()
    assert not UsageRecord.objects.exists()


@pytest.mark.usefixtures("valkey")
@pytest.mark.parametrize("reason", ["failed", "taken", "no valkey"])
def test_nothing_is_forgotten_when_no_day_was_worked_out(
    reason: str, valkey_server: ValkeyServer, moment: Moment, monkeypatch: pytest.MonkeyPatch
) -> None:
    used_slot()
    moment.set((LATER - at(0)) // timedelta(minutes=1))
    if reason == "failed":
        monkeypatch.setattr(usage_days, "roll_day", fail)
    elif reason == "taken":
        assert ticks.claim(usage_days.LOCK, usage_days.LOCK_SECONDS)
    else:
        valkey_server.stop()
    task()
    assert UsageRecord.objects.count() == 3


def fail(day: date, now: datetime) -> None:
    raise RuntimeError(f"no {day} at {now}")


def test_requests_from_before_usage_by_day_are_counted_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    booking = builders.booking(preset=builders.preset("qwen"))
    record(booking, at=at(20))
    record(booking, at=at(20) - 2200 * DAY)  # six years
    assert forget_records(LATER) == 0
    monkeypatch.setattr(usage_days, "roll_day", count_requests)
    monkeypatch.setattr(usage_days, "BUDGET_SECONDS", 600.0)
    roll_due_days(LATER)
    assert sum(UsageDay.objects.values_list("requests", flat=True)) == 2
    assert forget_records(LATER) == 2


def count_requests(day: date, now: datetime) -> None:
    """Days as they are worked out, but those without requests, of which there are too many."""
    found = usage_days.bounds(day)
    if UsageRecord.objects.filter(at__gte=found.first, at__lt=found.last).exists():
        WORK_OUT(day, now)


def test_days_of_another_zone_are_worked_out_before(settings: Settings) -> None:
    used_slot()
    settings.TIME_ZONE = "Asia/Tokyo"
    assert forget_records(LATER) == 0


def test_a_request_that_was_not_looked_at_yet_is_not_forgotten() -> None:
    booking = used_slot()
    late = record(booking, at=at(50))
    assert forget_records(LATER) == 3
    assert UsageRecord.objects.get() == late


def test_an_old_booking_is_asked_once_whether_it_is_known_by_day(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    booking = used_slot()
    forget_records(LATER)
    with django_assert_num_queries(5):  # whether; its days: times, counts, people; what ran
        use_by_person(receipt_of(booking, LATER))


def test_whoever_was_renamed_stands_in_an_old_receipt_once() -> None:
    booking = used_slot()
    record(booking, at=at(40) + DAY, owner=builders.person("guest"))
    User.objects.filter(username="guest").update(username="visitor")
    usage_days.roll_day((at(40) + DAY).date(), LATER)
    assert len(set(UsageDay.objects.values_list("owner_name"))) == 3
    UsageProgress.objects.update(last_record=UsageRecord.objects.latest("pk").pk)
    assert forget_records(LATER) == 4
    uses = use_by_person(receipt_of(booking, LATER))
    assert [(use.name, use.requests) for use in uses] == [("owner", 2), ("visitor", 2)]


def test_old_events_are_dropped_but_the_newest_of_each_lane() -> None:
    quiet, busy = builders.lane("quiet"), builders.lane("busy")
    for lane, minutes in ((quiet, 0), (quiet, 1), (busy, 2), (busy, 50 * 1440)):
        add_event(lane, at(minutes), "plan", f"{lane.slug} at {minutes}.")
    forget_old(LATER)
    kept = set(LaneEvent.objects.values_list("sentence", flat=True))
    assert kept == {"quiet at 1.", "busy at 72000."}
