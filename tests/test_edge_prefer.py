"""`Prefer: wait=N`: how it is read, and what bounds it."""

import pytest

from gateway.edge.config import EdgeConfig
from gateway.edge.prefer import default_patience, patience_of, preferred_wait


@pytest.mark.parametrize(
    ("values", "seconds"),
    [
        (["wait=10"], 10),
        (["wait=10, respond-async"], 10),
        (["respond-async", 'return=minimal; a="b, wait=3", Wait = "7"; x=1'], 7),
        (["wait=3, wait=9"], 3),
        (["wait=0"], 0),
        (["wait"], None),
        (["wait=ten"], None),
        (["wait=-1"], None),
        (["wait=1.5"], None),
        (['foo="wait=5"'], None),
        (["await=5", "x-wait=5"], None),
        (['"' * 200], None),
        (["a" * 9999 + ", wait=5"], None),
        ([""], None),
    ],
)
def test_prefer_is_read_as_rfc_7240_says(values: list[str], seconds: int | None) -> None:
    assert preferred_wait([value.encode() for value in values]) == seconds


def test_a_wait_is_bounded_and_without_one_the_settings_count() -> None:
    config = EdgeConfig("redis://x", "e", wait_seconds=900.0, queue_seconds=60.0)
    otherwise = default_patience(config)
    assert (otherwise.for_slot, otherwise.for_load, otherwise.applied) == (600.0, 600.0, None)
    asked = patience_of([(b"prefer", b"wait=9999")], otherwise, config.wait_most_seconds)
    assert (asked.for_slot, asked.for_load, asked.applied) == (600, 600, 600)
    assert patience_of([(b"prefer", b"wait=x")], otherwise, 600.0) is otherwise
