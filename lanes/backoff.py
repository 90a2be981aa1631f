"""How long a failed preset rests before its next attempt. Pure: planner and host share it."""

WAITS = (30.0, 60.0, 120.0, 240.0, 480.0)
LONGEST_WAIT = 600.0


def retry_wait(count: int) -> float:
    """Seconds from the `count`-th failure in a row (1 or more) to the next attempt: 30, 60, 120,
    240, 480, then 600."""
    if count < 1:
        raise ValueError(f"a failure count starts at 1, not {count}")
    return WAITS[count - 1] if count <= len(WAITS) else LONGEST_WAIT
