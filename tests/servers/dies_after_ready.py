"""A bad citizen: answers as it should until a file appears, then says why and ends."""

import os
import sys
import threading
import time
from pathlib import Path

from tests.servers.answering import serve

ASKED = Path(os.environ["TEST_STARTS"]).with_name("die")


def wait_for_it() -> None:
    while not ASKED.exists():
        time.sleep(0.01)
    sys.stdout.write("CUDA error: out of memory\n")
    sys.stdout.flush()
    os._exit(1)


threading.Thread(target=wait_for_it, daemon=True).start()
serve()
