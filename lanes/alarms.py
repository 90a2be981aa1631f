"""When an alarm of a host begins and when it is over. Pure.

A value that hovers at its limit must not tell people at each crossing. So an alarm begins at once,
and is over only when the value has been clearly right, that is by a margin, for as long as STEADY
says. What is said of one thing within an hour of the last time is `lanes.notices`' to hold back.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType

# What is a reading, and may hover. All else was set by somebody, and is over when it is mended.
STEADY: Mapping[str, timedelta] = MappingProxyType(
    {
        "never_seen": timedelta(minutes=2),
        "unreachable": timedelta(minutes=2),
        "clock_skew": timedelta(minutes=10),
        "disk_full": timedelta(minutes=10),
        "driver_failing": timedelta(minutes=10),
        "other_version": timedelta(minutes=10),  # while some workers are renewed, others not yet
    }
)


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm in force. `well_since`: since when its value is clearly right; None: it is not."""

    since: datetime
    well_since: datetime | None = None


def step(
    alarms: Mapping[str, Alarm], wrong: Set[str], unclear: Set[str], now: datetime
) -> dict[str, Alarm]:
    """The alarms in force after this look, by code.

    `wrong`: codes of what is wrong now; `unclear`: of what is right, but not clearly, or not known.
    """
    looked = {
        code: _look(code, alarms.get(code), wrong, unclear, now) for code in {*alarms, *wrong}
    }
    return {code: alarm for code, alarm in sorted(looked.items()) if alarm is not None}


def _look(
    code: str, alarm: Alarm | None, wrong: Set[str], unclear: Set[str], now: datetime
) -> Alarm | None:
    if alarm is None:
        return Alarm(now)
    if code in wrong or code in unclear:
        return replace(alarm, well_since=None)
    well_since = alarm.well_since or now
    is_over = now - well_since >= STEADY.get(code, timedelta(0))
    return None if is_over else replace(alarm, well_since=well_since)
