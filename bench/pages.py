"""How long the pages take the server: `python -m bench.pages [rounds]`.

Seeds a database of its own with 50 lanes, 200 members and 20,000 bookings, asks each page in this
process, without a network, and prints p50, p95, queries, and the ratio to a control page of the
same run that asks the database for next to nothing. Add a page to PAGES.
"""

import os
import statistics
import sys
import tempfile
import time
from datetime import timedelta
from itertools import count

import django

if __name__ == "__main__":
    os.environ["SLOTSERVE_DATA"] = tempfile.mkdtemp(prefix="ss-bench-")
    os.makedirs(os.environ["SLOTSERVE_DATA"] + "/static")
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    django.setup()

from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from bookings.models import Booking
from lanes import clock
from lanes.models import GpuState, Lane, Phase
from tests import browser_pages as pages
from tests import builders

LANES, MEMBERS, BOOKINGS = 50, 200, 20_000
AHEAD = BOOKINGS // LANES // 10  # slots of each lane that are still to come
HOUR = timedelta(hours=1)
CONTROL = "/accounts/password/change/"
PAGES = (
    CONTROL,
    "/",
    "/lanes/lane-0/",
    "/book/",
    "/bookings/",
    "/calendar/",
    "/models/",
    "/tokens/",
)


def seed() -> User:
    """Fill the database; a member who has bookings."""
    members = [builders.person(f"member-{number}") for number in range(MEMBERS)]
    preset = builders.preset("qwen")
    now = clock.database_now()
    numbers = count()
    for index in range(LANES):
        lane = builders.lane(f"lane-{index}", default_preset=preset)
        card = builders.gpu(memory_bytes=24 * 2**30)
        lane.gpus.add(card)
        GpuState.objects.create(gpu=card, read_at=now, used_bytes=2**33, utilisation=40)
        pages.order(lane, preset, "running qwen as the lane's default")
        pages.runtime(lane, preset, Phase.READY)
        Booking.objects.bulk_create(
            Booking(
                lane=lane,
                owner=members[next(numbers) % MEMBERS],
                preset=preset,
                start=now + (slot + 1) * HOUR,
                end=now + (slot + 2) * HOUR,
                original_end=now + (slot + 2) * HOUR,
                created_at=now,
                confirmed_at=now,
            )
            for slot in range(AHEAD - BOOKINGS // LANES, AHEAD)
        )
    return members[0]


def measure(client: Client, page: str, rounds: int) -> tuple[list[float], int, int]:
    """Milliseconds of each answer, its queries and its bytes."""
    with CaptureQueriesContext(connection) as asked:
        answer = client.get(page, follow=True)
    queries = len(asked)  # the next request forgets them
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        client.get(page, follow=True)
        times.append((time.perf_counter() - began) * 1000)
    assert answer.status_code == 200, (page, answer.status_code)
    return times, queries, len(answer.content)


def main(rounds: int) -> None:
    """Seed, ask, print."""
    call_command("migrate", interactive=False, verbosity=0)
    client = Client(HTTP_HOST="localhost")
    member = seed()
    client.force_login(member)
    print(f"{Lane.objects.count()} lanes, {MEMBERS} members, {Booking.objects.count()} bookings")
    print("| page | p50 ms | p95 ms | to control | queries | KB |\n|---|---|---|---|---|---|")
    control = 0.0
    own = Booking.objects.filter(owner=member).latest("start")
    for page in (*PAGES, f"/bookings/{own.pk}/"):
        times, queries, size = measure(client, page, rounds)
        middle = statistics.median(times)
        control = control or middle
        high = statistics.quantiles(times, n=20)[-1]
        row = (
            page,
            f"{middle:.1f}",
            f"{high:.1f}",
            f"{middle / control:.1f}",
            queries,
            size // 1000,
        )
        print("| " + " | ".join(str(each) for each in row) + " |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
