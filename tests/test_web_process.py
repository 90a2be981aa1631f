"""The web process as it is started."""

import subprocess
import sys

from bench.installation import ROOT

STARTED = (
    "import gc, sys\n"
    "import slotserve.asgi\n"
    "print(gc.get_freeze_count() > 100_000, 'slotserve.web.lanes' in sys.modules)\n"
)


def test_no_collection_of_garbage_looks_at_what_was_imported() -> None:
    said = subprocess.run(
        [sys.executable, "-c", STARTED], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert said.stdout == "True True\n"
