"""The supervisor alone, with one-line parts."""

import asyncio
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lanes import processes
from slotserve.stack import leftovers
from slotserve.stack.output import Output
from slotserve.stack.record import Record
from slotserve.stack.supervisor import Part, Supervisor, how_it_ended, next_wait

pytestmark = pytest.mark.process
DEAF = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True)"


@pytest.fixture
def output(tmp_path: Path) -> Iterator[Output]:
    """A screen (pytest's) and a log."""
    made = Output(tmp_path / "up.log")
    yield made
    made.close()


@pytest.fixture
def supervisor(tmp_path: Path, output: Output) -> Supervisor:
    """A supervisor without parts."""
    return Supervisor(tmp_path, Record(tmp_path / "stack.json", "test"), output)


def python(code: str, *, grace: float = 5.0) -> Part:
    """A part that runs these words."""
    return Part("part", (sys.executable, "-c", code), grace=grace)


async def seen(log: Path, text: str, seconds: float = 30) -> None:
    """Until a line of the log has this."""
    deadline = time.monotonic() + seconds
    while text not in (log.read_text() if log.exists() else ""):
        assert time.monotonic() < deadline, f"not within {seconds} s: {text}"
        await asyncio.sleep(0.02)


async def test_run_answers_the_exit_status_and_relays_both_outputs(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    code = "import sys; print('said'); print('wailed', file=sys.stderr); sys.exit(3)"
    assert await supervisor.run(python(code)) == 3
    log = (tmp_path / "up.log").read_text()
    assert "part   | said" in log
    assert "part   | wailed" in log


async def test_a_line_without_end_does_not_stop_the_relay(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    await supervisor.run(python("print('x' * 200_000); print('after')"))
    assert "part   | after" in (tmp_path / "up.log").read_text()


async def test_a_grandchild_that_holds_the_output_does_not_hide_the_end(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    code = "import subprocess, sys; subprocess.Popen(['sleep', '30'])"
    began = time.monotonic()
    assert await supervisor.run(python(code)) == 0
    assert time.monotonic() - began < 20


def test_waits_grow_to_four_seconds_and_begin_anew_after_a_steady_minute() -> None:
    waits = [0.0]
    for _ in range(6):
        waits.append(next_wait(waits[-1], lasted=1.0))
    assert waits[1:] == [0.5, 1.0, 2.0, 4.0, 4.0, 4.0]
    assert next_wait(4.0, lasted=60.0) == 0.5


async def test_a_part_that_ends_is_started_again_with_growing_waits(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    supervisor.keep(python("import sys; sys.exit(2)"))
    await seen(tmp_path / "up.log", "part ended (exit status 2); starting it again in 0.5 s")
    await seen(tmp_path / "up.log", "starting it again in 1 s")
    await supervisor.stop("part")


async def test_a_program_that_is_not_there_is_a_line_and_not_a_crash(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    supervisor.keep(Part("part", ("/no/such/program",)))
    await seen(tmp_path / "up.log", "cannot be started: /no/such/program: No such file")
    await seen(tmp_path / "up.log", "part ended (exit status 127); starting it again in 0.5 s")
    await supervisor.stop("part")


async def test_a_part_deaf_to_term_is_killed_after_its_grace(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    supervisor.keep(python(DEAF + "; time.sleep(60)", grace=0.3))
    await seen(tmp_path / "up.log", "deaf")
    began = time.monotonic()
    await supervisor.stop("part")
    assert 0.3 <= time.monotonic() - began < python("").grace  # the default


async def test_hurry_gives_no_grace(supervisor: Supervisor, tmp_path: Path) -> None:
    supervisor.keep(python(DEAF + "; time.sleep(60)", grace=60))
    await seen(tmp_path / "up.log", "deaf")
    supervisor.hurry()
    await asyncio.wait_for(supervisor.stop("part"), 30)


async def test_the_record_holds_what_runs_and_the_next_ends_it(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    supervisor.keep(python("import time; print('up', flush=True); time.sleep(60)"))
    await seen(tmp_path / "up.log", "up")
    successor = Record(tmp_path / "stack.json", "test")
    assert successor.is_unclean
    assert await asyncio.to_thread(successor.end_leftovers) == 1
    await seen(tmp_path / "up.log", "part ended (killed by SIGTERM)")
    await supervisor.stop("part")


async def test_what_the_record_missed_is_known_by_its_environment(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    part = python("import time; print('up', flush=True); time.sleep(60)")
    run = asyncio.create_task(
        supervisor.run(Part("part", part.argv, {"SLOTSERVE_STACK": "lost-and-found"}))
    )
    await seen(tmp_path / "up.log", "up")
    stranger = Record(tmp_path / "elsewhere.json", "another")
    assert stranger.end_leftovers() == 0
    finder = Record(tmp_path / "elsewhere.json", "lost-and-found")
    assert await asyncio.to_thread(finder.end_leftovers) == 1
    assert await run == -15


@pytest.mark.parametrize("text", ["", "{", "[]", '{"boot": "another", "parts": {"web": [1, 1]}}'])
def test_a_record_that_says_nothing_ends_nobody(tmp_path: Path, text: str) -> None:
    (tmp_path / "stack.json").write_text(text)
    assert Record(tmp_path / "stack.json", "nobody").end_leftovers() == 0


def test_a_number_used_again_is_not_taken_for_the_old_process() -> None:
    found = processes.stat(1)
    assert found is not None
    assert leftovers.alive([(1, found.ticks), (1, found.ticks + 1)]) == [(1, found.ticks)]


@pytest.mark.parametrize(
    ("status", "text"),
    [(0, "exit status 0"), (1, "exit status 1"), (-9, "killed by SIGKILL")],
)
def test_exit_statuses_have_words(status: int, text: str) -> None:
    assert how_it_ended(status) == text
