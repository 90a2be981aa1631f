"""What the stream of changes costs: `python -m bench.events [listeners]`.

Pages of fifty members listen at one web process of the made-up company with 50 lanes, over real
sockets, while a lane changes each second. The control is a bare ASGI server of the same uvicorn
that sends as many listeners a text of the same size. Prints shares of a core, memory, and how long
after the change its listeners hear of it. Fails where half of them hear more than 0.5 s later than
the control's, or where many who listen cost more than one and a half times of what one costs.
"""

import asyncio
import statistics
import sys
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx
import psutil

from bench.installation import WAIT_SECONDS
from bench.made_up_company import cookie_name, free_port, serving, start_web
from wire.edges import TABLE_CHANNEL

LISTENERS, MEMBERS, LANES = 200, 50, 50
QUIET_SECONDS, CHANGES = 10.0, 20
MOST_LATER, MOST_DEARER = 0.5, 1.5
TELLING = b'event: state\ndata: {"figures":{},"topics":{"lane:%s":"%012d"}}\n\n'


@dataclass(slots=True)
class Crowd:
    """Who listens, and when each of them heard the word that is waited for."""

    process: psutil.Process
    word: bytes = b""
    heard: list[float] = field(default_factory=list)
    readers: list[asyncio.Task[None]] = field(default_factory=list)
    all_heard: asyncio.Event = field(default_factory=asyncio.Event)

    async def join(self, address: str, session: str) -> None:
        """One more; it listens when the answer has begun."""
        place = urlsplit(address)
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        head = f"GET /events/ HTTP/1.1\r\nHost: {place.netloc}\r\nCookie: {cookie_name()}={session}"
        writer.write(f"{head}\r\n\r\n".encode())
        started = await reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in started.split(b"\r\n")[0], started
        self.readers.append(asyncio.create_task(self._listen(reader, writer)))

    async def _listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                if self.word and self.word in data:
                    self.heard.append(time.perf_counter())
                    if len(self.heard) == len(self.readers):
                        self.all_heard.set()
        finally:
            writer.close()

    async def share(self) -> float:
        """Of a core, while nothing changes."""
        before, began = self.core(), time.perf_counter()
        await asyncio.sleep(QUIET_SECONDS)
        return (self.core() - before) / (time.perf_counter() - began)

    async def delays(self, change: "Change") -> tuple[list[float], float]:
        """Seconds until each heard of each change, and the share of a core meanwhile."""
        found, before, began = [], self.core(), time.perf_counter()
        for number in range(CHANGES):
            self.heard, self.word = [], f'"lane:{change.lane(number)}"'.encode()
            self.all_heard.clear()
            at = time.perf_counter()
            await change.make(number)
            async with asyncio.timeout(WAIT_SECONDS):
                await self.all_heard.wait()
            found += [heard - at for heard in self.heard]
            await asyncio.sleep(max(0.0, at + 1 - time.perf_counter()))
        return found, (self.core() - before) / (time.perf_counter() - began)

    def core(self) -> float:
        """Seconds that the server has had of cores."""
        times = self.process.cpu_times()
        return float(times.user + times.system)

    @property
    def megabytes(self) -> float:
        """Resident."""
        return float(self.process.memory_info().rss) / 1e6

    def leave(self) -> None:
        """Listen no more."""
        for reader in self.readers:
            reader.cancel()


class Change:
    """Of a lane: something is noted, and the table published, as when it was planned."""

    def __init__(self, slugs: list[str]) -> None:
        self._slugs = slugs

    def lane(self, number: int) -> str:
        """The lane of this change."""
        return self._slugs[number % len(self._slugs)]

    async def make(self, number: int) -> None:
        """Commit it, in a thread, as readers go on."""
        await asyncio.to_thread(_note, self.lane(number))


class Post(Change):
    """The same told to the control."""

    def __init__(self, slugs: list[str], address: str) -> None:
        super().__init__(slugs)
        self._address = address

    async def make(self, number: int) -> None:
        """Post a text of the same size."""
        text = TELLING % (self.lane(number).encode(), number)
        async with httpx.AsyncClient() as client:
            await client.post(self._address, content=text)


def _note(slug: str) -> None:
    from django.db import connections  # noqa: PLC0415 - Django's settings are known only now

    from lanes import clock, ticks  # noqa: PLC0415
    from lanes.events import add_event  # noqa: PLC0415
    from lanes.models import Lane  # noqa: PLC0415

    add_event(Lane.objects.get(slug=slug), clock.database_now(), "bench", "a bench was here")
    ticks.valkey().publish(TABLE_CHANNEL, b"")
    connections.close_all()


def _sessions() -> list[str]:
    from django.contrib.auth.models import User  # noqa: PLC0415
    from django.test import Client  # noqa: PLC0415

    found = []
    for person in User.objects.filter(is_active=True)[:MEMBERS]:
        client = Client()
        client.force_login(person)
        found.append(client.cookies[cookie_name()].value)
    return found


async def _ours(address: str, pid: int, sessions: list[str], slugs: list[str], count: int) -> int:
    crowd = Crowd(psutil.Process(pid))
    await crowd.join(address, sessions[0])
    alone, small = await crowd.share(), crowd.megabytes
    for number in range(1, count):
        await crowd.join(address, sessions[number % len(sessions)])
    quiet, large = await crowd.share(), crowd.megabytes
    delays, busy = await crowd.delays(Change(slugs))
    crowd.leave()
    bare_delays, bare_busy = await _control(slugs, count)
    print("| | the web | control |\n|---|---|---|")
    print(f"| one listens, nothing changes | {alone:.1%} of a core | |")
    print(f"| {count} listen, nothing changes | {quiet:.1%} | |")
    print(f"| {count} listen, a change a second | {busy:.1%} | {bare_busy:.1%} |")
    print(f"| memory of a listener | {(large - small) * 1000 / (count - 1):.0f} KB | |")
    for name, part in (("median", 50), ("p95", 95)):
        ours, bare = (1000 * statistics.quantiles(each, n=100)[part - 1]
                      for each in (delays, bare_delays))  # fmt: skip
        print(f"| a change is heard, {name} | {ours:.0f} ms | {bare:.0f} ms |")
    later = statistics.median(delays) - statistics.median(bare_delays)
    return int(later > MOST_LATER or quiet > MOST_DEARER * alone)


async def _control(slugs: list[str], count: int) -> tuple[list[float], float]:
    port = free_port()
    process = start_web(port, application="bench.bare_events:application")
    address = f"http://127.0.0.1:{port}/"
    try:
        crowd = Crowd(psutil.Process(process.pid))
        async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(retries=8)) as client:
            await client.post(address, content=b"")
        for _ in range(count):
            await crowd.join(address, "none")
        found = await crowd.delays(Post(slugs, address))
        crowd.leave()
        return found
    finally:
        process.terminate()
        process.wait(WAIT_SECONDS)


def main(count: int) -> int:
    """Serve, listen, change, print."""
    with serving(lanes=LANES, members=MEMBERS, bookings=2_000, requests=3) as site:
        from lanes.models import Lane  # noqa: PLC0415

        slugs = list(Lane.objects.values_list("slug", flat=True))
        return asyncio.run(_ours(site.address, site.pid, _sessions(), slugs, count))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else LISTENERS))
