"""bin/up and bin/test before anything is installed: Pythons, environments, sentences."""

import errno
import importlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from slotserve.stack.parts import ROOT

OLD = ("python3.10", "python3.9", "python3.8", "python3.7", "python3.6")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment, made once: that takes seconds."""
    folder = tmp_path_factory.mktemp("template") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    return folder


@pytest.fixture
def made(template: Path, environment: ModuleType) -> Path:
    """The project's environment, as an installation that came to its end leaves it."""
    folder = Path(shutil.copytree(template, environment.ROOT / "venv", symlinks=True))
    hashes = {"requirements.txt": environment.fingerprint("requirements.txt")}
    (folder / ".slotserve-hash").write_text(json.dumps(hashes))
    return folder


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """bin/environment.py for a project of its own, which requires nothing."""
    monkeypatch.syspath_prepend(str(ROOT / "bin"))
    module = importlib.import_module("environment")
    (tmp_path / "requirements.txt").write_text("# nothing\n")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setenv("SLOTSERVE_VENV", str(tmp_path / "venv"))
    return module


@pytest.fixture
def no_pip(environment: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Counts calls of pip, which does nothing and succeeds."""
    calls: list[str] = []

    def pip(argv: list[str], log: Path, lock: int) -> int:
        calls.append(argv[-1])
        return 0

    monkeypatch.setattr(environment, "pip", pip)
    return calls


def old_python() -> str | None:
    """A Python that is too old for this project, if this machine has one."""
    folders = [*os.environ["PATH"].split(os.pathsep)]
    folders += [str(p) for p in Path.home().glob(".pyenv/versions/3.*/bin")]
    for found in (shutil.which(name, path=folder) for name in OLD for folder in folders):
        # A version manager's shim may stand for nothing.
        if (
            found
            and subprocess.run([found, "-c", ""], check=False, capture_output=True).returncode == 0
        ):
            return found
    return None


def bin_up(python: str, *flags: str, path: str) -> subprocess.CompletedProcess[str]:
    """`bin/up FLAGS` under this Python with this PATH."""
    env = {k: v for k, v in os.environ.items() if k != "SLOTSERVE_PYTHON"} | {"PATH": path}
    argv = [python, str(ROOT / "bin" / "up"), *flags]
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=False)


@pytest.mark.skipif(old_python() is None, reason="this machine has no Python older than 3.11")
def test_too_old_a_python_is_one_sentence(tmp_path: Path) -> None:
    ran = bin_up(str(old_python()), path=str(tmp_path))
    assert ran.returncode == 1
    assert ran.stderr.startswith("SlotServe needs Python 3.11 or newer, and this is 3.")
    assert ran.stderr.count("\n") == 1


@pytest.mark.skipif(old_python() is None, reason="this machine has no Python older than 3.11")
def test_too_old_a_python_finds_a_newer_one_by_itself(tmp_path: Path) -> None:
    (tmp_path / "python3.11").symlink_to(sys.executable)
    ran = bin_up(str(old_python()), "--help", path=str(tmp_path))
    assert ran.returncode == 0
    assert "--gateway-port" in ran.stdout


@pytest.mark.parametrize("port", ["x", "0", "65536", "-1", "8000.5"])
def test_a_bad_port_is_refused_before_anything_is_installed(port: str) -> None:
    ran = bin_up(sys.executable, f"--web-port={port}", path=os.environ["PATH"])
    assert ran.returncode == 2
    assert f"{port} is not a port: give a number from 1 to 65535" in ran.stderr


def test_ctrl_c_waits_while_the_supervisor_is_imported(
    environment: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[set[int | signal.Signals]] = []
    bootstrap = importlib.import_module("bootstrap")
    monkeypatch.setattr(bootstrap, "prepared", lambda _: Path(sys.executable))
    monkeypatch.setattr(os, "execv", lambda *_: held.append(signal.pthread_sigmask(0, [])))
    monkeypatch.chdir(ROOT)
    bootstrap.up([])
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    assert held == [{signal.SIGINT}]


def test_an_environment_is_made_once(
    made: Path, environment: ModuleType, no_pip: list[str]
) -> None:
    assert environment.Environment().prepare("requirements.txt") == made / "bin" / "python"
    assert no_pip == []


def test_changed_requirements_are_installed_into_the_same_one(
    made: Path, environment: ModuleType, no_pip: list[str]
) -> None:
    (made / "kept").touch()
    (environment.ROOT / "requirements.txt").write_text("# still nothing\n")
    environment.Environment().prepare("requirements.txt")
    assert len(no_pip) == 1
    assert (made / "kept").exists()


def interrupted(folder: Path) -> None:
    """As a killed installation leaves it."""
    (folder / ".slotserve-installing").touch()


def without_python(folder: Path) -> None:
    """As an upgrade of the system leaves it."""
    (folder / "bin" / "python").unlink()


def cut_short(folder: Path) -> None:
    """As a full disk leaves it."""
    (folder / ".slotserve-hash").write_text("{")


@pytest.mark.parametrize("damage", [interrupted, without_python, cut_short])
def test_what_was_left_half_done_is_repaired(
    made: Path, environment: ModuleType, no_pip: list[str], damage: Callable[[Path], None]
) -> None:
    damage(made)
    python = environment.Environment().prepare("requirements.txt")
    assert len(no_pip) == 1
    assert subprocess.run([python, "-c", "import pip"], check=True).returncode == 0
    assert not (made / ".slotserve-installing").exists()


def test_a_failed_installation_is_a_sentence_and_counts_as_unfinished(
    environment: ModuleType,
) -> None:
    (environment.ROOT / "requirements.txt").write_text("./no-such-package\n")
    with pytest.raises(
        environment.InstallError, match=r"^Installing into .* failed: .*install\.log"
    ):
        environment.Environment().prepare("requirements.txt")
    assert (environment.ROOT / "venv" / ".slotserve-installing").exists()


def test_a_missing_venv_module_names_the_package(
    environment: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    with pytest.raises(environment.InstallError, match=f"apt install python{version}-venv"):
        environment.Environment().prepare("requirements.txt")


def test_a_file_in_the_way_of_the_environment_is_named(environment: ModuleType) -> None:
    (environment.ROOT / "venv").write_text("")
    with pytest.raises(environment.InstallError, match="venv cannot be used: Not a directory"):
        environment.Environment().prepare("requirements.txt")


def test_requirements_that_include_others_change_with_them(environment: ModuleType) -> None:
    (environment.ROOT / "requirements-dev.txt").write_text("-r requirements.txt\n")
    first = environment.fingerprint("requirements-dev.txt")
    assert environment.chain("requirements-dev.txt") == ["requirements-dev.txt", "requirements.txt"]
    (environment.ROOT / "requirements.txt").write_text("# changed\n")
    assert environment.fingerprint("requirements-dev.txt") != first


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("ERROR: [Errno 28] No space left on device", "the disk is full"),
        ("NewConnectionError: Failed to establish a new connection", "is there a network?"),
        ("ERROR: No matching distribution found for x==1", "not on offer for this machine"),
        ("ERROR: something new", "failed: ERROR: something new"),
        ("", "no reason given"),
    ],
)
def test_pips_words_become_a_sentence(environment: ModuleType, output: str, words: str) -> None:
    assert words in environment.explain(Path("/x"), output)


def test_a_full_disk_is_a_sentence(environment: ModuleType) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    assert environment.sentence(Path("/x"), full) == "/x cannot be written: the disk is full."


def test_checks_and_tests_each_tell_whether_they_failed(
    environment: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    quality = importlib.import_module("quality")
    monkeypatch.setattr(quality, "missing_parts", list)
    assert quality.run("yes", (sys.executable, "-c", "")) is False
    assert quality.run_tests(Path(sys.executable), ["--version"]) == []
    assert quality.run_tests(Path(sys.executable), ["--no-such-flag"]) == ["pytest"]
    assert "--- pytest" in capfd.readouterr().out


def test_missing_parts_are_loud_and_in_ci_a_failure(
    environment: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    quality = importlib.import_module("quality")
    monkeypatch.setattr(quality, "run", lambda name, argv: False)
    monkeypatch.setattr(quality, "missing_parts", lambda: ["PostgreSQL"])
    monkeypatch.delenv("CI", raising=False)
    assert quality.run_tests(Path(sys.executable), []) == []
    assert "*** NOT TESTED HERE: PostgreSQL ***" in capsys.readouterr().out
    monkeypatch.setenv("CI", "true")
    assert quality.run_tests(Path(sys.executable), []) == ["missing parts"]
