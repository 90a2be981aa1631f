"""The made-up company: whole, guarded by the database like any other, and never put beside real
people."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError

from bookings.approvals import pending, queue
from bookings.guards import guards_present
from bookings.models import Booking, Status
from gateway.models import UsageDay, UsageDueDay, UsageRecord
from gateway.usage_tables import Question, held_without_computing
from lanes import clock
from lanes.models import (
    GpuState,
    Lane,
    LaneEvent,
    LaneMinute,
    LaneStretch,
    LoadRecord,
    Order,
    Runtime,
)
from lanes.models.gpus import STRETCHES_KEPT
from lanes.refusals import Refusal
from notices.models import Delivery
from slotserve.demo.scale import Scale
from slotserve.demo.seeding import seed
from tests import builders
from tests.gpu_cast import GIB

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]
SMALL = Scale(lanes=7, members=5, bookings=60, days=7, requests=3)


def test_it_makes_as_much_as_was_asked_for() -> None:
    company = seed(SMALL, "")
    assert not isinstance(company, Refusal)
    assert (Lane.objects.count(), len(company.members)) == (7, 5)
    assert Booking.objects.count() == 60
    assert Order.objects.count() == 7
    assert UsageRecord.objects.exists()
    assert LaneMinute.objects.count() == 7 * 1440
    assert LaneStretch.objects.count() >= 7 * (STRETCHES_KEPT - 1)
    assert GpuState.objects.exists()
    for state in GpuState.objects.all():  # what is used is held by somebody
        held = sum(process["memory_bytes"] for process in state.processes or ())
        assert (state.used_bytes or 0) - held <= GIB
    assert guards_present()


def test_some_slots_are_over_some_are_on_and_some_ahead() -> None:
    seed(SMALL, "")
    now = clock.database_now()
    found = {booking.status(now) for booking in Booking.objects.all()}
    assert {Status.ENDED, Status.IN_PROGRESS, Status.UPCOMING, Status.CANCELLED} <= found


def test_a_lane_s_history_tells_the_loads_that_were_measured() -> None:
    seed(SMALL, "")
    told = set(LaneEvent.objects.filter(kind="ready").values_list("sentence", flat=True))
    loads = LoadRecord.objects.filter(succeeded=True).select_related("revision__preset")
    measured = {
        f"{load.revision.preset.slug} is ready after {load.seconds:.1f} s" for load in loads
    }
    assert told
    assert told <= measured


def test_usage_is_worked_out_by_day_and_some_bookings_are_idle() -> None:
    company = seed(SMALL, "")
    assert not isinstance(company, Refusal)
    assert not UsageDueDay.objects.exists()
    assert UsageDay.objects.filter(used_seconds__gt=0).values("day").distinct().count() > 3
    today = clock.database_now().date()
    asked = Question(today - timedelta(days=7), today)
    assert held_without_computing(company.administrator, asked)


def test_a_webhook_has_a_log_in_which_one_failed() -> None:
    seed(SMALL, "")
    assert set(Delivery.objects.values_list("state", flat=True)) == {"sent", "failed"}
    assert not Delivery.objects.filter(send_from__isnull=False).exists()


def test_lanes_are_in_several_states() -> None:
    seed(SMALL, "")
    assert set(Runtime.objects.values_list("phase", flat=True)) >= {"ready", "starting"}
    assert {1, 5} <= set(Order.objects.values_list("rule", flat=True))


def test_the_same_numbers_make_the_same_company() -> None:
    company = seed(SMALL, "")
    assert not isinstance(company, Refusal)
    assert [member.username for member in company.members] == [
        "ada",
        "bo",
        "carmen",
        "dmitri",
        "elif",
    ]


def test_nobody_logs_in_without_a_password() -> None:
    company = seed(SMALL, "")
    assert not isinstance(company, Refusal)
    assert not company.administrator.has_usable_password()


def test_with_one_everybody_does() -> None:
    seed(SMALL, "demo-demo-1")
    assert User.objects.get(username="ada").check_password("demo-demo-1")


def test_no_mail_can_reach_anybody() -> None:
    seed(SMALL, "")
    assert {email.split(".")[-1] for email in User.objects.values_list("email", flat=True)} == {
        "invalid"
    }


@pytest.mark.parametrize("make", [builders.person, builders.lane, builders.booking])
def test_an_installation_in_use_is_left_alone(make: Callable[[], object]) -> None:
    make()
    refusal = seed(SMALL, "")
    assert isinstance(refusal, Refusal)
    assert refusal.code == "in_use"
    assert not Lane.objects.filter(slug="atlas-0").exists()


def test_an_administrator_and_the_demo_lane_are_no_use() -> None:
    builders.administrator()
    builders.lane("demo")
    assert not isinstance(seed(SMALL, ""), Refusal)
    assert Lane.objects.filter(slug="demo").exists()


@pytest.mark.parametrize(
    "numbers", [["--lanes", "0"], ["--members", "-1"], ["--days", "0"], ["--bookings", "999999999"]]
)
def test_numbers_that_make_no_company_are_refused(numbers: list[str]) -> None:
    with pytest.raises(CommandError, match="give a number from"):
        call_command("seed_demo", *numbers)
    assert not Lane.objects.exists()


def test_what_waits_for_approval_waits_by_a_rule_and_has_not_lapsed() -> None:
    seed(Scale(lanes=8, members=5, bookings=320, days=28, requests=0), "")
    now = clock.database_now()
    waiting = queue(pending(now), now)
    assert waiting
    assert {row.reason for row in waiting} == {"It is longer than 1 h: rules of Cumulus."}
    assert all(row.expires_at > now for row in waiting)
