"""The self-check's judgement: a table of what is broken, and what is said about it."""

from typing import Any

import pytest

from slotserve.selfcheck.facts import ReachFacts
from slotserve.selfcheck.findings import Finding, Level, has_trouble, verdict, worst_first
from slotserve.selfcheck.judging import CHECKS, judge
from tests.selfcheck_facts import database, disk, edge, facts, head, host, valkey, zones

OK, UNKNOWN, WARNING, TROUBLE = Level.OK, Level.UNKNOWN, Level.WARNING, Level.TROUBLE
MB = 2**20

BROKEN: list[tuple[str, Level, str, dict[str, Any]]] = [
    ("database", TROUBLE, "does not answer: refused", {"database": "refused"}),
    (
        "migrations",
        TROUBLE,
        "1 migration has not run: lanes.0007_x.",
        {"database": database(unapplied=("lanes.0007_x",))},
    ),
    (
        "migrations",
        TROUBLE,
        "4 migrations have not run: a.1, a.2, a.3, ….",
        {"database": database(unapplied=("a.1", "a.2", "a.3", "a.4"))},
    ),
    ("migrations", UNKNOWN, "Not looked at", {"database": "refused"}),
    (
        "guards",
        TROUBLE,
        "would take overlapping bookings",
        {"database": database(is_guarded=False)},
    ),
    ("guards", UNKNOWN, "Not looked at", {"database": "refused"}),
    ("settings", TROUBLE, "No buffer.", {"settings": {"No buffer.": "Raise it."}}),
    ("settings", WARNING, "No keys.", {"warnings": {"No keys.": ""}}),
    ("valkey", TROUBLE, "does not answer: gone", {"valkey": "gone"}),
    ("valkey", WARNING, "asks for no password", {"reach": ReachFacts(open_valkey="10.0.0.1")}),
    (
        "workers",
        TROUBLE,
        "No worker serves plan.",
        {"valkey": valkey(queues=frozenset({"host.gpu1"}))},
    ),
    (
        "workers",
        TROUBLE,
        "No worker serves host.gpu1.",
        {"valkey": valkey(queues=frozenset({"plan"}))},
    ),
    (
        "workers",
        OK,
        "Workers serve every queue: plan.",
        {
            "valkey": valkey(queues=frozenset({"plan"})),
            "database": database(hosts=(host(has_lanes=False),)),
        },
    ),
    ("workers", UNKNOWN, "Not looked at", {"valkey": "gone"}),
    (
        "hosts",
        TROUBLE,
        "Gpu1 has other_version; gpu1 has unreachable.",
        {"database": database(hosts=(host("gpu1", "other_version", "unreachable"),))},
    ),
    (
        "hosts",
        WARNING,
        "Gpu1 has unreachable.",
        {"database": database(hosts=(host("gpu1", "unreachable", has_lanes=False),))},
    ),
    (
        "hosts",
        WARNING,
        "Gpu1 has disk_full.",
        {"database": database(hosts=(host("gpu1", "disk_full"),))},
    ),
    ("hosts", OK, "No host has joined yet.", {"database": database(hosts=())}),
    ("hosts", UNKNOWN, "Not looked at", {"database": "refused"}),
    ("joining", OK, "Other machines can join", {}),
    ("joining", OK, "this machine. Set it.", {"reach": ReachFacts(why_not="Set it.")}),
    (
        "joining",
        WARNING,
        "Set it.",
        {
            "reach": ReachFacts(why_not="Set it."),
            "database": database(hosts=(host(is_elsewhere=True),)),
        },
    ),
    ("table", TROUBLE, "No route table has been published", {"valkey": valkey(head=None)}),
    ("table", TROUBLE, "cannot be read: not signed.", {"valkey": valkey(head="not signed")}),
    ("table", TROUBLE, "last confirmed 90 s ago", {"valkey": valkey(head=head(seconds_ago=90))}),
    ("table", OK, "confirmed 2 s ago", {"valkey": valkey(head=head(offset=40.0))}),
    ("table", UNKNOWN, "Not looked at", {"valkey": "gone"}),
    ("gateways", TROUBLE, "No gateway is running", {"valkey": valkey(edges=())}),
    (
        "gateways",
        TROUBLE,
        "No gateway is running",
        {"valkey": valkey(edges=(edge(goodbye=True), edge("b", seconds_ago=60)))},
    ),
    (
        "gateways",
        WARNING,
        "gone without a word: b.",
        {"valkey": valkey(edges=(edge(), edge("b", seconds_ago=60)))},
    ),
    (
        "gateways",
        OK,
        "running: edge-1.",
        {"valkey": valkey(edges=(edge(), edge("b", goodbye=True)))},
    ),
    ("usage", WARNING, "60000 usage records wait", {"valkey": valkey(usage_waiting=60_000)}),
    ("usage", OK, "Ever dropped as unreadable: 4.", {"valkey": valkey(usage_dropped=4)}),
    ("usage", UNKNOWN, "Not looked at", {"valkey": "gone"}),
    (
        "clocks",
        TROUBLE,
        "This machine's clock is 2.5 s ahead of the database's.",
        {"database": database(local_ahead=2.5)},
    ),
    (
        "clocks",
        TROUBLE,
        "Valkey's clock is 9.0 s behind the database's.",
        {"valkey": valkey(offset=9.0)},
    ),
    ("clocks", OK, "agree within 0.0 s", {"valkey": "gone"}),
    ("clocks", UNKNOWN, "Not looked at", {"database": "refused"}),
    (
        "time-zones",
        TROUBLE,
        "Mars/Base of SLOTSERVE_TIME_ZONE is not known",
        {"zones": zones(zone="Mars/Base", is_known=False)},
    ),
    ("time-zones", WARNING, "Only 3 time zones", {"zones": zones(count=3)}),
    ("time-zones", WARNING, "are those of 2021a", {"zones": zones(version="2021a")}),
    ("time-zones", OK, "597 time zones are known.", {"zones": zones(version="")}),
    ("disk", TROUBLE, "/data has 100 MB free.", {"disks": (disk(free_bytes=100 * MB),)}),
    ("disk", TROUBLE, "/data cannot be written to.", {"disks": (disk(is_writable=False),)}),
    ("disk", TROUBLE, "room for few files (0%)", {"disks": (disk(free_files=0.0),)}),
    (
        "disk",
        WARNING,
        "/data has 1024 MB free.",
        {"disks": (disk(free_bytes=1024 * MB), disk(path="/b"))},
    ),
]


def found(check: str, **changes: Any) -> Finding:
    return next(finding for finding in judge(facts(**changes)) if finding.check == check)


def test_an_installation_in_order_has_nothing_to_say_but_ok() -> None:
    findings = judge(facts())
    assert {finding.level for finding in findings} == {OK}
    assert all(finding.sentence.endswith(".") and not finding.advice for finding in findings)
    assert len({finding.check for finding in findings}) == len(CHECKS) == len(findings)
    assert verdict(findings) == "All is well."


@pytest.mark.parametrize(("check", "level", "words", "broken"), BROKEN)
def test_what_is_broken_is_said(
    check: str, level: Level, words: str, broken: dict[str, Any]
) -> None:
    finding = found(check, **broken)
    assert (finding.level, words in finding.sentence) == (level, True), finding
    assert bool(finding.advice) == (level in {WARNING, TROUBLE})


@pytest.mark.parametrize("broken", [{"database": "refused"}, {"valkey": "gone"}])
def test_what_depends_on_something_broken_does_not_add_to_the_trouble(broken: Any) -> None:
    findings = judge(facts(**broken))
    assert [f.check for f in findings if f.level == TROUBLE] == list(broken)


def test_the_verdict_names_trouble_before_warnings() -> None:
    low, no_edge = (disk(free_bytes=1024 * MB),), valkey(edges=(), head=None)
    assert verdict(judge(facts(disks=low))) == "Nothing is broken; look at disk."
    assert not has_trouble(judge(facts(disks=low)))
    findings = judge(facts(disks=low, valkey=no_edge))
    assert verdict(findings) == "Trouble with route table and gateways."
    assert has_trouble(findings)


def test_the_verdict_keeps_names() -> None:
    assert verdict(judge(facts(valkey="gone"))) == "Trouble with Valkey."


def test_people_read_what_is_worst_first() -> None:
    findings = judge(facts(valkey="gone", disks=(disk(free_bytes=1024 * MB),)))
    levels = [finding.level for finding in worst_first(findings)]
    assert levels[:3] == [TROUBLE, WARNING, UNKNOWN]
    assert levels[-1] == OK
    assert sorted(levels) == sorted(finding.level for finding in findings)


def test_a_folder_that_is_closed_is_not_told_to_be_full() -> None:
    (found,) = (f for f in judge(facts(disks=(disk(is_writable=False),))) if f.check == "disk")
    assert found.advice.startswith("Let the user that SlotServe runs as write there")
