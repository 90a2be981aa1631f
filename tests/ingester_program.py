"""An ingester for tests: takes usage in until it ends by kill -9 at a named moment.

Reads one JSON object from argv: database, redis_url, batches (before that moment), is_written
(whether the last batch is in the database by then).
"""

import json
import os
import signal
import sys

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"

import django
from django.conf import settings

TOLD = json.loads(sys.argv[1])
settings.DATABASES["default"]["NAME"] = TOLD["database"]
settings.REDIS_URL = TOLD["redis_url"]
django.setup()

from gateway import usage  # noqa: E402 - after django.setup()
from wire.usage import Usage  # noqa: E402

usage.PAUSE_SECONDS, usage.LOCK_SECONDS = 0.0, 1
write = usage.store_records
left = TOLD["batches"]


def store_or_die(records: list[Usage]) -> None:
    """Write a batch; at the last one end as the kernel's out-of-memory killer does."""
    global left  # noqa: PLW0603
    left -= 1
    if left or TOLD["is_written"]:
        write(records)
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)


usage.store_records = store_or_die  # type: ignore[assignment]
while True:
    usage.ingest()
