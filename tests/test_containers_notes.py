"""What attendants note of their containers, and which container a process says it is in."""

from pathlib import Path

import pytest

from lanes.containers import notes
from lanes.containers.notes import Note, containers_of

A, B = "a1" * 32, "b2" * 32
USER = "/user.slice/user-1000.slice/user@1000.service"


@pytest.mark.parametrize(
    ("told", "found"),
    [
        (f"0::/system.slice/docker-{A}.scope", {A}),  # version 2, driver systemd
        (f"0::/docker/{A}", {A}),  # version 2, driver cgroupfs
        (f"0::/system.slice/docker-{A}.scope/init", {A}),  # a group that it made inside
        (f"12:devices:/docker/{A}\n11:memory:/docker/{A}\n0::/", {A}),  # version 1, cgroupfs
        (f"1:name=systemd:/system.slice/docker-{A}.scope\n0::/", {A}),  # version 1, systemd
        (f"0::{USER}/user.slice/docker-{A}.scope", {A}),  # Docker without root
        (f"0::/machine.slice/libpod-{A}.scope/container", {A}),  # Podman, systemd
        (f"0::/libpod_parent/libpod-{A}", {A}),  # Podman, cgroupfs
        (f"0::{USER}/user.slice/libpod-{A}.scope/container", {A}),  # Podman without root
        (f"0::/../docker-{A}.scope", {A}),  # read from inside another container
        (f"0::/docker/{B}/docker/{A}", {A, B}),  # an engine inside a container
        (f"0::/slotserve.slice/docker-{A}.scope", {A}),  # a parent that an administrator chose
        (f"0::/machine.slice/libpod-conmon-{A}.scope", set()),  # its attendant is not in it
        ("0::/user.slice/user-1000.slice/session-4.scope", set()),
        (f"0::/docker/{A[:63]}", set()),
        (f"0::/docker/{A}f", set()),
        ("0::/", set()),
        ("", set()),
    ],
)
def test_a_process_s_containers_are_read_from_its_control_groups(
    told: str, found: set[str]
) -> None:
    assert containers_of(told) == found
    assert containers_of(f"{told}\n") == found


def test_a_note_is_read_as_it_was_written(tmp_path: Path) -> None:
    notes.write(tmp_path / "1.container", Note(A, 4711))
    assert notes.read(tmp_path / "1.container") == Note(A, 4711)
    assert [path.name for path in tmp_path.iterdir()] == ["1.container"]


@pytest.mark.parametrize(
    ("text", "note"), [("4711", Note("", 4711)), ("", Note()), ("x y", Note()), (None, Note())]
)
def test_a_note_of_an_earlier_release_or_none_is_no_error(
    tmp_path: Path, text: str | None, note: Note
) -> None:
    path = tmp_path / "1.container"
    if text is not None:
        path.write_text(text)
    assert notes.read(path) == note
