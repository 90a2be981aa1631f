"""The system check of the seconds that scheduling reckons with."""

import pytest
from pytest_django import Settings

from lanes.checks import check_margins


@pytest.mark.parametrize(("drain", "is_refused"), [(30, False), (40, False), (41, True)])
def test_drain_and_stop_must_fit_into_the_buffer(
    settings: Settings, drain: float, is_refused: bool
) -> None:
    settings.SLOTSERVE_DRAIN_SECONDS = drain
    settings.SLOTSERVE_STOP_TIMEOUT_SECONDS = 20
    settings.SLOTSERVE_BUFFER_SECONDS = 60

    found = check_margins(None)

    assert [error.id for error in found] == (["slotserve.E010"] if is_refused else [])
