"""What a booking has come to: requests, tokens, minutes, and what exactly ran."""

import pytest
from pytest_django import DjangoAssertNumQueries

from gateway.receipts import Receipt, receipt_of
from gateway.shares import Shares
from tests import builders
from tests.builders import at
from tests.usage_cast import record, served

pytestmark = pytest.mark.django_db


def test_a_receipt_counts_requests_tokens_and_minutes(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    preset = builders.preset("qwen", arguments=["-c", "4096"])
    booking = builders.booking(preset=preset, pinned_revision=preset.current)
    served(booking, ready=10)
    builders.revision(preset)  # an edit since then
    record(booking, at=at(20), prompt_tokens=5, completion_tokens=60)
    record(booking, at=at(20.5), prompt_tokens=7, completion_tokens=None)
    record(booking, at=at(1), code="model_loading", status=503, preset="", duration_ms=3)
    record(at=at(30), owner=booking.owner, preset="qwen")  # outside of the booking
    # Counts, running requests, servers, and these with what they ran.
    with django_assert_num_queries(4):
        receipt = receipt_of(booking, at(70))
    assert receipt.shares == Shares(used=90.0, loading=600.0, idle=3600.0 - 690.0)
    assert (receipt.requests, receipt.refused) == (3, 1)
    assert (receipt.prompt_tokens, receipt.completion_tokens) == (12, 60)
    assert ran(receipt) == [("qwen", 1, ["-c", "4096"], 3000.0)]
    assert receipt.is_final


def ran(receipt: Receipt) -> list[tuple[str, int, list[str], float]]:
    return [
        (each.revision.preset.slug, each.revision.number, each.revision.arguments, each.seconds)
        for each in receipt.ran
    ]


def test_what_ran_is_what_was_ready_and_not_what_was_booked() -> None:
    """Booked was another; the default served in its place, then the one that it was changed to."""
    preset, default = builders.preset("qwen", arguments=["-c", "9"]), builders.preset("fallback")
    booking = builders.booking(preset=builders.preset("broken"))
    for one, ready, until in ((default, -5, 10), (preset, 20, 30), (preset, 40, 90)):
        booking.preset = one
        served(booking, ready=ready, until=until)
    assert ran(receipt_of(booking, at(70))) == [
        ("fallback", 1, [], 600.0),
        ("qwen", 1, ["-c", "9"], 1800.0),
    ]


def test_what_was_never_ready_in_its_time_did_not_run() -> None:
    booking = builders.booking()
    served(booking, ready=-20, until=-5)
    served(booking, ready=61)
    assert receipt_of(booking, at(70)).ran == ()


def test_waiting_for_a_slot_is_no_use_and_a_server_that_ended_no_longer_ready() -> None:
    booking = builders.booking()
    served(booking, ready=-5, until=30)
    record(booking, at=at(1), queue_ms=50_000, duration_ms=60_000)
    receipt = receipt_of(booking, at(60))
    assert receipt.shares == Shares(used=10.0, loading=1800.0, idle=1790.0)


def test_a_booking_in_progress_is_counted_until_now() -> None:
    booking = builders.booking()
    served(booking, ready=0)
    receipt = receipt_of(booking, at(15))
    assert (receipt.shares.booked, receipt.is_final) == (900.0, False)


def test_a_released_booking_is_counted_until_its_release() -> None:
    booking = builders.booking(end=at(10), original_end=at(60), released_at=at(10))
    assert receipt_of(booking, at(90)).shares.booked == 600.0


@pytest.mark.parametrize("state", ["cancelled", "rejected", "pending"])
def test_what_was_never_in_progress_has_held_nothing(state: str) -> None:
    receipt = receipt_of(builders.booking(state=state), at(90))
    assert (receipt.shares, receipt.requests, receipt.ran) == (Shares(), 0, ())


def test_a_booking_that_is_to_come_has_held_nothing_yet() -> None:
    assert receipt_of(builders.booking(start=at(10)), at(0)).shares == Shares()


def test_a_whole_gpu_is_not_measured() -> None:
    receipt = receipt_of(builders.booking(kind="gpu"), at(60))
    assert receipt.shares == Shares(unmeasured=3600.0)
