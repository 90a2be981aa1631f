"""What pages are told, as a pure function."""

import json

from slotserve.live.state import NOTHING, State, digest_of, news

OLD = State({"lanes": "a", "lane:x": "1", "hosts": "h"}, {"x": {"in_flight": 0}})


def told(known: State, now: State, *, is_staff: bool = False) -> dict[str, object]:
    text = news(known, now, is_staff=is_staff)
    if not text:
        return {}
    name, data = text.strip().split("\n")
    assert name == "event: state"
    found: dict[str, object] = json.loads(data.removeprefix("data: "))
    return found


def test_who_knows_nothing_is_told_everything() -> None:
    assert told(NOTHING, OLD, is_staff=True) == {"topics": OLD.topics, "figures": OLD.figures}


def test_who_knows_everything_is_told_nothing() -> None:
    assert told(OLD, State(dict(OLD.topics), dict(OLD.figures))) == {}


def test_only_what_differs_is_told() -> None:
    now = State({**OLD.topics, "lane:x": "2"}, {"x": {"in_flight": 3}})
    assert told(OLD, now) == {"topics": {"lane:x": "2"}, "figures": {"x": {"in_flight": 3}}}


def test_what_is_gone_is_told() -> None:
    now = State({"lanes": "b", "hosts": "h"}, {})
    assert told(OLD, now) == {"topics": {"lanes": "b", "lane:x": None}, "figures": {"x": None}}


def test_only_administrators_are_told_of_hosts() -> None:
    now = State({**OLD.topics, "hosts": "i"}, OLD.figures)
    assert told(OLD, now) == {}
    assert told(OLD, now, is_staff=True) == {"topics": {"hosts": "i"}, "figures": {}}


def test_the_same_facts_have_the_same_digest() -> None:
    assert digest_of("a", None, 1) == digest_of("a", None, 1)
    assert len({digest_of("a"), digest_of("b"), digest_of("a", "b"), digest_of("ab")}) == 4
