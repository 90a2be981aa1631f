"""Programs that are run for what they say: real ones, well-behaved and not."""

import subprocess

import psutil
import pytest

from lanes import short_programs
from lanes.short_programs import Output
from tests.fleet import until

pytestmark = pytest.mark.process


def run(commands: str, *, seconds: float = 30.0, most: int = 1000) -> Output:
    """What becomes of these shell commands."""
    child = short_programs.start(["/bin/sh", "-c", commands], {"PATH": "/usr/bin:/bin"})
    return short_programs.finish(child, seconds=seconds, most=most)


def test_status_and_words_are_told_errors_included() -> None:
    assert run("echo out; echo err >&2; exit 3") == Output(3, b"out\nerr\n", is_cut=False)


def test_a_signal_is_a_negative_status() -> None:
    assert run("kill -9 $$").status == -9


def test_it_gets_the_variables_that_it_is_given_and_no_others() -> None:
    assert b"HOME" not in run("env").text


def test_what_goes_beyond_the_limit_is_dropped_and_holds_nobody_up() -> None:
    done = run("head -c 20000000 /dev/zero; exit 5", most=10)
    assert done == Output(5, bytes(10), is_cut=True)


def test_exactly_the_limit_is_not_cut() -> None:
    assert run("printf 1234567890", most=10) == Output(0, b"1234567890", is_cut=False)


def test_whoever_takes_too_long_is_killed_with_the_whole_group() -> None:
    done = run("trap '' TERM; sleep 600 & echo $!; wait", seconds=0.3)
    assert done.status is None
    until(lambda: is_gone(int(done.text)))


def test_a_helper_that_holds_the_pipe_is_not_waited_for() -> None:
    done = run("sleep 600 & echo $!")
    assert done.status == 0
    until(lambda: is_gone(int(done.text)))


def test_a_program_that_closes_its_output_is_waited_for() -> None:
    assert run("exec >&- 2>&-; sleep 0.2; exit 4").status == 4


def test_one_that_cannot_be_started_is_the_caller_s_to_tell() -> None:
    with pytest.raises((OSError, subprocess.SubprocessError)):
        short_programs.start(["/no/such/program"], {})


def is_gone(pid: int) -> bool:
    """Whether this process has ended; one that nobody reaps is a zombie."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
