"""Settings of the test run: a real SQLite file or SLOTSERVE_TEST_POSTGRES; no Valkey."""

import os
import tempfile
from pathlib import Path

_folder = Path(tempfile.mkdtemp(prefix="ss-test-"))
(_folder / "static").mkdir()
os.environ.setdefault("SLOTSERVE_DATA", str(_folder))
os.environ.setdefault("SLOTSERVE_TABLE_KEYS", "test-" + "k" * 40)
os.environ.setdefault("SLOTSERVE_SECRET_KEY", "test-secret-key")
os.environ.setdefault("REDIS_URL", f"unix://{_folder}/nobody.sock?db=0")
os.environ.setdefault("SLOTSERVE_HOST_KEY", "test-host")
if os.environ.get("SLOTSERVE_TEST_POSTGRES"):
    os.environ["DATABASE_URL"] = os.environ["SLOTSERVE_TEST_POSTGRES"]

from slotserve.settings import *  # noqa: E402, F403
from slotserve.settings import DATABASES, STORAGES  # noqa: E402

DATABASES["default"]["CONN_MAX_AGE"] = 0
SLOTSERVE_DATABASE_POOL = 0  # the web runs in the tests' own process, which drops its database
DATABASES["default"]["TEST"] = (
    {"NAME": str(_folder / "test.sqlite3")}
    if DATABASES["default"]["ENGINE"].endswith("sqlite3")
    else {}
)
STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
WHITENOISE_USE_FINDERS = WHITENOISE_AUTOREFRESH = True  # nothing is collected first
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
