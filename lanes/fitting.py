"""Whether a model can fit a lane's cards at all, by the size of its files; and how that is said."""

from collections.abc import Iterable

from django.utils.translation import gettext as _

from lanes.models import Lane, ModelFile, Preset


def gpu_memory(lane: Lane) -> int:
    """Bytes of all its cards together; 0: it has none, or nobody knows."""
    return sum(gpu.memory_bytes for gpu in lane.gpus.all())


def is_too_large(lane: Lane, preset: Preset) -> bool:
    """Whether its files alone need more than the lane's GPU memory."""
    return preset.current is not None and _is_larger(preset.current.model_file, lane)


def warnings(lane: Lane, preset: Preset | None) -> list[str]:
    """What may go wrong with a preset on a lane, in sentences; it may be booked all the same."""
    if preset is None or preset.current is None:
        return []
    trouble = preset.current.model_file.warning
    told = (
        [_("%(preset)s may not load. %(why)s") % {"preset": preset.slug, "why": trouble}]
        if trouble
        else []
    )
    return [*told, warning(lane.slug, preset.slug)] if is_too_large(lane, preset) else told


def lanes_too_small(lanes: Iterable[Lane], file: ModelFile) -> list[Lane]:
    """Those of the lanes of its host on whose cards it does not fit."""
    return [lane for lane in _of_its_host(lanes, file) if _is_larger(file, lane)]


def fits_nowhere(lanes: Iterable[Lane], file: ModelFile) -> bool:
    """Whether its host has lanes, and it fits the cards of none of them."""
    own = _of_its_host(lanes, file)
    return bool(own) and all(_is_larger(file, lane) for lane in own)


def too_large() -> str:
    """What is said of one that `fits_nowhere`."""
    return _("Larger than GPU memory")


def warning(place: str, name: str) -> str:
    """The sentence about a model on a lane that is too small; it may be booked all the same."""
    words = _("Larger than GPU memory of %(place)s: %(name)s may not load.")
    return words % {"place": place, "name": name}


def _is_larger(file: ModelFile, lane: Lane) -> bool:
    """The CPU has no such limit."""
    return 0 < gpu_memory(lane) < file.size_bytes


def _of_its_host(lanes: Iterable[Lane], file: ModelFile) -> list[Lane]:
    return [lane for lane in lanes if lane.host_id == file.host_id]
