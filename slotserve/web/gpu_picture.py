"""A day of a lane's cards as paths of an SVG, a minute wide each, or a week, by five minutes; and
in words. Pure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from django.utils.formats import date_format
from django.utils.translation import gettext as _

from lanes.gpus import room
from slotserve.amounts import as_written
from slotserve.gpus import Minute

HEIGHT = 100
Point = tuple[int, float]  # x, and y from above


@dataclass(frozen=True, slots=True)
class Scale:
    """How wide a picture is, how many minutes a step in it is, and into how many parts it falls."""

    width: int
    minutes: int
    parts: int

    @property
    def grid(self) -> str:
        """Its lines, as a path."""
        across = "".join(f"M0 {y}H{self.width}" for y in (0, HEIGHT // 2, HEIGHT))
        steps = (self.width * part // self.parts for part in range(1, self.parts))
        return across + "".join(f"M{x} 0V{HEIGHT}" for x in steps)


OF_A_DAY, OF_A_WEEK = Scale(1440, 1, 4), Scale(2016, 5, 7)


@dataclass(frozen=True, slots=True)
class Picture:
    """What a template draws; empty paths where there is nothing."""

    used: str  # area
    outside: str  # area
    use: str  # line
    words: str


def draw(
    minutes: Sequence[Minute],
    total_bytes: int,
    now: datetime,
    zone: tzinfo,
    scale: Scale = OF_A_DAY,
) -> Picture:
    """What was before `now`; minutes in which nobody polled are gaps."""
    total = max([total_bytes, 1, *(minute.used_bytes for minute in minutes)])
    used = _runs(minutes, now, scale, lambda minute: minute.used_bytes / total)
    outside = _runs(minutes, now, scale, lambda minute: minute.outside_bytes / total or None)
    use = _runs(minutes, now, scale, lambda minute: _share(minute.utilisation))
    return Picture(
        used="".join(_area(run) for run in used),
        outside="".join(_area(run) for run in outside),
        use="".join(_line(run) for run in use),
        words=_words(minutes, total_bytes, zone, scale),
    )


def _share(percent: float | None) -> float | None:
    return None if percent is None else min(percent / 100, 1.0)


def _runs(
    minutes: Iterable[Minute],
    now: datetime,
    scale: Scale,
    share: Callable[[Minute], float | None],
) -> list[list[Point]]:
    """Points of minutes that follow each other; the middle ones of a level stretch are left out."""
    runs: list[list[Point]] = []
    for minute in minutes:
        value = share(minute)
        if value is None:
            continue
        x = scale.width - int((now - minute.minute).total_seconds() // (60 * scale.minutes)) - 1
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


def _words(minutes: Sequence[Minute], total_bytes: int, zone: tzinfo, scale: Scale) -> str:
    """The same for those who do not see it."""
    if not minutes:
        return _("Nothing was read in this time.")
    most = max(minutes, key=lambda minute: minute.used_bytes)
    at = date_format(most.minute.astimezone(zone), "H:i" if scale == OF_A_DAY else "D H:i")
    words = _("At most %(used)s of %(total)s in use, at %(time)s")
    values = {"used": _size(most.used_bytes), "total": _size(total_bytes), "time": at}
    said = [words % values]
    use = [minute.utilisation for minute in minutes if minute.utilisation is not None]
    if use:
        said.append(_("%(percent).0f %% busy on average") % {"percent": sum(use) / len(use)})
    outside = max(minute.outside_bytes for minute in minutes)
    if outside:
        said.append(_("up to %(size)s held by processes of no lane") % {"size": _size(outside)})
    return "; ".join(said) + "."


def _size(amount: int) -> str:
    return as_written(room.size(amount))
