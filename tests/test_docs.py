"""The pages: links lead somewhere, and what the gateway answers is written down."""

import re
from pathlib import Path

import pytest

from gateway.edge.answer_headers import NAMES
from gateway.edge.refusals import STATUSES
from slotserve.stack.parts import ROOT

PAGES = sorted((*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")))
_CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """The headings of a page, as links name them."""
    headings = re.findall(r"^#+ (.*)", _CODE.sub("", page.read_text()), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_to_a_file_or_heading_of_ours_leads_there(page: Path) -> None:
    links = _LINK.findall(_CODE.sub("", page.read_text()))
    for link in (each for each in links if "://" not in each):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_pages_and_links_are_found() -> None:
    assert ROOT / "docs" / "api.md" in PAGES
    assert "the-gateway" in anchors(ROOT / "docs" / "api.md")


@pytest.mark.parametrize("code", sorted(STATUSES))
def test_every_error_is_in_the_api_s_page_with_its_status(code: str) -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    assert re.search(rf"\b{STATUSES[code]}\b[^\n]*`{code}`", page)


@pytest.mark.parametrize("name", [each.decode() for each in NAMES])
def test_every_header_of_ours_is_in_the_api_s_page(name: str) -> None:
    page = (ROOT / "docs" / "api.md").read_text().lower()
    assert f"`{name}`" in page
