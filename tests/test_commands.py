"""Every command of the project with words that cannot be: a sentence and status 1 or 2."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import get_commands

from slotserve.stack.parts import ROOT
from tests.running import clean_environment

pytestmark = pytest.mark.process
OURS = {"lanes", "slotserve", "gateway", "bookings"}
LONG, NOT_UTF8 = "x" * 300, "\udcff"
FILES = ["/nowhere/x", "/dev/null", "", LONG, NOT_UTF8]
HOSTILE: dict[str, list[list[str]]] = {
    "backup": [[], *([file] for file in FILES)],
    "restore": [[], ["pipe"], ["/dev/zero"], *([file] for file in FILES)],
    "move_from_sqlite": [[], ["pipe"], *([file] for file in FILES)],
    "explain": [["nope"], [NOT_UTF8], ["--at", "nope"], ["--at=2030-13-45"], ["--at=0001-01-01"]],
    "create_token": [
        [],
        ["nobody"],
        ["a b", "--create-user"],
        [NOT_UTF8, "--create-user"],
        ["a", "--create-user", "--lane", "nope"],
        ["a", "--create-user", "--scope", "nope"],
        ["a", "--create-user", "--days", "9" * 30],
        ["a", "--create-user", "--tokens-per-minute", "9" * 30],
    ],
    "create_join_token": [
        ["gpu1"],
        ["gpu1", "nowhere"],
        ["a b", "127.0.0.1"],
        ["gpu1", "127.0.0.1", "--minutes", "9" * 30],
    ],
    "join_tokens": [["--revoke", "7"], ["--revoke", "9" * 30], ["--json", "--revoke", "7"]],
    "first_start": [
        ["extra"],
        ["--report", "/nowhere/x"],
        ["--report", "pipe"],
        ["--report", "list.json"],
        ["--report", ""],
        ["--report", LONG],
    ],
    "makemessages": [["extra"], ["--domain", "nope"]],
    "seed_demo": [["extra"], ["--lanes", "x"], ["--lanes", "0"], ["--bookings", "9" * 30]],
    "changepassword": [["nobody"], ["a", "b"], [LONG], [NOT_UTF8]],
    "hosts": [["extra"], ["--json=x"]],
    "self_check": [["extra"]],
    "check_host": [["extra"]],
    "stop_servers": [["extra"]],
    "migrate": [["nope"], ["lanes", "9999"]],
    "flush": [["extra"], ["--no-input", "--database", "nope"]],
}
# Those that stop at a database without tables; the others make one, or say it among other things.
NEED_TABLES = (
    "explain",
    "changepassword",
    "create_token",
    "create_join_token",
    "join_tokens",
    "hosts",
    "check_host",
)


def run(folder: Path, *words: str) -> tuple[int, str]:
    """`manage.py` with these words on this data folder; its status and all that it says."""
    environment = clean_environment(SLOTSERVE_DATA=str(folder), REDIS_URL="unix:///nowhere.sock")
    environment.pop("DATABASE_URL", None)
    argv = [sys.executable, "-W", "ignore", str(ROOT / "manage.py"), *words]
    done = subprocess.run(
        argv, check=False, cwd=folder, env=environment, capture_output=True, timeout=60
    )
    return done.returncode, (done.stdout + done.stderr).decode(errors="replace")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a database, and beside it what is no file of ours."""
    folder = tmp_path_factory.mktemp("installed")
    assert run(folder, "migrate", "-v", "0")[0] == 0
    os.mkfifo(folder / "pipe")
    (folder / "list.json").write_text("[1]")
    return folder


def test_every_command_of_the_project_is_tried() -> None:
    assert set(HOSTILE) == {name for name, app in get_commands().items() if app in OURS}


@pytest.mark.parametrize(
    ("command", "words"),
    [(command, words) for command, tried in HOSTILE.items() for words in tried],
    ids=lambda value: ascii(value)[:40],
)
def test_what_cannot_be_is_a_sentence(installed: Path, command: str, words: list[str]) -> None:
    status, said = run(installed, command, *words)
    assert (status in (1, 2), "Traceback" in said, bool(said.strip())) == (True, False, True), said


@pytest.mark.parametrize("command", NEED_TABLES)
@pytest.mark.parametrize("text", ["", "this is no database"])
def test_so_is_a_database_that_cannot_be_used(tmp_path: Path, command: str, text: str) -> None:
    (tmp_path / "slotserve.sqlite3").write_text(text * 50)
    arguments = {"create_token": ["a"], "create_join_token": ["gpu1", "127.0.0.1"]}
    status, said = run(tmp_path, command, *arguments.get(command, []))
    assert (status, "Traceback" in said) == (1, False), said
    assert "database" in said.lower()
