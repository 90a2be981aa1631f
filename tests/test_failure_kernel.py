"""What the kernel says of processes that it killed for want of memory."""

import subprocess
import sys
from pathlib import Path

import pytest
from pytest_django import Settings

from lanes.failures import kernel
from lanes.models import Lane, PresetFailure
from tests import builders, fleet
from tests.memory_groups import small_group

pytest_plugins = ["tests.fleet_fixtures"]
EATER = "import os; held = [os.urandom(2**20) for _ in range(1024)]"
WATCHER = f"""
import os, pathlib, subprocess, sys
pathlib.Path(sys.argv[1], "cgroup.procs").write_text(str(os.getpid()))
from lanes.failures.kernel import MemoryWatch
watch = MemoryWatch()
eater = subprocess.Popen([sys.executable, "-c", {EATER!r}])
assert eater.wait() == -9
word = watch.word_about(eater.pid)
watch.look(), watch.look()
print(word["memory_kills"], eater.pid, watch.word_about(1).get("memory_kills", 0))
print(word.get("killed_line", ""))
"""


@pytest.mark.parametrize(
    ("line", "is_so"),
    [
        ("Memory cgroup out of memory: Killed process 23793 (leaker) total-vm:2623712kB", True),
        ("Out of memory: Killed process 23793 (llama-server) total-vm:2345678kB", True),
        ("Out of memory: Kill process 23793 (chrome) score 850 or sacrifice child", True),
        ("Out of memory: Killed process 237 (leaker) total-vm:2623712kB", False),
        ("oom_reaper: reaped process 23793 (leaker), now anon-rss:0kB", False),
    ],
)
def test_a_line_of_the_kernel_names_whom_it_killed(line: str, is_so: bool) -> None:
    assert kernel.is_kill_of(line, 23793) is is_so


def test_without_files_of_the_kernel_nothing_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "GROUPS", tmp_path)
    monkeypatch.setattr(kernel, "HOST_COUNTS", tmp_path / "vmstat")
    monkeypatch.setattr(kernel, "KERNEL_LOG", tmp_path / "kmsg")
    assert kernel.MemoryWatch().word_about(1) == {}


@pytest.mark.process
def test_a_kill_in_our_group_is_counted_and_soon_forgotten() -> None:
    with small_group() as group:
        argv = [sys.executable, "-c", WATCHER, str(group)]
        told = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    counts, line = told.split("\n")[:2]
    kills, pid, later = counts.split()
    assert (int(kills), int(later)) == (1, 0)
    assert not line or kernel.is_kill_of(line, int(pid))


@pytest.mark.process
@pytest.mark.django_db
def test_a_server_that_the_kernel_kills_fails_for_want_of_host_memory(
    fleet_settings: Settings, tmp_path: Path
) -> None:
    lane: Lane = builders.lane()
    with small_group() as group:
        (Path(fleet_settings.SLOTSERVE_DATA) / "memory-group").write_text(str(group))
        fleet.order(lane, fleet.preset("eats_memory"))
        fleet.look_until(lane, fleet.is_phase(lane, "failed"))
    runtime, failure = fleet.newest(lane), PresetFailure.objects.get(lane=lane)
    assert runtime is not None
    assert runtime.exit_status == -9
    assert (runtime.failure_kind, failure.failure_kind) == ("host_memory", "host_memory")
    assert failure.failure_advice == fleet.FakeEngine.failure_words.host_memory
    if runtime.failure_line:  # where the kernel's log may be read
        assert kernel.is_kill_of(runtime.failure_line, runtime.pid or 0)
        assert failure.reason.startswith("The kernel killed it")
