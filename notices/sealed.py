"""Secrets of other services, encrypted in the database under SLOTSERVE_TABLE_KEYS."""

from functools import cache

from wire.sealing import Sealer, read_table_keys


@cache
def _sealer() -> Sealer:
    return Sealer(read_table_keys())


def sealed(text: str) -> str:
    """What may be kept."""
    return _sealer().seal(text)


def opened(text: str) -> str | None:
    """The secret; None when no key opens it."""
    return _sealer().open(text)
