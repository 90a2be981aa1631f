"""Pictures of every page with a made-up company, light and dark, wide and narrow: docs/pictures.

`python -m bench.pictures [NAME…]`: all pages, or those of these names. For maintainers: needs
Chromium, and Pillow, which makes the files small.
"""

import io
import sys
from collections.abc import Iterator
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from bench.made_up_company import Site, serving

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
WIDTHS = {"wide": 1400, "phone": 390}
SCHEMES = ("light", "dark")
TALLEST = 2400  # pixels of a page that are kept
ZONE = "Europe/Berlin"
# The page's name, its address, who looks, and what it is.
PAGES = (
    ("sign-in", "/accounts/login/", "", "Sign in"),
    ("overview", "/", "member", "Lanes"),
    ("calendar-day", "/calendar/?view=day", "member", "Calendar, a day"),
    ("calendar-week", "/calendar/?view=week", "member", "Calendar, a week"),
    ("calendar-month", "/calendar/?view=month", "member", "Calendar, a month"),
    ("calendar-list", "/calendar/?view=week&as=list", "member", "Calendar, as a list"),
    ("lane", "/lanes/atlas-0/", "administrator", "A lane, as an administrator sees it"),
    ("lane-history", "/lanes/atlas-0/history/", "member", "What happened on a lane"),
    ("book", "/book/?lane=atlas-0", "member", "Book a slot"),
    ("bookings", "/bookings/", "member", "My bookings"),
    ("booking", "/bookings/{booking}/", "member", "A booking"),
    ("booking-move", "/calendar/bookings/{booking}/move/", "member", "Move a booking"),
    ("waitlist", "/waitlist/", "member", "Waitlist"),
    ("approvals", "/administration/approvals/", "administrator", "Bookings that wait"),
    ("models", "/models/", "member", "Models"),
    ("preset", "/models/presets/qwen3-14b/", "member", "A preset"),
    ("preset-editor", "/administration/presets/qwen3-14b/", "administrator", "Edit a preset"),
    ("playground", "/playground/", "member", "Playground"),
    ("usage", "/usage/", "administrator", "Usage"),
    ("usage-members", "/usage/?by=member", "administrator", "Usage by member"),
    ("tokens", "/tokens/", "member", "API tokens"),
    ("notices", "/notices/", "administrator", "Notices"),
    ("preferences", "/preferences/", "member", "Preferences"),
    ("security", "/accounts/2fa/", "member", "Second factors and passkeys"),
    ("forgotten-password", "/accounts/password/reset/", "", "Forgotten password"),
    ("administration", "/administration/", "administrator", "Administration"),
    ("rules", "/administration/rules/", "administrator", "Rules of booking"),
    ("rules-edit", "/administration/rules/new/", "administrator", "Write rules"),
    ("members", "/administration/members/", "administrator", "Members"),
    ("groups", "/administration/groups/", "administrator", "Groups"),
    ("invitations", "/administration/invitations/", "administrator", "Invitations"),
    ("audit", "/administration/audit/", "administrator", "Audit trail"),
    ("maintenance", "/administration/maintenance/", "administrator", "Maintenance"),
    ("hosts", "/administration/hosts/", "administrator", "Hosts"),
    ("lane-edit", "/administration/lanes/atlas-0/", "administrator", "Edit a lane"),
    ("host-models", "/administration/models/", "administrator", "Models of hosts"),
    ("webhooks", "/administration/webhooks/", "administrator", "Webhooks and chat"),
    ("webhook", "/administration/webhooks/1/", "administrator", "What was delivered"),
    ("announcements", "/administration/announcements/", "administrator", "Announcements"),
    ("self-check", "/administration/self-check/", "administrator", "Self-check"),
    ("api", "/api/v1/docs/", "member", "The API's page"),
)


def main(names: list[str]) -> None:
    """Take them."""
    wanted = [page for page in PAGES if not names or page[0] in names]
    FOLDER.mkdir(exist_ok=True)
    with serving() as site, sync_playwright() as playwright:
        from tests import browser_pages  # noqa: PLC0415 - imports models

        browser = browser_pages.launch(playwright)
        for name, address, who, _ in wanted:
            path = address.format(booking=site.booking)
            for width, scheme in _looks():
                _save(_shot(browser, site, path, who, WIDTHS[width], scheme), name, width, scheme)
            print(name, flush=True)
        browser.close()
    _write_index()


def _looks() -> Iterator[tuple[str, str]]:
    yield from ((width, scheme) for width in WIDTHS for scheme in SCHEMES)


def _shot(browser: Browser, site: Site, path: str, who: str, width: int, scheme: str) -> bytes:
    context = browser.new_context(
        base_url=site.address,
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
        timezone_id=ZONE,
        reduced_motion="reduce",
    )
    cookies = {"zone": ZONE, **({site.cookie: site.sessions[who]} if who else {})}
    for name, value in cookies.items():
        context.add_cookies([{"name": name, "value": value, "url": site.address}])
    page = context.new_page()
    answer = page.goto(path)
    if answer is None or not answer.ok:
        raise SystemExit(f"{path} is not there")
    _settle(page)
    picture = page.screenshot(full_page=True)
    context.close()
    return picture


def _settle(page: Page) -> None:
    """Until what the page fetches by itself is there; its stream stays open."""
    page.wait_for_load_state("load")
    page.wait_for_timeout(700)


def _save(picture: bytes, name: str, width: str, scheme: str) -> None:
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image = image.crop((0, 0, image.width, min(image.height, TALLEST)))
    image.save(FOLDER / f"{name}-{width}-{scheme}.webp", quality=82, method=6)


def _write_index() -> None:
    lines = ["# Pictures of every page", "", "Made by `python -m bench.pictures`; do not edit.", ""]
    for name, _, _, title in PAGES:
        lines += [f"## {title}", ""]
        for width, scheme in _looks():
            lines.append(f"![{title}, {width}, {scheme}]({name}-{width}-{scheme}.webp)")
        lines.append("")
    (FOLDER / "README.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main(sys.argv[1:])
