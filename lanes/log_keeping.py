"""Which logs a host keeps: those of the newest SLOTSERVE_LOG_RUNS runs of each of its lanes.

`SLOTSERVE_DATA/logs/lane-<lane>/<run>/` holds the segments of one run. What cannot be removed is
tried again a minute later; keeping logs in order fails no start and no look.
"""

import logging
import re
import shutil
from collections.abc import Collection, Iterable
from pathlib import Path

from django.conf import settings

from lanes.models import Lane, Runtime

log = logging.getLogger(__name__)
_OF_LANE = re.compile(r"lane-([0-9]{1,18})(?:\.log(?:\.[0-9]+)*)?")


def folder_of(run: Runtime) -> Path:
    """Where the log of this run goes."""
    return _of_lane(run.lane_id) / str(run.pk)


def tidy(lane_pk: int) -> None:
    """Remove the logs of the lane's older runs."""
    newest = Runtime.objects.filter(lane=lane_pk).order_by("-pk")[: settings.SLOTSERVE_LOG_RUNS]
    kept = {run.pk: run.log_path for run in newest}
    for folder in superseded(_names(_of_lane(lane_pk)), kept):
        _remove(_of_lane(lane_pk) / folder)
    for file in _logs().glob(f"lane-{lane_pk}.log*"):  # of releases that had one log a lane
        if not any(str(file).startswith(path) for path in kept.values() if path):
            _remove(file)


def tidy_all() -> None:
    """Do so for every lane that has logs here; those of lanes that are no more go altogether."""
    found = {name: match[1] for name in _names(_logs()) if (match := _OF_LANE.fullmatch(name))}
    known = set(Lane.objects.filter(pk__in=set(found.values())).values_list("pk", flat=True))
    for name, lane_pk in found.items():
        if int(lane_pk) not in known:
            _remove(_logs() / name)
    for lane_pk in known:
        tidy(lane_pk)


def superseded(folders: Iterable[str], kept: Collection[int]) -> list[str]:
    """Of a lane's folders those of runs that are not kept; what is no run's is left alone. Pure."""
    return [name for name in folders if name.isdecimal() and int(name) not in kept]


def _logs() -> Path:
    return Path(settings.SLOTSERVE_DATA) / "logs"


def _of_lane(lane_pk: int) -> Path:
    return _logs() / f"lane-{lane_pk}"


def _names(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir())
    except OSError:
        return []


def _remove(path: Path) -> None:
    try:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    except OSError as error:
        log.warning("old log not removed path=%s reason=%s", path, error)
        return
    log.info("old log removed path=%s", path)
