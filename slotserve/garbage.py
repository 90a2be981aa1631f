"""When the web process looks for garbage."""

import gc

# Python's own (700, from 3.13 on 2,000) are a part of one page. With 3.11 a page of thousands of
# bookings spent a tenth of its time on looking at them again and again, with these next to nothing.
_THRESHOLDS = (10_000, 20, 100)


def settle() -> None:
    """What is there by now stays. A collection of garbage that looks at it takes a tenth of a
    second of one request in a dozen, so that none does."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
