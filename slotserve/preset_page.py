"""One preset as its page and REST show it: lanes, and its history. Reads only."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from lanes.fitting import gpu_memory, lanes_too_small
from lanes.models import Lane, Preset, PresetRevision, Runtime, TestLoad
from lanes.preset_history import Change, changes
from slotserve.preset_figures import figures, load_counts, speeds

MOST_REVISIONS = 50


@dataclass(frozen=True, slots=True)
class LaneRow:
    """A preset on one lane. Seconds and tokens a second; None: never measured."""

    lane: Lane
    memory_bytes: int  # 0: no card, or nobody knows
    fits: bool
    load: float | None
    loads: int
    failed: int
    last: datetime | None
    speed: float | None
    runtime: Runtime | None


@dataclass(frozen=True, slots=True)
class RevisionRow:
    """A revision and what it changed; none: it is the first."""

    revision: PresetRevision
    changes: tuple[Change, ...]
    is_first: bool


def lane_rows(preset: Preset) -> list[LaneRow]:
    """It on each enabled lane of its host; seven queries."""
    revision = preset.current
    if revision is None:
        return []
    of_host = Lane.objects.filter(enabled=True, host=revision.model_file.host_id)
    lanes = list(of_host.select_related("host").prefetch_related("gpus"))
    measured, counts = figures([revision], lanes, speeds()), load_counts(preset.pk)
    small = lanes_too_small(lanes, revision.model_file)
    running = {runtime.lane_id: runtime for runtime in measured.running.get(preset.pk, [])}
    rows = []
    for lane in lanes:
        well, badly, last = counts.get(lane.pk, (0, 0, None))
        rows.append(
            LaneRow(
                lane=lane,
                memory_bytes=gpu_memory(lane),
                fits=lane not in small,
                load=measured.loads.get((lane.pk, preset.pk)),
                loads=well,
                failed=badly,
                last=last,
                speed=measured.speeds.get((lane.pk, preset.slug)),
                runtime=running.get(lane.pk),
            )
        )
    return rows


def history(preset: Preset, limit: int = MOST_REVISIONS) -> list[RevisionRow]:
    """Its newest revisions with what each changed, the newest first; one query."""
    found = (
        preset.revisions.filter(is_draft=False)
        .select_related("created_by")
        .order_by("-number")[: limit + 1]
    )
    return _with_changes(list(found))[:limit]


def newest_tests(preset: Preset, limit: int = 5) -> list[TestLoad]:
    """The newest test loads of any of its revisions; one query."""
    tests = TestLoad.objects.filter(revision__preset=preset)
    return list(tests.select_related("lane", "revision__preset")[:limit])


def _with_changes(newest_first: Sequence[PresetRevision]) -> list[RevisionRow]:
    before: Iterable[PresetRevision | None] = [*newest_first[1:], None]
    return [
        RevisionRow(each, changes(old, each) if old else (), is_first=old is None)
        for each, old in zip(newest_first, before, strict=True)
    ]
