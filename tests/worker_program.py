"""A worker for tests: looks at its lanes for ever, or ends by kill -9 at a named moment.

Reads one JSON object from argv: database, settings, lanes, die_at.
"""

import json
import os
import signal
import subprocess
import sys
import time

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"

import django
from django.conf import settings

TOLD = json.loads(sys.argv[1])
settings.DATABASES["default"]["NAME"] = TOLD["database"]
for name, value in TOLD["settings"].items():
    setattr(settings, name, value)
django.setup()

from lanes import starting, supervisor  # noqa: E402 - after django.setup()
from lanes.engines import registry  # noqa: E402
from tests.fleet import FakeEngine  # noqa: E402


def die(*_: object) -> None:
    """As kill -9 and the kernel's out-of-memory killer do."""
    os.kill(os.getpid(), signal.SIGKILL)


def half(child: "subprocess.Popen[bytes]", order: bytes) -> None:
    """Die in the middle of the order to the shim."""
    assert child.stdin is not None
    child.stdin.write(order[: len(order) // 2])
    child.stdin.flush()
    die()


def whole(child: "subprocess.Popen[bytes]", order: bytes) -> None:
    """Die right after it, before the shim has recorded anything."""
    assert child.stdin is not None
    child.stdin.write(order)
    child.stdin.flush()
    die()


MOMENTS = {
    "after the row": ("spawn", die),
    "in the order": ("_hand_over", half),
    "after the spawn": ("_hand_over", whole),
}
registry.ENGINES["llama.cpp"] = FakeEngine()
if TOLD["die_at"]:
    setattr(starting, *MOMENTS[TOLD["die_at"]])
while True:
    for lane_pk in TOLD["lanes"]:
        supervisor.look(lane_pk)
    time.sleep(0.02)
