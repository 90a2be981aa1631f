"""A real Celery worker and beat beside a test, on the test's database and Valkey."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.db import connection

from slotserve.stack.parts import ROOT
from wire.sealing import read_table_keys

TICK_SECONDS = 0.5
WORKER = ("worker", "-P", "threads", "-c", "8", "--without-mingle", "--without-gossip")
BEAT = ("beat", "--pidfile=")


def environment(folder: Path, redis_url: str, **more: str) -> dict[str, str]:
    """What makes a process work on this test's installation."""
    database = connection.settings_dict
    url = f"sqlite:///{database['NAME']}"
    if connection.vendor == "postgresql":
        place = f"{database['HOST']}:{database['PORT'] or 5432}/{database['NAME']}"
        url = f"postgres://{database['USER']}:{database['PASSWORD']}@{place}"
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "slotserve.settings",
        "DATABASE_URL": url,
        "REDIS_URL": redis_url,
        "SLOTSERVE_DATA": str(folder),
        "SLOTSERVE_HOST_KEY": settings.SLOTSERVE_HOST_KEY,
        "SLOTSERVE_TABLE_KEYS": ",".join(read_table_keys()),
        "SLOTSERVE_TICK_SECONDS": str(TICK_SECONDS),
        "SLOTSERVE_DRAIN_SECONDS": "1",
        "SLOTSERVE_STOP_TIMEOUT_SECONDS": "2",
        **more,
    }


@contextmanager
def celery(*arguments: str, env: dict[str, str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A Celery process, ended at the end."""
    argv = [sys.executable, "-m", "celery", "--quiet", "-A", "slotserve", *arguments]
    with log.open("ab") as output:
        process = subprocess.Popen(argv, cwd=ROOT, env=env, stdout=output, stderr=output)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
