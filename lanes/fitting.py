"""Whether a model can fit a lane's cards at all, by the size of its files."""

from collections.abc import Iterable

from lanes.models import Lane, Preset

TOO_LARGE = "Larger than GPU memory"


def gpu_memory(lane: Lane) -> int:
    """Bytes of all its cards together; 0: it has none, or nobody knows."""
    return sum(gpu.memory_bytes for gpu in lane.gpus.all())


def is_too_large(lane: Lane, preset: Preset) -> bool:
    """Whether its files alone need more than the lane's GPU memory. The CPU has no such limit."""
    size = preset.current.model_file.size_bytes if preset.current else 0
    return 0 < gpu_memory(lane) < size


def lanes_too_small(lanes: Iterable[Lane], preset: Preset) -> list[Lane]:
    """Those of the lanes of its host on whose cards it does not fit."""
    host = preset.current.model_file.host_id if preset.current else None
    return [lane for lane in lanes if lane.host_id == host and is_too_large(lane, preset)]
