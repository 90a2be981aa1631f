"""An installation of the first release, updated as docs/operations.md says: nothing is lost."""

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from slotserve.stack.parts import ROOT
from tests.running import TEST_RUN

POSTGRES = os.environ.get("SLOTSERVE_TEST_POSTGRES", "")
PROCEDURE = "Updating"
KEYS = {"SLOTSERVE_SECRET_KEY": "0123456789abcdef" * 4, "SLOTSERVE_TABLE_KEYS": "fedcba98" * 8}
OVERLAPPING = (
    'UPDATE bookings_booking SET "start" = (SELECT min("start") FROM bookings_booking)'
    " WHERE purpose = 'thesis 1'"
)


class Old:
    """An installation of the first release: a folder, a database, no Valkey."""

    def __init__(self, folder: Path, url: str) -> None:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(TEST_RUN)}
        self.env = kept | KEYS | {"SLOTSERVE_DATA": str(folder), "DATABASE_URL": url}
        self.env |= {"DJANGO_SETTINGS_MODULE": "slotserve.settings", "SLOTSERVE_HOST_KEY": "gpu1"}
        self.env |= {"REDIS_URL": f"unix://{folder}/nobody.sock?db=0"}
        self.url = url

    def ran(self, *words: str, status: int = 0) -> str:
        """A Python program of ours; what it wrote."""
        argv = [sys.executable, *words]
        done = subprocess.run(argv, cwd=ROOT, env=self.env, capture_output=True, text=True)  # noqa: PLW1510
        assert done.returncode == status, done.stderr
        return done.stdout

    def connected(self) -> Any:
        """A connection past Django."""
        if self.url.startswith("sqlite"):
            return sqlite3.connect(self.url.removeprefix("sqlite:///"))
        return psycopg.connect(self.url)

    def read(self, statement: str) -> list[tuple[Any, ...]]:
        """Its rows."""
        with closing(self.connected()) as database:
            return list(database.cursor().execute(statement).fetchall())

    def levels(self) -> dict[str, str]:
        """What its self-check finds; without Valkey that is trouble."""
        told = self.ran("manage.py", "self_check", "--json", status=1)
        return {each["check"]: each["level"] for each in json.loads(told)}


@contextmanager
def new_postgres() -> Iterator[str]:
    """The address of an empty database, dropped at the end."""
    name = f"upgrade_{uuid4().hex[:12]}"
    with psycopg.connect(POSTGRES, autocommit=True) as server:
        server.execute(f'CREATE DATABASE "{name}"')
        try:
            yield f"{POSTGRES.rsplit('/', 1)[0]}/{name}"
        finally:
            server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture(params=["sqlite", "postgresql"])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Old]:
    if request.param == "sqlite":
        installation = Old(tmp_path, f"sqlite:///{tmp_path}/slotserve.sqlite3")
        installation.ran("-m", "tests.first_release")
        yield installation
    elif not POSTGRES:
        pytest.skip("NOT TESTED: SLOTSERVE_TEST_POSTGRES is not set")
    else:
        with new_postgres() as url:
            installation = Old(tmp_path, url)
            installation.ran("-m", "tests.first_release")
            yield installation


def documented() -> list[list[str]]:
    """The commands of manage.py that the procedure gives once the new code is there, in order."""
    page = (ROOT / "docs" / "operations.md").read_text()
    steps = page.split(f"## {PROCEDURE}\n")[1].split("\n## ")[0]
    return [
        found.split() for found in re.findall(r"^\d\. .*?`python (manage\.py [^`]*)`", steps, re.M)
    ]


DATA = {
    "lanes": "SELECT slug, name, enabled FROM lanes_lane",
    "presets": "SELECT number, arguments FROM lanes_presetrevision",
    "bookings": 'SELECT id, "start", "end", state, purpose FROM bookings_booking ORDER BY id',
    "tokens": "SELECT digest FROM gateway_apitoken",
    "usage": "SELECT request_id, status, duration_ms FROM gateway_usagerecord",
    "members": "SELECT id, username FROM auth_user WHERE username = 'owner'",
}


def test_the_procedure_is_the_one_that_is_tested() -> None:
    assert documented() == [
        ["manage.py", "backup", "before.tar.gz"],
        ["manage.py", "first_start", "--no-demo"],
        ["manage.py", "self_check"],
    ]


@pytest.mark.process
def test_an_installation_of_the_first_release_is_updated_with_all_it_has(old: Old) -> None:
    before = {name: old.read(statement) for name, statement in DATA.items()}
    assert all(before.values())
    assert old.levels()["migrations"] == "trouble"
    old.ran(*documented()[1])
    assert {name: old.read(statement) for name, statement in DATA.items()} == before
    levels = old.levels()
    assert levels["migrations"] == levels["guards"] == levels["database"] == "ok"
    with closing(old.connected()) as database:
        with pytest.raises((sqlite3.IntegrityError, psycopg.errors.ExclusionViolation)):
            database.cursor().execute(OVERLAPPING)
        database.rollback()
