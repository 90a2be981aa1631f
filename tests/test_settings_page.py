"""docs/settings.md lists every environment variable that the product reads, and no other."""

import ast
import re
from collections.abc import Iterator

import pytest

from lanes.checks import check_names
from slotserve.stack.parts import ROOT
from wire.setting_names import NAMES, PREFIX, misspelt

SOURCES = ("slotserve", "bookings", "notices", "lanes", "gateway", "wire", "bin", "bench", "tests")
READ = re.compile(
    r"""(?:read_(?:text|address|time_zone|secret|number|whole|flag|choice|list|networks|path)|environ(?:\.get|\.pop)?)\s*[(\[]\s*"([A-Z_]+)\""""
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


def defaults_read() -> Iterator[tuple[str, float]]:
    """Each variable that is read as a number where nothing else is its default, with that."""
    for source in SOURCES:
        for file in (ROOT / source).rglob("*.py"):
            for call in ast.walk(ast.parse(file.read_text())):
                if isinstance(call, ast.Call) and _name(call.func) in ("read_number", "read_whole"):
                    name, default = (_value(each) for each in call.args[:2])
                    if isinstance(name, str) and isinstance(default, int | float):
                        yield name, default


def _name(function: ast.expr) -> str:
    return function.id if isinstance(function, ast.Name) else ""


def _value(node: ast.expr) -> object:
    """Of a constant, or of a product or power of such; None for what is computed."""
    if isinstance(node, ast.Constant):
        return node.value
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _value(node.left), _value(node.right)
    if not isinstance(left, int) or not isinstance(right, int):
        return None
    return left**right if isinstance(node.op, ast.Pow) else left * right


def defaults_listed() -> dict[str, str]:
    """The second column of the page's tables."""
    page = (ROOT / "docs" / "settings.md").read_text()
    return dict(re.findall(r"^\| `([A-Z_]+)` \| ([^|]*) \|", page, flags=re.MULTILINE))


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


def test_the_names_by_which_a_misspelt_one_is_known_are_those_that_are_read() -> None:
    read = {name for name in names_read() | INTERNAL if name.startswith(PREFIX)}
    assert {PREFIX + name for name in NAMES} == read


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("SLOTSERVE_TIMEZONE", "SLOTSERVE_TIME_ZONE"),
        ("SLOTSERVE_MAIL_HOTS", "SLOTSERVE_MAIL_HOST"),
        ("SLOTSERVE_WEB_URL_FIL", "SLOTSERVE_WEB_URL"),
    ],
)
def test_a_misspelt_one_is_told_with_the_nearest(name: str, nearest: str) -> None:
    (words,) = misspelt([name, "SLOTSERVE_WEB_URL", "SLOTSERVE_SECRET_KEY_FILE", "HOME"])
    assert words == f"{name} is no setting, and nothing reads it: the nearest is {nearest}."


def test_bin_up_and_the_self_check_warn_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both make the system checks."""
    assert check_names(None) == []
    monkeypatch.setenv("SLOTSERVE_TIMEZONE", "Europe/Berlin")
    assert [complaint.id for complaint in check_names(None)] == ["slotserve.W016"]


def test_no_line_is_about_a_setting_that_is_gone() -> None:
    assert names_listed() - names_read() == set()


def test_numbers_that_are_defaults_are_found() -> None:
    found = dict(defaults_read())
    assert len(found) > 20
    assert found["SLOTSERVE_MAX_BODY_BYTES"] == 64 * 2**20


@pytest.mark.parametrize(("name", "default"), sorted(set(defaults_read())))
def test_a_number_s_default_is_the_one_of_the_page(name: str, default: float) -> None:
    told = re.match(r"[0-9.]+", defaults_listed()[name])
    assert told is not None
    assert float(told[0]) == default
