"""The edge's time: what Valkey tells moves it, the monotonic clock carries it, doubt stops it."""

import pytest

from gateway.edge.clock import EdgeClock


class Host:
    """A host's clocks, and what its edge makes of them."""

    def __init__(self) -> None:
        self.monotonic, self.wall = 100.0, 5_000.0
        self.clock = EdgeClock(lambda: self.monotonic, lambda: self.wall)
        self.hear(4_000.0, 0.0)

    def hear(self, told: float, seconds: float) -> None:
        """Valkey tells this time, so long after it was asked."""
        asked = self.clock.moment()
        self.later(seconds)
        self.clock.sync(told, asked)

    def later(self, seconds: float) -> None:
        """Time passes."""
        self.monotonic += seconds
        self.wall += seconds


@pytest.fixture
def host() -> Host:
    return Host()


def test_the_clock_is_carried_by_the_monotonic_one(host: Host) -> None:
    host.clock.take_offset(0.5)
    host.later(7.0)
    host.wall = 1.0  # somebody sets this host's clock
    assert (host.clock.valkey_now(), host.clock.now()) == (4_007.0, 4_007.5)
    assert host.clock.skew() > 2


def test_a_quick_answer_tells_the_time(host: Host) -> None:
    host.hear(4_200.0, 0.5)
    assert host.clock.valkey_now() == 4_200.25


@pytest.mark.parametrize(
    ("told", "found"),
    [
        (4_001.0, 4_004.0),  # it was told at some time within the four seconds, as it may have been
        (4_030.0, 4_030.0),  # Valkey's clock was set: by so much at least
        (3_990.0, 3_994.0),  # or back: it is so late at most
    ],
)
def test_a_slow_answer_moves_the_clock_as_far_as_it_proves(
    host: Host, told: float, found: float
) -> None:
    host.hear(told, 4.0)
    assert host.clock.valkey_now() == found


def test_a_clock_that_runs_is_in_no_doubt(host: Host) -> None:
    host.later(3_600.0)
    assert not host.clock.is_in_doubt
    host.wall += 1.5  # as a time service does
    assert not host.clock.is_in_doubt


@pytest.mark.parametrize("step", [2.5, -2.5, 7_200.0], ids=["on", "back", "after a sleep"])
def test_a_clock_that_was_set_is_in_doubt_until_valkey_has_told_the_time(
    host: Host, step: float
) -> None:
    host.wall += step
    assert host.clock.is_in_doubt
    host.hear(4_000.0 + step, 0.01)
    assert not host.clock.is_in_doubt


@pytest.mark.parametrize("step", [60.0, -60.0])
def test_a_slow_answer_ends_no_doubt(host: Host, step: float) -> None:
    """It does not say whose slot it is: the time is known no better than the answer was quick."""
    host.wall += step
    host.hear(4_000.0 + step, 0.75)
    assert host.clock.is_in_doubt
    assert host.clock.valkey_now() == 4_000.0 + step + 0.375
    host.hear(4_002.0 + step, 0.25)
    assert not host.clock.is_in_doubt


def test_what_valkey_was_asked_before_the_clock_was_set_ends_no_doubt(host: Host) -> None:
    asked = host.clock.moment()
    host.wall += 10.0  # while the answer is on its way
    host.clock.sync(4_000.0, asked)
    assert host.clock.is_in_doubt
