"""A day of a lane's cards as paths of an SVG, a minute wide each, and in words. Pure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from django.utils.translation import gettext as _

from lanes.gpus.room import size
from slotserve.gpus import Minute

WIDTH, HEIGHT = 1440, 100
Point = tuple[int, float]  # x, and y from above


@dataclass(frozen=True, slots=True)
class Picture:
    """What a template draws; empty paths where there is nothing."""

    used: str  # area
    outside: str  # area
    use: str  # line
    words: str


def draw(minutes: Sequence[Minute], total_bytes: int, now: datetime, zone: tzinfo) -> Picture:
    """The last 24 hours before `now`; minutes in which nobody polled are gaps."""
    total = max([total_bytes, 1, *(minute.used_bytes for minute in minutes)])
    used = _runs(minutes, now, lambda minute: minute.used_bytes / total)
    outside = _runs(minutes, now, lambda minute: minute.outside_bytes / total or None)
    use = _runs(minutes, now, lambda minute: _share(minute.utilisation))
    return Picture(
        used="".join(_area(run) for run in used),
        outside="".join(_area(run) for run in outside),
        use="".join(_line(run) for run in use),
        words=_words(minutes, total_bytes, zone),
    )


def _share(percent: float | None) -> float | None:
    return None if percent is None else min(percent / 100, 1.0)


def _runs(
    minutes: Iterable[Minute], now: datetime, share: Callable[[Minute], float | None]
) -> list[list[Point]]:
    """Points of minutes that follow each other; the middle ones of a level stretch are left out."""
    runs: list[list[Point]] = []
    for minute in minutes:
        value = share(minute)
        if value is None:
            continue
        x = WIDTH - int((now - minute.minute).total_seconds() // 60) - 1
        point = (x, round(HEIGHT * (1 - value), 1))
        if not runs or runs[-1][-1][0] != x - 1:
            runs.append([point])
            continue
        run = runs[-1]
        if len(run) > 1 and run[-1][1] == run[-2][1] == point[1]:
            run.pop()
        run.append(point)
    return runs


def _line(run: Sequence[Point]) -> str:
    """Through the points, and a minute on from the last one."""
    points = [*run, (run[-1][0] + 1, run[-1][1])]
    return "M" + "L".join(f"{x} {y:g}" for x, y in points)


def _area(run: Sequence[Point]) -> str:
    """Between the line and the floor."""
    return f"{_line(run)}L{run[-1][0] + 1} {HEIGHT}L{run[0][0]} {HEIGHT}Z"


def _words(minutes: Sequence[Minute], total_bytes: int, zone: tzinfo) -> str:
    """The same for those who do not see it."""
    if not minutes:
        return _("Nothing was read in this time.")
    most = max(minutes, key=lambda minute: minute.used_bytes)
    at = most.minute.astimezone(zone)
    words = _("At most %(used)s of %(total)s in use, at %(time)s")
    values = {"used": size(most.used_bytes), "total": size(total_bytes), "time": f"{at:%H:%M}"}
    said = [words % values]
    use = [minute.utilisation for minute in minutes if minute.utilisation is not None]
    if use:
        said.append(_("%(percent).0f %% busy on average") % {"percent": sum(use) / len(use)})
    outside = max(minute.outside_bytes for minute in minutes)
    if outside:
        said.append(_("up to %(size)s held by processes of no lane") % {"size": size(outside)})
    return "; ".join(said) + "."
