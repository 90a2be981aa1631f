"""Holders and verdicts as JSON columns hold them."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from lanes.gpus.outsiders import Verdict
from lanes.gpus.readings import Holder
from lanes.models import Gpu, GpuState


def holders_to_json(holders: Iterable[Holder] | None) -> list[dict[str, Any]] | None:
    """Plain values; None: the driver does not tell."""
    return None if holders is None else [asdict(holder) for holder in holders]


def holders_of(state: GpuState) -> tuple[Holder, ...] | None:
    """The processes of the newest reading; None: the driver does not tell."""
    return None if state.processes is None else _holders(state.processes)


def verdict_to_json(verdict: Verdict) -> dict[str, Any]:
    """Plain values."""
    return {
        "outsiders": holders_to_json(verdict.outsiders),
        "unseen_bytes": verdict.unseen_bytes,
        "clean": verdict.clean,
        "odd": verdict.odd,
        "named": sorted(verdict.named),
        "gap_bytes": verdict.gap_bytes,
    }


def verdict_of(gpu: Gpu) -> Verdict:
    """The card's verdict; a fresh one when it was never polled, or by another version."""
    state = getattr(gpu, "state", None)
    if state is None or not state.verdict:
        return Verdict()
    kept = dict(state.verdict)
    try:
        return Verdict(
            outsiders=_holders(kept.pop("outsiders")),
            named=frozenset((pid, ticks) for pid, ticks in kept.pop("named")),
            **kept,
        )
    except (KeyError, TypeError, ValueError):
        return Verdict()


def _holders(rows: Iterable[dict[str, Any]]) -> tuple[Holder, ...]:
    known = Holder.__dataclass_fields__
    return tuple(Holder(**{k: v for k, v in row.items() if k in known}) for row in rows)
