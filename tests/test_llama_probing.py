"""A host's llama-server is asked which flags it takes: real programs, good ones and bad."""

import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from pytest_django import Settings

from lanes import clock, llama_probing, supervisor, ticks
from lanes.engines import llama_cpp
from lanes.engines.registry import engine
from lanes.known_programs import known_flags
from lanes.llama_options import OPTIONS
from lanes.models import Host, Lane, LlamaServer, Preset, PresetFailure
from lanes.preset_notes import notes_of
from lanes.starting import server_spec
from tests import builders
from tests.fleet import until
from tests.standins import llama_server
from tests.test_api_bookings import signed_in
from tests.test_short_programs import is_gone

pytestmark = [pytest.mark.process, pytest.mark.django_db]
Install = Callable[[str], Path]
STANDIN = Path(llama_server.__file__)
BAD = {
    "hangs": ("sleep 600 & echo $! > {pids}; echo started; wait", "did not end within 0.5 s"),
    "writes and writes": ("head -c 100000000 /dev/zero", "wrote more than 524288 bytes"),
    "says something else": ("echo hello", "its --help names no flags"),
    "dies": ("kill -9 $$", "its --help names no flags"),
}


@pytest.fixture
def host(settings: Settings, tmp_path: Path) -> Host:
    settings.SLOTSERVE_DATA, settings.SLOTSERVE_HOST_KEY = tmp_path, "test-host"
    settings.SLOTSERVE_LLAMA_SERVER = str(tmp_path / "llama-server")
    return builders.host()


@pytest.fixture
def install(host: Host, tmp_path: Path) -> Install:
    """Puts a program of these shell commands where the host's llama-server is."""

    def put(commands: str) -> Path:
        file = tmp_path / "llama-server"
        draft = tmp_path / "draft"
        draft.write_text(f"#!/bin/sh\n{commands}\n")
        draft.chmod(0o755)
        draft.replace(file)
        return file

    return put


def of_version(name: str) -> str:
    """The stand-in's commands, counting how often it was asked."""
    words = shlex.join([sys.executable, "-S", str(STANDIN), name])
    return f'echo "$1" >> "$(dirname "$0")/asked"\nexec {words} "$@"'


def asked(file: Path) -> list[str]:
    """The questions that it was asked."""
    log = file.with_name("asked")
    return log.read_text().split() if log.exists() else []


def probe() -> LlamaServer:
    """What is known after a probe."""
    llama_probing.probe_host("test-host")
    return LlamaServer.objects.get()


def test_each_version_is_asked_once(host: Host, install: Install) -> None:
    file = install(of_version("OLD"))
    known = probe()
    assert (known.version, known.trouble) == ("10068 (571d0d5)", "")
    assert "--no-mmap" in known.flags
    assert probe().asked_at == known.asked_at
    assert asked(file) == ["--help", "--version"]
    install(of_version("NEW") + "\n# another size")
    assert llama_probing.is_due(host)
    newer = probe()
    assert newer.version == "11434 (18ef86e)"
    assert "--no-mmap" not in newer.flags
    assert len(asked(file)) == 4


@pytest.mark.parametrize("kind", BAD)
def test_a_program_that_does_not_answer_is_told_of_and_nothing_is_left(
    host: Host, install: Install, kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(llama_probing, "SECONDS", 0.5 if kind == "hangs" else 30.0)
    commands, words = BAD[kind]
    pids = tmp_path / "pids"
    install(commands.format(pids=pids))
    known = probe()
    assert words in known.trouble
    assert known.flags == []
    if pids.exists():
        until(lambda: is_gone(int(pids.read_text())))
    preset = builders.preset(arguments=["--no-mmap"])
    assert notes_of(read(preset)) == [
        f"Nobody knows which flags llama-server on test-host takes: {known.trouble}."
    ]


def test_a_program_that_is_not_there_is_told_of(host: Host) -> None:
    assert probe().trouble == "it cannot be started: No such file or directory"


def test_what_did_not_answer_is_asked_again_later(host: Host, install: Install) -> None:
    install("echo hello")
    known = probe()
    assert not llama_probing.is_due(host)
    LlamaServer.objects.update(asked_at=known.asked_at - timedelta(minutes=11))
    assert llama_probing.is_due(host)


def test_a_start_is_in_the_words_of_what_was_asked(host: Host, install: Install) -> None:
    install(of_version("NEW"))
    lane, preset = builders.lane(), builders.preset(arguments=["--no-mmap", "-c", "1"])
    assert launched(lane, preset)[-3:] == ("--no-mmap", "-c", "1")  # nobody has asked it yet
    probe()
    assert launched(lane, preset)[-4:] == ("-c", "1", "--load-mode", "none")
    assert "--alias" in launched(lane, preset)
    install(of_version("OLD") + "\n# another")  # not asked yet: nothing is changed
    assert launched(lane, preset)[-3:] == ("--no-mmap", "-c", "1")


def test_a_build_without_names_is_started_without_one_and_that_is_told(
    host: Host, install: Install
) -> None:
    install(of_version("BARE"))
    probe()
    preset = builders.preset()
    assert "--alias" not in launched(builders.lane(), preset)
    assert notes_of(read(preset)) == [
        "llama-server 99999 (0000000) on test-host has no --alias: it is started without a name."
    ]


def test_a_container_s_program_is_not_the_host_s(host: Host, install: Install) -> None:
    install(of_version("NEW"))
    probe()
    preset = builders.preset(arguments=["--no-mmap"], image="llama.cpp:server")
    assert launched(builders.lane(), preset)[-1] == "--no-mmap"
    assert notes_of(read(preset)) == []


def test_a_preset_s_author_is_told_on_the_page_and_by_rest(host: Host, install: Install) -> None:
    install(of_version("NEW"))
    probe()
    builders.preset("tiny", arguments=["--flash", "on"], notes=["--host was left out: ours."])
    note = (
        "llama-server 11434 (18ef86e) on test-host does not know --flash; "
        "the nearest that it knows is --flash-attn."
    )
    administrator = signed_in(builders.administrator())
    shown = administrator.get("/api/v1/presets/tiny/").json()
    assert shown["notes"] == ["--host was left out: ours.", note]
    assert "notes" not in signed_in(builders.person()).get("/api/v1/presets/tiny/").json()
    administrator.force_login(builders.administrator())
    assert note in administrator.get("/administration/").content.decode()


def test_the_built_in_runner_answers_like_any_other(
    host: Host, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings.SLOTSERVE_LLAMA_SERVER = ""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert llama_cpp.is_built_in()
    known = probe()
    assert known.trouble == ""
    assert known.version.startswith("xllamacpp ")
    assert set(known.flags) == {name for option in OPTIONS for name in option.names.split()}


def test_a_worker_s_look_has_it_asked(
    host: Host, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    monkeypatch.setattr(ticks, "request_probe", sent.append)
    install(of_version("OLD"))
    with monkeypatch.context() as patch:
        patch.setattr(llama_cpp, "program", hanging)
        supervisor.look_host("test-host")
    assert sent == ["test-host"]


def hanging() -> tuple[str, ...]:
    """As on a file system that does not answer."""
    raise AssertionError("a look waits for a file system")


@pytest.fixture
def wrapper(install: Install, tmp_path: Path) -> Callable[[str], None]:
    """Replaces the build that a script starts; the script stays as it is."""
    build = tmp_path / "build"
    install(f'exec sh {build} "$@"')

    def put(version: str) -> None:
        build.write_text(shlex.join([sys.executable, "-S", str(STANDIN), version]) + ' "$@"')

    return put


def test_a_build_behind_a_script_is_asked_by_each_worker(
    wrapper: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapper("OLD")
    probe()
    wrapper("NEW")
    assert "--no-mmap" in probe().flags
    monkeypatch.setattr(llama_probing, "_asked_here", set())  # as in a worker that has just begun
    assert "--no-mmap" not in probe().flags


def test_a_build_behind_a_script_is_asked_when_arguments_were_not_taken(
    host: Host, wrapper: Callable[[str], None]
) -> None:
    wrapper("OLD")
    probe()
    wrapper("NEW")
    cause = {"failure_kind": "argument", "failed_at": clock.database_now()}
    lane, revision = builders.lane(), builders.preset().current
    assert revision is not None
    PresetFailure.objects.create(lane=lane, revision=revision, count=1, **cause)
    known = probe()
    assert "--no-mmap" not in known.flags
    assert probe().asked_at == known.asked_at  # once for each failure


def test_without_the_servers_user_it_is_not_known(
    host: Host, install: Install, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(of_version("OLD"))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    settings.SLOTSERVE_RUN_AS = "nobody-of-that-name"
    words = "SLOTSERVE_RUN_AS=nobody-of-that-name is not a user of this machine"
    assert probe().trouble == f"it cannot be started: {words}"


def test_another_host_s_program_is_not_asked_here(host: Host, install: Install) -> None:
    builders.host("elsewhere")
    file = install(of_version("OLD"))
    llama_probing.probe_host("elsewhere")
    assert not asked(file)


def launched(lane: Lane, preset: Preset) -> tuple[str, ...]:
    """The command line of this preset on the lane."""
    assert preset.current is not None
    spec = server_spec(lane, preset.current, "127.0.0.1", 1, "key")
    spec = replace(spec, flags=known_flags(lane.host, preset.current))
    return tuple(engine("llama.cpp").launch(spec).argv)


def read(preset: Preset) -> Preset:
    """As the database has it now."""
    return Preset.objects.get(pk=preset.pk)
