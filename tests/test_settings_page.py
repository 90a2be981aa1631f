"""docs/settings.md lists every environment variable that the product reads, and no other."""

import re

import pytest

from slotserve.stack.parts import ROOT

SOURCES = ("slotserve", "bookings", "lanes", "gateway", "wire", "bin")
READ = re.compile(
    r"""(?:read_(?:text|number|whole|flag|list|path)|environ(?:\.get|\.pop)?)\s*[(\[]\s*"([A-Z_]+)\""""
)
OURS = re.compile(r"(SLOTSERVE_[A-Z_]+|DATABASE_URL|REDIS_URL)")
INTERNAL = {
    "SLOTSERVE_INSTALLATION",  # marks on processes, which nobody sets
    "SLOTSERVE_STACK",
    "SLOTSERVE_LANE",
    "SLOTSERVE_SHIM",
}


def names_read() -> set[str]:
    """Every variable that a line of ours reads; dj_database_url reads DATABASE_URL for us."""
    texts = [f.read_text() for source in SOURCES for f in (ROOT / source).rglob("*.py")]
    found = {name for text in texts for name in READ.findall(text) if OURS.fullmatch(name)}
    return (found | {"DATABASE_URL"}) - INTERNAL


def names_listed() -> set[str]:
    """Every variable that the page names in a table's first column."""
    page = ROOT / "docs" / "settings.md"
    rows = re.findall(r"^\|([^|]*)\|", page.read_text(), flags=re.MULTILINE)
    return {name for row in rows for name in OURS.findall(row)}


def test_the_readers_are_found() -> None:
    assert {"SLOTSERVE_DATA", "SLOTSERVE_TABLE_KEYS", "REDIS_URL", "SLOTSERVE_VENV"} <= names_read()
    assert len(names_read()) > 30


@pytest.mark.parametrize("name", sorted(names_read()))
def test_every_setting_has_a_line(name: str) -> None:
    assert name in names_listed(), f"{name} needs a line in docs/settings.md"


def test_no_line_is_about_a_setting_that_is_gone() -> None:
    assert names_listed() - names_read() == set()
