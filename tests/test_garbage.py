"""Garbage is looked for apart, and what a refused statement leaves behind holds nobody up."""

import subprocess
import sys
from pathlib import Path

import pytest

from slotserve.stack.parts import ROOT
from tests.running import clean_environment

NOTED = """
import threading, time
words = []
class Noted:
    def __init__(self):
        self.me = self
    def __del__(self):
        words.append(threading.current_thread().name)
"""
MAKES = """
kept = [Noted() for _ in range(3)]
del kept
kept = [[] for _ in range(30_000)]
deadline = time.monotonic() + 60
while len(words) < 3 and time.monotonic() < deadline:
    time.sleep(0.05)
print(*words)
"""
WEB = "import slotserve.asgi\n"
WORKER = """
import slotserve.celery
from celery.signals import worker_init
worker_init.send(sender=None)
"""


TWO_THREADS = """
import gc, threading, time
import django
django.setup()
from django.db import OperationalError, connections

def word(mine):
    try:
        mine.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)
    except OperationalError:
        return "refused"
    return "begun"

def waits(mine, seconds):
    with mine.cursor() as cursor:
        cursor.execute(f"PRAGMA busy_timeout = {seconds * 1000}")

def wait_twice():
    mine = connections["default"]
    waits(mine, 0)
    words.append(word(mine))
    waits(mine, 60)
    is_refused.set()
    words.append(word(mine))  # as soon as the other's transaction is over

gc.collect()
gc.disable()
is_refused = threading.Event()
words = [word(connections["default"])]
waiting = threading.Thread(target=wait_twice, daemon=True)
waiting.start()
is_refused.wait(60)
time.sleep(1)  # it waits in SQLite
gc.collect()
connections["default"].commit()
waiting.join()
print(*words, sep=", ")
"""


def said_by(program: str, data: Path) -> str:
    """What a process of ours prints."""
    environment = {"SLOTSERVE_DATA": str(data), "DJANGO_SETTINGS_MODULE": "slotserve.settings"}
    said = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=clean_environment(**environment),
        capture_output=True,
        text=True,
        check=True,
        timeout=200,
    )
    return said.stdout


@pytest.mark.parametrize("begins", [WEB, WORKER], ids=["web", "worker"])
def test_garbage_is_collected_in_a_thread_of_its_own(begins: str, tmp_path: Path) -> None:
    assert said_by(begins + NOTED + MAKES, tmp_path) == "garbage garbage garbage\n"


def test_who_waits_for_a_transaction_is_not_waited_for_by_the_one_that_has_it(
    tmp_path: Path,
) -> None:
    """What a BEGIN that waited in vain has left is garbage when the same thread waits again."""
    assert said_by(TWO_THREADS, tmp_path) == "begun, refused, begun\n"
