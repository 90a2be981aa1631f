"""Commands without what they need: a sentence that says what to do, no traceback."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from slotserve.database import MOVED
from slotserve.stack.parts import ROOT
from tests.running import clean_environment

NOBODY = "postgres://slotserve:secret@127.0.0.1:1/slotserve"


def said(*arguments: str, python: str = sys.executable, **names: str) -> str:
    """What a program that fails says."""
    ran = subprocess.run(
        [python, *arguments],
        cwd=ROOT,
        env=clean_environment(**names),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode not in (0, -9)
    assert "Traceback" not in ran.stderr + ran.stdout
    return ran.stderr + ran.stdout


@pytest.mark.parametrize(
    "url",
    ["mysql://u:secret@h/x", "banana", "postgres://u:secret@h", "postgres://u:secret@h:99999/x",
     "postgres://[", "sqlite:///", "://", "postgres:secret"],
)  # fmt: skip
def test_an_address_of_no_database(url: str, tmp_path: Path) -> None:
    words = said("manage.py", "showmigrations", DATABASE_URL=url, SLOTSERVE_DATA=str(tmp_path))
    assert words.startswith("DATABASE_URL ")
    assert words.count("\n") == 1
    assert "secret" not in words


@pytest.mark.parametrize(
    "names",
    [
        {"SLOTSERVE_WEB_URL": "nourl"},
        {"SLOTSERVE_GATEWAY_URL": "zzz"},
        {"SLOTSERVE_WEB_URL": "https://"},
        {"SLOTSERVE_WEB_URL": "http://a b"},
        {"SLOTSERVE_TIME_ZONE": "Mars/Olympus"},
        {"SLOTSERVE_TIME_ZONE": "../../etc/passwd"},
        {"SLOTSERVE_TIME_ZONE": "Europe"},
        {"SLOTSERVE_NAMES": "nobody"},
        {"REDIS_URL": "redis://h:99999/0"},
    ],
)
def test_other_settings(names: dict[str, str], tmp_path: Path) -> None:
    words = said("manage.py", "showmigrations", SLOTSERVE_DATA=str(tmp_path), **names)
    assert words.startswith(next(iter(names)))
    assert words.count("\n") == 1


@pytest.mark.parametrize(
    "program",
    [
        ("-m", "celery", "-A", "slotserve", "worker", "-P", "solo"),
        ("-m", "celery", "-A", "slotserve", "beat"),
        ("-m", "uvicorn", "slotserve.asgi:application", "--port", "0"),
        ("-m", "slotserve.stack", "--web-port", "1", "--gateway-port", "2", "--data", "DATA"),
    ],
)
def test_every_program_says_so(program: tuple[str, ...], tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    arguments = [data if word == "DATA" else word for word in program]
    words = said(*arguments, DATABASE_URL="banana", SLOTSERVE_DATA=data)
    assert "DATABASE_URL names no database that can be used: give postgres://" in words


@pytest.mark.parametrize(
    "command", [("create_token", "ann"), ("hosts",), ("join_tokens",), ("explain",)]
)
def test_a_database_that_does_not_answer(command: tuple[str, ...], tmp_path: Path) -> None:
    names = {"SLOTSERVE_DATA": str(tmp_path), "SLOTSERVE_TABLE_KEYS": "k" * 40}
    words = said("manage.py", *command, DATABASE_URL=NOBODY, **names)
    assert words.startswith("The database does not answer: ")
    assert words.endswith("Start it, or correct DATABASE_URL.\n")
    assert words.count("\n") == 1


def test_a_database_without_tables(tmp_path: Path) -> None:
    words = said("manage.py", "create_token", "ann", SLOTSERVE_DATA=str(tmp_path))
    assert "no such table: auth_user. Run `python manage.py migrate` first." in words


def test_a_file_whose_rows_were_moved(tmp_path: Path) -> None:
    (tmp_path / MOVED).write_text("postgres://slotserve@db/slotserve\n")
    words = said("manage.py", "create_token", "ann", SLOTSERVE_DATA=str(tmp_path))
    assert "were moved to postgres://slotserve@db/slotserve: set DATABASE_URL to that" in words
    assert f"remove {tmp_path / MOVED}." in words
    stack = ("-m", "slotserve.stack", "--web-port", "1", "--gateway-port", "2")
    assert said(*stack, "--data", str(tmp_path)) == words


def test_a_python_without_django(tmp_path: Path) -> None:
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if python is None:
        pytest.skip("there is no other Python")
    words = said("-S", "manage.py", "migrate", python=python)
    assert "has no Django: run .venv/bin/python manage.py migrate" in words
