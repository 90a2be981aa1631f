"""The attendant of a container, beside a fake of the Docker Engine's API on a real socket."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lanes.containers import notes
from lanes.containers.attendant import ENGINE_FAILED, NO_ORDER, VANISHED
from lanes.containers.order import VARIABLE, from_text, labels, to_text
from tests.containers import (
    INSTALLATION,
    SECONDS,
    TALKER,
    Attend,
    Attendant,
    FakeDocker,
    attendants,
    fake_docker,
    order_of,
    until,
)
from tests.ports import free_port

pytestmark = pytest.mark.process


@pytest.fixture
def engine() -> Iterator[FakeDocker]:
    with fake_docker({"talker": [sys.executable, "-c", TALKER]}) as engine:
        yield engine


@pytest.fixture
def attend() -> Iterator[Attend]:
    with attendants() as attend:
        yield attend


def first_line(attendant: Attendant) -> bytes:
    assert attendant.stdout is not None
    return attendant.stdout.readline()


def end(attendant: Attendant) -> tuple[int, bytes]:
    """Its exit status and what it still said."""
    output, _ = attendant.communicate(timeout=SECONDS)
    return attendant.returncode, output


def test_an_order_survives_its_way_through_the_environment(engine: FakeDocker) -> None:
    order = order_of(engine, "a", "b c", port=1, gpu_uuids=("GPU-1",), read_only=("/models",))
    assert from_text(to_text(order)) == order


def test_output_and_exit_status_are_the_container_s(attend: Attend, engine: FakeDocker) -> None:
    assert end(attend(order_of(engine, "ends", port=free_port()))) == (3, b"begun with ends\n")
    assert engine.containers() == []


def test_term_is_handed_on_and_the_end_waited_for(attend: Attend, engine: FakeDocker) -> None:
    attendant = attend(order_of(engine, "polite", port=free_port()))
    assert first_line(attendant) == b"begun with polite\n"
    attendant.terminate()
    assert end(attendant) == (7, b"bye\n")
    assert engine.containers() == []


def test_a_second_term_is_handed_on_as_well(attend: Attend, engine: FakeDocker) -> None:
    attendant = attend(order_of(engine, "stubborn", port=free_port()))
    assert first_line(attendant) == b"begun with stubborn\n"
    assert attendant.stdout is not None
    for _ in range(2):
        attendant.terminate()
        assert attendant.stdout.readline() == b"no\n"


def test_what_a_killed_attendant_left_is_removed_on_request(
    attend: Attend, engine: FakeDocker
) -> None:
    order = order_of(engine, "stubborn", port=free_port())
    attendant = attend(order)
    first_line(attendant)
    attendant.kill()
    attendant.communicate()
    assert len(engine.containers()) == 1
    status, words = end(attend(order, "--remove"))
    assert (status, engine.containers()) == (0, [])
    assert order.name in words.decode()


def test_what_was_left_is_gone_before_the_next_one_starts(
    attend: Attend, engine: FakeDocker
) -> None:
    port = free_port()
    left = attend(order_of(engine, "stubborn", port=port))
    first_line(left)
    left.kill()
    left.communicate()
    later = order_of(engine, "polite", port=port, labels=labels(INSTALLATION, 1, 2), name="later")
    attendant = attend(later)
    assert b"removing what was left" in first_line(attendant)
    assert first_line(attendant) == b"begun with polite\n"
    assert [one.name for one in engine.containers()] == ["later"]
    attendant.terminate()
    end(attendant)


def test_containers_of_others_are_left_alone(attend: Attend, engine: FakeDocker) -> None:
    others = [
        order_of(
            engine, "stubborn", port=free_port(), name="lane", labels=labels(INSTALLATION, 2, 1)
        ),
        order_of(engine, "stubborn", port=free_port(), name="else", labels=labels("else", 1, 1)),
    ]
    running = [attend(order) for order in others]
    for one in running:
        first_line(one)
    end(attend(order_of(engine, port=free_port()), "--remove"))
    assert {one.name for one in engine.containers()} == {"lane", "else"}


def test_a_container_out_of_memory_says_so(attend: Attend, engine: FakeDocker) -> None:
    attendant = attend(order_of(engine, "stubborn", port=free_port()))
    first_line(attendant)
    engine.out_of_memory()
    status, words = end(attendant)
    assert (status, b"OOMKilled" in words) == (128 + signal.SIGKILL, True)


def test_a_container_that_somebody_removed_has_ended(attend: Attend, engine: FakeDocker) -> None:
    attendant = attend(order_of(engine, "stubborn", port=free_port()))
    first_line(attendant)
    engine.containers()[0].remove(force=True)
    assert end(attendant)[0] in (VANISHED, 128 + signal.SIGKILL)


def test_a_missing_image_is_a_sentence(attend: Attend, engine: FakeDocker) -> None:
    attendant = attend(order_of(engine, port=free_port(), image="nobody/nothing:1"))
    missing = b"slotserve: the image nobody/nothing:1 is not on this host: "
    assert end(attendant) == (ENGINE_FAILED, missing + b"docker pull nobody/nothing:1\n")


def test_a_port_in_use_is_a_sentence_and_leaves_nothing(attend: Attend, engine: FakeDocker) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        status, words = end(attend(order_of(engine, port=taken.getsockname()[1], name="two")))
    assert (status, b"port is already allocated" in words) == (ENGINE_FAILED, True)
    assert engine.containers() == []


def test_an_engine_that_is_away_is_a_sentence(
    attend: Attend, tmp_path: Path, engine: FakeDocker
) -> None:
    nowhere = str(tmp_path / "nowhere.sock")
    status, words = end(attend(order_of(engine, port=1, socket=nowhere)))
    assert (status, b"does not answer at" in words) == (ENGINE_FAILED, True)


def test_term_before_the_container_began_starts_nothing(attend: Attend, engine: FakeDocker) -> None:
    attendant = attend(order_of(engine, "stubborn", port=free_port()))
    attendant.send_signal(signal.SIGSTOP)
    attendant.terminate()
    attendant.send_signal(signal.SIGCONT)
    assert end(attendant)[0] in (-signal.SIGTERM, 128 + signal.SIGTERM)
    assert engine.containers() == []


def test_nonsense_in_place_of_an_order_is_said() -> None:
    argv = [sys.executable, "-m", "lanes.containers.attendant"]
    done = subprocess.run(argv, env={VARIABLE: "[]"}, stdout=subprocess.PIPE, check=False)
    assert done.returncode == NO_ORDER


def test_the_note_names_the_container_s_process(
    attend: Attend, engine: FakeDocker, tmp_path: Path
) -> None:
    note = tmp_path / "note"
    notes.write(note, notes.Note("an earlier one", 1))
    attendant = attend(order_of(engine, "polite", port=free_port(), note_path=str(note)))
    until(lambda: notes.read(note).pid > 1)
    (container,) = engine.containers()
    assert notes.read(note) == notes.Note(container.id, container.attrs["State"]["Pid"])
    attendant.terminate()
    end(attendant)
