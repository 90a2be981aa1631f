"""Random faults against the whole product under traffic, as bench.faults makes them, and its judge.

SLOTSERVE_TEST_FAULTS and SLOTSERVE_TEST_FAULTS_SEED choose how many, and which; a third is made of
two hosts.
"""

import os
import secrets
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from bench.fault_parts import pair
from bench.fault_parts.breaking import Fault
from bench.fault_parts.disk import SmallDisk
from bench.fault_parts.judge import Evidence, broken_promises
from bench.fault_parts.right import Look
from bench.fault_parts.times import Clock, faketime_environment, find_faketime
from bench.fault_parts.waiting import SLOT_SECONDS, Wait
from bench.soak_parts.judge import Served, Slot
from bench.soak_parts.members import Asked
from bench.soak_parts.model_server import doubles_of, write_wrapper
from slotserve.stack.parts import ROOT
from tests.running import clean_environment, eventually

COUNT = int(os.environ.get("SLOTSERVE_TEST_FAULTS", "6"))
SEED = os.environ.get("SLOTSERVE_TEST_FAULTS_SEED") or str(secrets.randbelow(10**6))
PATIENCE = "10"  # what a busy machine is late by is the bench's to judge
MOST_SECONDS = 1800  # a run that hangs is a failure, too
AT = 1000.0


@pytest.mark.faults
@pytest.mark.process
@pytest.mark.story
@pytest.mark.parametrize(("hosts", "count"), [(1, COUNT - COUNT // 3), (2, COUNT // 3)])
def test_every_lane_is_right_again_after_random_faults_and_nobody_was_served_wrongly(
    hosts: int, count: int
) -> None:
    if hosts == 2 and (why_not := pair.why_not()):
        pytest.skip(f"NO LINK IS CUT AND NO DATABASE RESTARTED HERE: {why_not}")
    argv = [sys.executable, "-m", "bench.faults", "--hosts", str(hosts), "--faults", str(count)]
    argv += ["--seed", SEED, "--patience", PATIENCE]
    done = subprocess.run(
        argv,
        cwd=ROOT,
        env=clean_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=MOST_SECONDS,
        check=False,
    )
    sys.stdout.write(done.stdout)
    assert done.returncode == 0, f"seed {SEED}\n{done.stdout}\n{done.stderr[-3000:]}"


@pytest.mark.faults
def test_a_small_disk_can_be_full_and_empty_again(tmp_path: Path) -> None:
    disk = SmallDisk(tmp_path / "data")
    if disk.why_not:
        pytest.skip(f"NO DISK IS FILLED HERE: {disk.why_not}")
    try:
        disk.fill()
        with pytest.raises(OSError, match="No space left"):
            (tmp_path / "data" / "more").write_text("x" * 10_000)
        disk.empty()
        (tmp_path / "data" / "more").write_text("x" * 10_000)
    finally:
        disk.close()


@pytest.mark.faults
def test_a_stepped_clock_reaches_programs_that_run_and_leaves_their_sleep_alone(
    tmp_path: Path,
) -> None:
    library = find_faketime()
    if library is None:
        pytest.skip("NO CLOCK IS STEPPED HERE: install libfaketime")
    clock = Clock(tmp_path / "clock")
    code = "import time\nwhile True: print(time.time(), flush=True); time.sleep(0.05)"
    environment = clean_environment(**faketime_environment(library, clock))
    argv = [sys.executable, "-c", code]
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = iter(process.stdout)
        try:
            assert abs(float(next(lines)) - time.time()) < 5
            clock.step_to(1000.0)
            eventually(lambda: float(next(lines)) - time.time() > 900, "the step")
        finally:
            process.kill()


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    """Bob's request on lane 1, in a slot that he has."""
    return Evidence(
        asked=[Asked("r", "bob", "short", 1, AT, status=200, is_whole=True, model="small")],
        served=[Served("r", "bob", "small", 1, AT, AT, "whole", "1")],
        slots=[Slot("left", "bob", AT - 10, AT + 10)],
        lanes={"1": "left"},
        made=[],
        counted_failures=0,
        clock=Clock(tmp_path / "clock"),
    )


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where model servers note what they serve."""
    return tmp_path / "served"


def test_the_judge_finds_nothing_wrong_with_an_owner_who_was_served(
    evidence: Evidence, log: Path
) -> None:
    assert broken_promises(evidence, log) == []


def test_the_judge_finds_a_stranger_in_a_slot(evidence: Evidence, log: Path) -> None:
    evidence = replace(evidence, slots=[Slot("left", "eve", AT - 10, AT + 10)])
    assert broken_promises(evidence, log) == ["bob was served on left 10.00 s into eve's slot"]


@pytest.mark.parametrize(("told_at", "count"), [(AT - 3, 0), (AT + 3, 1)])
def test_who_was_told_otherwise_before_the_request_arrived_was_not_served(
    evidence: Evidence, log: Path, told_at: float, count: int
) -> None:
    evidence = replace(evidence, slots=[Slot("left", "eve", AT - 10, AT + 10)])
    evidence.asked[0].end = told_at
    assert len(broken_promises(evidence, log)) == count


def test_the_judge_reckons_with_the_product_s_stepped_clock(evidence: Evidence, log: Path) -> None:
    evidence.clock.steps.append((AT - 100, 15.0))
    evidence = replace(evidence, slots=[Slot("left", "eve", AT + 5, AT + 25)])
    assert broken_promises(evidence, log) == ["bob was served on left 10.00 s into eve's slot"]


def test_the_judge_lets_a_step_be_noticed_first(evidence: Evidence, log: Path) -> None:
    evidence.clock.steps.append((AT - 1, 15.0))
    evidence = replace(evidence, slots=[Slot("left", "eve", AT + 5, AT + 25)])
    assert broken_promises(evidence, log) == []


def test_the_judge_finds_an_answer_of_another_model(evidence: Evidence, log: Path) -> None:
    evidence.asked[0].model = "large"
    assert broken_promises(evidence, log) == ["bob's request r named large and ran on small"]


def test_the_judge_takes_a_fallback_that_was_told(evidence: Evidence, log: Path) -> None:
    evidence.asked[0].model, evidence.asked[0].fallback = "large", "small"
    assert broken_promises(evidence, log) == []


def test_the_judge_finds_a_500(evidence: Evidence, log: Path) -> None:
    evidence.asked[0].status = 500
    assert broken_promises(evidence, log) == ["bob's request r (short) was answered 500 "]


def test_the_judge_finds_a_preset_that_rests_without_a_reason(
    evidence: Evidence, log: Path
) -> None:
    evidence = replace(evidence, counted_failures=1)
    assert "only 0 model servers were victims" in broken_promises(evidence, log)[0]
    evidence = replace(evidence, made=[Fault("kill shim", AT, AT, "left")])
    assert broken_promises(evidence, log) == []


SMALL, LARGE, MINE = (1, "bob"), (2, "eve"), (1, "eve")


@pytest.mark.parametrize(
    ("looks", "seconds"),
    [
        ([(0, SMALL)], 30),
        ([(0, SMALL), (12, LARGE)], 18),  # something else is wanted
        ([(0, SMALL), (12, MINE)], 18),  # somebody else has the lane
        ([(0, SMALL), (12, None), (13, SMALL)], 30),  # the database did not answer
        ([(0, SMALL), (SLOT_SECONDS + 5, LARGE)], 30 - SLOT_SECONDS),
        ([(at, (at, "bob")) for at in range(30)], 30 - SLOT_SECONDS),  # it is never right
    ],
)
def test_a_promise_counts_from_the_last_change_in_the_first_slot_s_length(
    looks: list[tuple[float, tuple[int, str] | None]], seconds: float
) -> None:
    wait = Wait(since=AT, promise=13.6)
    for at, aim in looks:
        wait.take(Look("not yet", aim), AT + at)
    assert wait.seconds(AT + 30) == seconds


def test_a_rest_that_is_over_when_the_lane_is_right_was_a_rest_all_the_same() -> None:
    wait = Wait(since=AT, promise=13.6)
    for look in (Look("not yet", SMALL, rest=30.0), Look("", SMALL)):
        wait.take(look, AT)
    assert wait.limit == 43.6


@pytest.mark.process
def test_a_second_model_server_of_a_lane_gives_itself_away(log: Path) -> None:
    program = write_wrapper(log.with_name("llama-server"), log)
    argv = [str(program), "--host", "127.0.0.1", "--port", "0", "--alias", "small"]
    lane = clean_environment(SLOTSERVE_LANE="7")
    first = subprocess.Popen(argv, env=lane)
    try:
        held = log.with_suffix(".lane-7")
        eventually(lambda: held.exists() and held.read_text() == str(first.pid), "the lock")
        with subprocess.Popen(argv, env=lane) as second:
            eventually(doubles_of(log).exists, "a word of the second")
            second.kill()
        assert f"process {second.pid} began while {first.pid} lived" in doubles_of(log).read_text()
    finally:
        first.kill()
        first.wait()
