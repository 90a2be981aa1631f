"""The self-check as page, API and command use it."""

from slotserve.selfcheck.findings import Finding
from slotserve.selfcheck.judging import judge
from slotserve.selfcheck.reading import read_facts


def self_check() -> list[Finding]:
    """What is in order and what is not, now."""
    return judge(read_facts())
