"""How long a preset takes to load on a lane, and how far a load has come."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection

from lanes.models import Preset

Pair = tuple[int, int]  # primary keys of a lane and a preset
COUNTED_LOADS = 5
SETTLING_SECONDS = 15.0  # what a first load takes besides reading the file
MEGABYTE = 10**6
ALMOST = 0.99  # a load is whole only when the server says that it is ready

# From when the newest five of each revision are, by index; then the newest five of them all. The
# history only grows: a query that ranked all of it would get slower every day.
_NEWEST_LOADS = """
WITH pair (lane, preset) AS ({pairs}),
since (lane, preset, revision, started_at) AS MATERIALIZED (
    SELECT pair.lane, pair.preset, revision.id, (
        SELECT MIN(newest.started_at) FROM (
            SELECT started_at FROM lanes_loadrecord
            WHERE lane_id = pair.lane AND revision_id = revision.id AND succeeded
            ORDER BY started_at DESC LIMIT {count}
        ) newest
    )
    FROM pair JOIN lanes_presetrevision revision ON revision.preset_id = pair.preset
)
SELECT since.lane, since.preset, load.seconds
FROM since JOIN lanes_loadrecord load
    ON load.lane_id = since.lane AND load.revision_id = since.revision
    AND load.succeeded AND load.started_at >= since.started_at
ORDER BY load.started_at DESC, load.id DESC
"""
# A lane can run the presets whose file is on its host.
_POSSIBLE_PAIRS = """
    SELECT lane.id, preset.id
    FROM lanes_preset preset
    JOIN lanes_presetrevision current ON current.id = preset.current_id
    JOIN lanes_modelfile file ON file.id = current.model_file_id
    JOIN lanes_lane lane ON lane.host_id = file.host_id
"""


def load_estimates(pairs: Iterable[Pair]) -> dict[Pair, float]:
    """Seconds that each (lane, preset) is expected to load; two queries for any number.

    The mean of its last five successful loads there, of any revision; before any, a first guess
    from the size of its current revision's file. Presets without a revision are left out.
    """
    wanted = set(pairs)
    means = mean_loads(wanted)
    sizes = dict(
        Preset.objects.filter(pk__in={preset for _, preset in wanted}).values_list(
            "pk", "current__model_file__size_bytes"
        )
    )
    return {
        pair: means[pair] if pair in means else first_guess(sizes[pair[1]])
        for pair in wanted
        if sizes.get(pair[1]) is not None
    }


def mean_loads(pairs: Iterable[Pair]) -> dict[Pair, float]:
    """The mean of the last five successful loads of each (lane, preset) that has any; one query."""
    wanted = sorted(set(pairs))
    if not wanted:
        return {}
    places = ", ".join(["(%s, %s)"] * len(wanted))
    return _means(f"VALUES {places}", [key for pair in wanted for key in pair])


def measured_loads() -> dict[Pair, float]:
    """The same of every lane and each preset that it can run, where there are any; one query."""
    return _means(_POSSIBLE_PAIRS, [])


def _means(pairs: str, parameters: list[int]) -> dict[Pair, float]:
    newest: dict[Pair, list[float]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST_LOADS.format(pairs=pairs, count=COUNTED_LOADS), parameters)
        for lane, preset, seconds in cursor.fetchall():
            newest.setdefault((lane, preset), []).append(seconds)
    return {pair: _mean(loads[:COUNTED_LOADS]) for pair, loads in newest.items()}


def first_guess(size_bytes: int) -> float:
    """Seconds for a file that was never loaded there: size ÷ SLOTSERVE_DISK_READ_MBPS + 15 s."""
    return size_bytes / (settings.SLOTSERVE_DISK_READ_MBPS * MEGABYTE) + SETTLING_SECONDS


def progress(started_at: datetime, estimate_seconds: float, now: datetime) -> float:
    """How much of a load is done by its estimate, 0 to 0.99: only being ready is 1."""
    elapsed = (now - started_at).total_seconds()
    return min(max(elapsed / max(estimate_seconds, 0.001), 0.0), ALMOST)


def eta(started_at: datetime, estimate_seconds: float, now: datetime) -> datetime:
    """When a load is expected to be ready; one that is overdue, a second from now."""
    return max(started_at + timedelta(seconds=estimate_seconds), now + timedelta(seconds=1))


def _mean(seconds: list[float]) -> float:
    return sum(seconds) / len(seconds)
