"""When a process with many threads looks for garbage, and where.

In a thread of its own, which never has a lock: what is found may belong to another thread, such as
an open statement of its connection to SQLite, and to free it may take until that thread has done
with it. Python would look in whichever thread made the last object, and if this one has begun a
transaction for which the other waits, neither goes on.
"""

import gc
import logging
import threading
import time

log = logging.getLogger(__name__)

# Python's own (700, from 3.13 on 2,000) are a part of one page. With 3.11 a page of thousands of
# bookings spent a tenth of its time on looking at them again and again, with these next to nothing.
_THRESHOLDS = (10_000, 20, 100)
_PAUSE_SECONDS = 0.25


def settle() -> None:
    """What is there by now stays. A collection of garbage that looks at it takes a tenth of a
    second of one request in a dozen, so that none does. The rest is looked at apart."""
    gc.collect()
    gc.freeze()
    gc.disable()
    threading.Thread(target=_look_for_ever, daemon=True, name="garbage").start()


def look() -> None:
    """Collect the oldest generation that is due, if any."""
    due = [age for age, count in enumerate(gc.get_count()) if count > _THRESHOLDS[age]]
    if due:
        gc.collect(max(due))


def _look_for_ever() -> None:
    while True:
        time.sleep(_PAUSE_SECONDS)
        try:
            look()
        except Exception:
            log.exception("looking for garbage failed")
