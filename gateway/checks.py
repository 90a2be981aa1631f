"""System checks of the gateway's settings."""

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as CheckWarning

from wire.env import SettingError
from wire.sealing import Sealer, has_table_keys, read_table_keys

NO_KEYS = "slotserve.W020"
BAD_KEYS = "slotserve.E021"


def check_table_keys(app_configs: Sequence[Any] | None, **_: Any) -> list[CheckMessage]:
    """There are keys that can sign the route table; without them the gateway serves nobody."""
    if not has_table_keys():
        words = "SLOTSERVE_TABLE_KEYS is not set, so no route table can be published."
        return [CheckWarning(words, hint="Set it, or start with bin/up.", id=NO_KEYS)]
    try:
        Sealer(read_table_keys())
    except SettingError as error:
        return [Error(str(error), id=BAD_KEYS)]
    return []
