"""Polls of a host's cards: what is written down, and what people are told."""

from collections.abc import Iterator
from datetime import timedelta

import pynvml
import pytest

from lanes.gpus import polling
from lanes.models import Gpu, GpuState, HostGpus, Lane, Notice
from tests import builders, gpu_cast
from tests.conftest import Moment
from tests.gpu_cast import GIB, outsiders, poll, sentences, slot, state
from tests.nvml.driver import FakeCard, FakeDriver

pytest_plugins = ["tests.nvml.fixtures"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def lane(moment: Moment) -> Lane:
    """A lane on GPU-a."""
    return gpu_cast.gpu_lane()


@pytest.fixture
def stranger() -> Iterator[int]:
    """The pid of a process that no lane owns."""
    with gpu_cast.stranger() as pid:
        yield pid


def test_a_poll_writes_down_what_each_card_does(
    lane: Lane, driver: FakeDriver, moment: Moment
) -> None:
    driver.change(used=3 * GIB, utilisation=50, milliwatts=99_000, celsius=55)
    poll(moment)
    row = state()
    assert (row.read_at, row.number, row.trouble) == (moment.now, 0, "")
    assert (row.used_bytes, row.utilisation) == (3 * GIB, 50)
    assert (row.power_watts, row.temperature) == (99.0, 55)
    assert row.processes == []
    driver_row = HostGpus.objects.get()
    assert (driver_row.driver, driver_row.trouble) == ("560.35.03", "")


def test_a_poll_takes_a_fixed_number_of_queries(
    lane: Lane, driver: FakeDriver, moment: Moment, django_assert_num_queries: object
) -> None:
    for number in range(3):
        gpu_cast.gpu_lane(f"GPU-{number}", slug=f"lane-{number}")
        driver.cards.append(FakeCard(f"GPU-{number}"))
    driver.write()
    poll(moment, 2)
    host = builders.host()
    moment.now += gpu_cast.POLL
    # due (row, compare-and-set), driver, cards, their lanes, lanes with orders, runtimes;
    # savepoint, states, minutes (read, write), failures, release
    with django_assert_num_queries(13):  # type: ignore[operator]
        polling.poll_if_due(host)


def test_a_host_is_polled_each_five_seconds_whoever_asks(
    lane: Lane, driver: FakeDriver, moment: Moment
) -> None:
    host = builders.host()
    assert polling.poll_if_due(host)
    moment.now += timedelta(seconds=4)
    assert not polling.poll_if_due(host)
    moment.now += timedelta(seconds=1)
    assert polling.poll_if_due(host)
    assert not polling.poll_if_due(host)


def test_a_clock_that_was_set_back_does_not_stop_polls(
    lane: Lane, driver: FakeDriver, moment: Moment
) -> None:
    poll(moment)
    moment.now -= timedelta(hours=1)
    assert polling.poll_if_due(builders.host())


@pytest.mark.usefixtures("no_driver")
def test_a_host_without_a_driver_is_asked_once_a_minute_and_has_no_trouble(moment: Moment) -> None:
    host = builders.host()
    assert polling.poll_if_due(host)
    moment.now += timedelta(seconds=59)
    assert not polling.poll_if_due(host)
    moment.now += timedelta(seconds=1)
    assert polling.poll_if_due(host)
    assert (HostGpus.objects.get().driver, HostGpus.objects.get().trouble) == ("", "")
    assert not GpuState.objects.exists()


@pytest.mark.usefixtures("no_driver")
def test_cards_whose_driver_is_gone_are_a_trouble(lane: Lane, moment: Moment) -> None:
    poll(moment)
    assert HostGpus.objects.get().trouble == polling.NO_DRIVER
    assert state().trouble == polling.NO_DRIVER
    assert state().used_bytes is None


def test_a_new_card_is_added_and_a_renamed_one_corrected(
    lane: Lane, driver: FakeDriver, moment: Moment
) -> None:
    driver.write(cards=[FakeCard(name="NVIDIA RTX 4090 D"), FakeCard("GPU-b", total=32 * GIB)])
    poll(moment)
    found = list(Gpu.objects.values_list("uuid", "name", "memory_bytes"))
    assert ("GPU-b", "NVIDIA GeForce RTX 4090", 32 * GIB) in found
    poll(moment)
    assert Gpu.objects.get(uuid="GPU-a").name == "NVIDIA RTX 4090 D"


def test_a_card_that_another_host_names_is_left_to_it(driver: FakeDriver, moment: Moment) -> None:
    elsewhere = builders.host("elsewhere")
    Gpu.objects.create(uuid="GPU-a", name="Theirs", host=elsewhere)
    poll(moment, 2)
    assert Gpu.objects.get().host == elsewhere
    assert not GpuState.objects.exists()


def test_a_card_that_vanishes_says_so_and_keeps_its_verdict(
    lane: Lane, driver: FakeDriver, moment: Moment, stranger: int
) -> None:
    driver.hold((stranger, 11 * GIB))
    poll(moment, 2)
    driver.write(cards=[])
    poll(moment)
    assert state().trouble == polling.NOT_SHOWN
    assert (state().used_bytes, outsiders()) == (None, [stranger])


def test_a_driver_that_fails_in_mid_flight_is_shown_and_comes_back(
    lane: Lane, driver: FakeDriver, moment: Moment
) -> None:
    poll(moment)
    driver.write(init=pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH)
    poll(moment)
    assert "changed while it was in use" in HostGpus.objects.get().trouble
    assert "changed while it was in use" in state().trouble
    driver.write(init=0)
    poll(moment)
    assert (HostGpus.objects.get().trouble, state().trouble) == ("", "")


def test_an_outsider_is_written_down_with_pid_user_and_command_after_two_polls(
    lane: Lane, driver: FakeDriver, moment: Moment, stranger: int
) -> None:
    driver.hold((stranger, 11 * GIB))
    poll(moment)
    assert outsiders() == []
    poll(moment)
    (found,) = state().verdict["outsiders"]
    assert (found["pid"], found["memory_bytes"]) == (stranger, 11 * GIB)
    assert found["user"]
    assert found["command"].startswith("python")


def test_a_process_that_is_dying_is_no_outsider(
    lane: Lane, driver: FakeDriver, moment: Moment
) -> None:
    with gpu_cast.stranger() as gone:
        pass
    driver.hold((gone, 11 * GIB))
    poll(moment, 2)
    driver.hold(more=11 * GIB)
    poll(moment, 2)
    assert (outsiders(), state().verdict["unseen_bytes"]) == ([], 0)


def test_a_foreign_process_in_a_slot_is_told_once_with_pid_and_user(
    lane: Lane, driver: FakeDriver, moment: Moment, stranger: int
) -> None:
    slot(lane, moment.now)
    driver.hold((stranger, 11 * GIB))
    poll(moment, 4)
    (said,) = sentences(lane, "outsider")
    assert f"(pid {stranger}) is on NVIDIA GeForce RTX 4090 in the slot of owner" in said
    assert state().verdict["outsiders"][0]["user"] in said


def test_the_slot_s_holder_and_administrators_get_a_notice_each(
    lane: Lane, driver: FakeDriver, moment: Moment, stranger: int
) -> None:
    administrator, bystander = builders.administrator(), builders.person("bystander")
    order = slot(lane, moment.now)
    driver.hold((stranger, 11 * GIB))
    poll(moment, 4)
    told = {notice.recipient_id: notice for notice in Notice.objects.all()}
    assert set(told) == {administrator.pk, order.owner_id_for}
    assert bystander.pk not in told
    notice = told[administrator.pk]
    assert (notice.kind, notice.lane) == ("outsider", lane)
    assert f"(pid {stranger})" in notice.sentence
    assert state().verdict["outsiders"][0]["user"] in notice.sentence


def test_a_foreign_program_that_starts_anew_each_minute_is_told_of_once(
    lane: Lane, driver: FakeDriver, moment: Moment
) -> None:
    administrator = builders.administrator()
    slot(lane, moment.now)
    for _ in range(3):
        with gpu_cast.stranger() as pid:
            driver.hold((pid, 11 * GIB))
            poll(moment, 12)
            assert outsiders() == [pid]
    assert len(sentences(lane, "outsider")) == 1
    assert Notice.objects.filter(recipient=administrator).count() == 1


def test_another_slot_with_the_same_process_is_told_anew(
    lane: Lane, driver: FakeDriver, moment: Moment, stranger: int
) -> None:
    order = slot(lane, moment.now)
    driver.hold((stranger, 11 * GIB))
    poll(moment, 3)
    order.booking_id_for, order.booking_start_for = 8, moment.now + timedelta(seconds=1)
    order.save()
    poll(moment, 2)
    assert len(sentences(lane, "outsider")) == 2


def test_outside_of_slots_nobody_is_told(
    lane: Lane, driver: FakeDriver, moment: Moment, stranger: int
) -> None:
    slot(lane, moment.now, rule=5, booking_id_for=None, owner_id_for=None)
    driver.hold((stranger, 11 * GIB))
    poll(moment, 3)
    assert outsiders() == [stranger]
    assert sentences(lane, "outsider") == []


def test_a_process_that_only_draws_is_shown_but_not_told(
    lane: Lane, driver: FakeDriver, moment: Moment, stranger: int
) -> None:
    slot(lane, moment.now)
    driver.change(processes=(("G", stranger, GIB),), used=GIB)
    poll(moment, 3)
    assert outsiders() == [stranger]
    assert sentences(lane, "outsider") == []


def test_in_a_whole_gpu_slot_the_holder_s_own_user_may_compute(
    lane: Lane, driver: FakeDriver, moment: Moment, stranger: int
) -> None:
    driver.hold((stranger, 11 * GIB))
    poll(moment, 2)
    name = state().verdict["outsiders"][0]["user"]
    slot(lane, moment.now, owner_id_for=builders.person(name).pk)
    poll(moment, 2)
    assert sentences(lane, "outsider") == []


def test_before_a_whole_gpu_slot_it_is_told_who_is_in_the_way(
    lane: Lane, driver: FakeDriver, moment: Moment, stranger: int
) -> None:
    start = moment.now + timedelta(minutes=1)
    slot(lane, moment.now, rule=2, booking_start_for=start, owner_id_for=None)
    driver.hold((stranger, 11 * GIB))
    poll(moment, 3)
    (said,) = sentences(lane, "outsider")
    assert "before a whole-GPU slot" in said
    assert sentences(lane, "empty") == []


def test_before_a_whole_gpu_slot_it_is_told_that_the_memory_is_free(
    lane: Lane, driver: FakeDriver, moment: Moment
) -> None:
    slot(lane, moment.now, rule=2, owner_id_for=None)
    driver.hold(more=3 * GIB)
    poll(moment)
    assert sentences(lane, "empty") == []
    driver.hold()
    poll(moment, 2)
    assert len(sentences(lane, "empty")) == 1
