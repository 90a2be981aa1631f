"""One bin/up from start to end, with tiny parts: order, crashes, kills, a second one."""

import json
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from lanes import processes
from tests.running import Up, eventually
from tests.tiny_stack import SLEEP

pytestmark = pytest.mark.process
BANNER = "SlotServe runs."


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    """A tiny product on a data folder of its own, not started."""
    tiny = Up(tmp_path / "data")
    yield tiny
    tiny.end()


def test_everything_runs_and_ctrl_c_leaves_nothing(up: Up) -> None:
    up.start().wait_for(BANNER)
    assert f"http://127.0.0.1:{up.ports[0]}/   log in as admin, password pw-made-now" in up.screen
    assert "Authorization: Bearer ss_demo" in up.screen
    assert up.stop() == 0
    assert up.processes() == []
    assert (up.data / "stopped").exists()
    assert not (up.data / "stack.json").exists()
    assert not (up.data / "first-start.json").exists()  # it holds the password


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_term_and_a_closed_terminal_stop_it_too(up: Up, number: signal.Signals) -> None:
    up.start().wait_for(BANNER)
    assert up.stop(number) == 0
    assert up.processes() == []


def test_ctrl_c_while_setting_up_leaves_nothing(up: Up) -> None:
    up.start().wait_for("setting up")
    assert up.stop() == 0
    assert up.processes() == []


def test_a_ctrl_c_that_bin_up_held_back_stops_it_in_order(up: Up) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # as bin/up does right before
    try:
        up.start().send(signal.SIGINT)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    assert up.status() == 0
    assert "everything has stopped" in up.screen
    assert "Traceback" not in up.screen
    assert up.processes() == []


def test_model_servers_end_too_when_the_folder_was_deleted_and_made_anew(up: Up) -> None:
    up.start().wait_for(BANNER)
    socket_folder = runtime_folder(up)
    names = {processes.INSTALLATION: name_of(up), processes.LANE: "1"}
    server = subprocess.Popen([sys.executable, "-S", "-c", SLEEP], env=names)
    try:
        shutil.rmtree(up.data)
        up.data.mkdir()
        (up.data / "installation-id").write_text("another")
        assert up.stop() == 0
        assert server.wait(60) == -signal.SIGTERM
    finally:
        server.kill()
        server.wait()
    assert "everything has stopped" in up.screen
    assert not socket_folder.exists()


def test_a_crashed_part_is_started_again_and_a_line_says_so(up: Up) -> None:
    up.start().wait_for(BANNER)
    first = up.part("edge")
    first.kill()
    up.wait_for("edge ended (killed by SIGKILL); starting it again in 0.5 s")
    eventually(lambda: recorded(up).get("edge", [first.pid])[0] != first.pid, "a new edge")
    assert up.stop() == 0


def test_secrets_are_on_the_screen_and_never_in_the_log(up: Up) -> None:
    up.start().wait_for(BANNER)
    up.stop()
    log = (up.data / "logs" / "up.log").read_text()
    assert "everything has stopped" in log
    assert "pw-made-now" not in log
    assert "ss_demo" not in log


def test_a_second_one_on_the_same_folder_says_so(up: Up) -> None:
    up.start().wait_for(BANNER)
    other = Up(up.data.with_name("other"))
    other.data = up.data
    assert other.start().status() == 1
    assert other.screen.startswith(f"SlotServe already runs on {up.data} (process ")
    assert other.screen.count("\n") == 1
    assert up.stop() == 0


def test_a_killed_one_leaves_nothing_that_the_next_does_not_end(up: Up) -> None:
    up.start().wait_for(BANNER)
    deaf = [up.part(name) for name in ("worker", "valkey")]
    for process in deaf:
        process.suspend()  # neither ends by the kernel's TERM
    up.send(signal.SIGKILL)
    up.status()
    up.start().wait_for(BANNER, 60)
    assert "the last bin/up was killed" in up.screen
    assert not any(processes.stat(process.pid) for process in deaf)
    assert up.stop() == 0
    assert up.processes() == []


def test_a_killed_one_s_servers_end_while_the_next_sets_up_and_before_its_worker(
    tmp_path: Path,
) -> None:
    first = Up(tmp_path / "data")
    first.start().wait_for(BANNER)
    first.send(signal.SIGKILL)
    first.status()
    up = Up(tmp_path / "data", TINY_STOP="waits")
    try:
        up.start().wait_for("listening")  # a part of this one
        assert (up.data / "stopped").exists()
        assert up.stop() == 0
    finally:
        up.end()


@pytest.mark.skipif(not psutil.LINUX, reason="only Linux tells children of their parent's death")
def test_parts_end_with_a_killed_bin_up(up: Up) -> None:
    up.start().wait_for(BANNER)
    up.send(signal.SIGKILL)
    up.status()
    eventually(lambda: up.processes() == [], "everything gone")


def test_what_is_told_once_is_told_even_when_the_start_is_given_up(tmp_path: Path) -> None:
    up = Up(tmp_path / "data", TINY_WEB="never answers")
    try:
        up.start().wait_for("listening")  # the edge: setting up is over
        assert up.stop() == 0
        assert "password pw-made-now" in up.screen
        assert BANNER not in up.screen
    finally:
        up.end()


def test_a_port_in_use_is_said_with_its_holder(up: Up) -> None:
    with socket.create_server(("127.0.0.1", up.ports[1])):
        assert up.start().status() == 1
    assert f"Port {up.ports[1]} is in use by " in up.screen
    assert "choose another with --gateway-port" in up.screen
    assert "Traceback" not in up.screen
    assert up.processes() == []


def test_a_second_ctrl_c_waits_for_nobody(up: Up) -> None:
    up.start().wait_for(BANNER)
    up.part("web").suspend()
    up.send(signal.SIGINT)
    up.wait_for("stopping …")
    assert up.stop(seconds=4) == 0  # without it: five seconds of grace
    assert up.processes() == []


def test_the_socket_is_recorded_for_manage_py(up: Up) -> None:
    up.start().wait_for(BANNER)
    url = (up.data / "redis-url").read_text().strip()
    path = Path(url.removeprefix("unix://").removesuffix("?db=0"))
    assert path.is_socket()
    assert path.parent.stat().st_mode & 0o777 == 0o700
    up.stop()
    assert not path.parent.exists()


def test_a_copy_of_the_folder_of_a_running_one_leaves_that_alone(up: Up) -> None:
    up.start().wait_for(BANNER)
    copy = Up(Path(shutil.copytree(up.data, up.data.with_name("copy"))))
    names = {processes.INSTALLATION: name_of(up), processes.LANE: "1"}
    server = subprocess.Popen([sys.executable, "-S", "-c", SLEEP], env=names)
    try:
        parts = recorded(up)
        copy.start().wait_for(BANNER)
        assert "killed" not in copy.screen
        assert name_of(copy) != name_of(up)
        assert copy.stop() == 0
        assert recorded(up) == parts
        assert all(processes.is_alive(pid, ticks) for pid, ticks in parts.values())
        assert server.poll() is None
        assert runtime_folder(up).is_dir()
    finally:
        server.kill()
        server.wait()
        copy.end()


def test_a_setting_that_cannot_be_used_is_said_before_anything_is_ended(up: Up) -> None:
    up.start().wait_for(BANNER)
    deaf = up.part("valkey")
    deaf.suspend()
    up.send(signal.SIGKILL)
    up.status()
    wrong = Up(up.data, SLOTSERVE_TICK_SECONDS="often")
    assert wrong.start().status() == 1
    assert wrong.screen.startswith("SLOTSERVE_TICK_SECONDS='often' is not a number")
    assert wrong.screen.count("\n") == 1
    assert deaf.is_running()
    assert (up.data / "stack.json").exists()


def name_of(up: Up) -> str:
    return (up.data / "installation-id").read_text().strip()


def runtime_folder(up: Up) -> Path:
    url = (up.data / "redis-url").read_text().strip()
    return Path(url.removeprefix("unix://").removesuffix("?db=0")).parent


def recorded(up: Up) -> dict[str, list[int]]:
    """The record of what runs."""
    return dict(json.loads((up.data / "stack.json").read_text())["parts"])
