"""How the calendar bears 5,000 bookings in sight, against 500, in a real Chromium.

    .venv/bin/python -m bench.timeline [--lanes 50] [--few 500] [--many 5000] [--runs 3]

SQLite in a temporary folder, one web process, one browser. For a member, of whom a tenth of the
bookings are, and each view: the feed's time (a month has none: its page's), the time until the
bookings are drawn, how many elements draw them, and what scrolling through all lanes costs the
processor in the page's thread: its longest task, and all of them. Times of the processor, as a
busy machine makes all others longer. Fails when drawing many takes more than three times as long as
drawing few, or a task of scrolling takes more than 100 ms.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

folder = tempfile.TemporaryDirectory(prefix="ss-bench-")
os.environ["SLOTSERVE_DATA"] = folder.name
os.environ["SLOTSERVE_TABLE_KEYS"] = "bench-" + "k" * 40
os.environ["SLOTSERVE_LOG_LEVEL"] = "CRITICAL"
os.environ["REDIS_URL"] = f"unix://{folder.name}/nobody.sock?db=0"
os.environ["DATABASE_URL"] = f"sqlite:///{folder.name}/bench.sqlite3"
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # Playwright keeps a loop in this thread

import django  # noqa: E402

django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.contrib.staticfiles.handlers import StaticFilesHandler  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.test.testcases import LiveServerThread  # noqa: E402
from playwright.sync_api import Browser, Page, sync_playwright  # noqa: E402

from bookings.models import Booking  # noqa: E402
from lanes import clock  # noqa: E402
from lanes.models import Host, Lane, ModelFile, Preset, PresetRevision  # noqa: E402
from tests import browser_pages as pages  # noqa: E402

MOST_RATIO = 3.0
LENGTHS = {"day": 1, "week": 7, "month": 28}  # days
SEEN = "[data-booking], #calendar-month td a"
LONGEST_MS = 100.0
TRACED = ["toplevel", "disabled-by-default-devtools.timeline"]
DRAWN = """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(
  () => done([performance.now(),
    document.querySelectorAll("[data-booking], #calendar-month path").length]))))"""
SCROLL = """async () => {
  const main = document.querySelector("#timeline:not([hidden]), #calendar-month");
  for (let frame = 0; frame < 60; frame++) {
    main.scrollTop = (main.scrollHeight * frame) / 60;
    await new Promise(requestAnimationFrame);
  }
  await new Promise((done) => setTimeout(done, 500));
}"""


def main() -> int:
    """Measure few, then many; 1 when many take too long."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("lanes", 50), ("few", 500), ("many", 5000), ("runs", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    wanted = parser.parse_args()
    call_command("migrate", verbosity=0)
    owner, member = _people()
    lanes, preset = _lanes(wanted.lanes)
    server = LiveServerThread("127.0.0.1", StaticFilesHandler)
    server.daemon = True
    server.start()
    server.is_ready.wait()
    try:
        address = f"http://127.0.0.1:{server.port}"
        found = {}
        for count in (wanted.few, wanted.many):
            _book(lanes, preset, (owner, member), count)
            found[count] = _measure(address, member, wanted.runs)
        return _tell(found, wanted)
    finally:
        server.terminate()


def _people() -> tuple[User, User]:
    return User.objects.create(username="owner"), User.objects.create(username="member")


def _lanes(count: int) -> tuple[list[Lane], Preset]:
    hosts = [Host.objects.create(key=f"host-{n}", name=f"Host {n}") for n in range(5)]
    file = ModelFile.objects.create(host=hosts[0], path="/m.gguf", name="m", size_bytes=4 * 10**9)
    preset = Preset.objects.create(slug="large", name="Large")
    preset.current = PresetRevision.objects.create(preset=preset, number=1, model_file=file)
    preset.save()
    lanes = Lane.objects.bulk_create(
        Lane(slug=f"lane-{n}", name=f"Lane {n}", host=hosts[n % 5]) for n in range(count)
    )
    return lanes, preset


def _book(lanes: list[Lane], preset: Preset, people: tuple[User, User], count: int) -> None:
    """So many on a day, in a week and in a month, so that each view has the number."""
    Booking.objects.all().delete()
    rows = []
    for view, start in _starts().items():
        days = LENGTHS[view]
        share = count // len(lanes)
        step = timedelta(days=days) / share
        for lane in lanes:
            for number in range(share):
                owner = people[(number + lane.pk) % 10 == 0]
                begins = start + number * step
                rows.append(_row(lane, preset, owner, begins, begins + step * 0.8))
    Booking.objects.bulk_create(rows, batch_size=500)


def _row(lane: Lane, preset: Preset, owner: User, start: datetime, end: datetime) -> Booking:
    made = start - timedelta(days=1)
    return Booking(
        lane=lane,
        owner=owner,
        preset=preset,
        start=start,
        end=end,
        original_end=end,
        created_at=made,
        confirmed_at=made,
    )


def _starts() -> dict[str, datetime]:
    """Today, Monday in a week, and the first of a month after that."""
    now = clock.database_now().astimezone(ZoneInfo(pages.ZONE))
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    monday = midnight + timedelta(days=14 - now.weekday())
    month = (midnight.replace(day=1) + timedelta(days=64)).replace(day=1)
    return {"day": midnight, "week": monday, "month": month}


def _measure(address: str, member: User, runs: int) -> dict[str, dict[str, float]]:
    """Medians of each view."""
    found: dict[str, dict[str, float]] = {}
    with sync_playwright() as playwright:
        browser = pages.launch(playwright)
        page = pages.Windows(browser, address).open(member)
        for view, start in _starts().items():
            date = f"{start:%Y-%m-%d}"
            each = [_once(browser, page, view, date) for _ in range(runs)]
            found[view] = {name: statistics.median(one[name] for one in each) for name in each[0]}
        browser.close()
    return found


def _once(browser: Browser, page: Page, view: str, date: str) -> dict[str, float]:
    query = f"view={view}&date={date}"
    began = time.perf_counter()
    address = "/calendar/" if view == "month" else "/calendar/events/"
    size = len(page.request.get(f"{address}?{query}").body())
    feed = (time.perf_counter() - began) * 1000
    page.goto(f"/calendar/?{query}&as=picture")
    page.wait_for_selector(SEEN, timeout=60_000)
    drawn, count = page.evaluate(DRAWN)
    tasks = _scrolled(browser, page)
    print(f"{view}: {drawn:.0f} ms", file=sys.stderr, flush=True)
    return {
        "feed": feed,
        "KiB": size / 1024,
        "drawn": drawn,
        "count": count,
        "longest": max(tasks),
        "all": sum(tasks),
    }


def _scrolled(browser: Browser, page: Page) -> list[float]:
    """Milliseconds of the processor that each task of the page's thread took while it scrolled."""
    browser.start_tracing(page=page, categories=TRACED)
    page.evaluate(SCROLL)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    threads = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    return [
        event.get("tdur", 0) / 1000
        for event in events
        if event["name"] == "RunTask" and (event["pid"], event["tid"]) in threads
    ]


def _tell(found: dict[int, dict[str, dict[str, float]]], wanted: argparse.Namespace) -> int:
    worst = 0.0
    print("| view | bookings | feed | size | until drawn | drawn | longest task | all tasks |")
    print("|---|---|---|---|---|---|---|---|")
    for view in LENGTHS:
        for count, views in found.items():
            said = views[view]
            print(
                f"| {view} | {count} | {said['feed']:.0f} ms | {said['KiB']:.0f} KiB "
                f"| {said['drawn']:.0f} ms | {said['count']:.0f} | {said['longest']:.0f} ms "
                f"| {said['all']:.0f} ms |"
            )
        ratio = found[wanted.many][view]["drawn"] / found[wanted.few][view]["drawn"]
        worst = max(worst, ratio)
        print(f"| {view} | ratio | | | {ratio:.1f} | | | |")
    longest = max(said["longest"] for said in found[wanted.many].values())
    return 1 if worst > MOST_RATIO or longest > LONGEST_MS else 0


if __name__ == "__main__":
    sys.exit(main())
