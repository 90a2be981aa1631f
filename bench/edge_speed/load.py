"""The load generator: raw sockets, so that it costs little of what it measures.

`python -m bench.edge_speed.load` with one JSON request on its standard input; JSON on its output.
"""

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import cast

import uvloop

PATH = "/v1/chat/completions"
_QUESTION = [{"role": "user", "content": "Say hello to everybody in this room, please."}]


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do: `connections` that each ask again and again, for `seconds` or `requests`."""

    port: int
    key: str
    connections: int = 16
    seconds: float = 5.0
    requests: int = 0  # 0: as many as fit
    is_stream: bool = False
    body_bytes: int = 0  # of padding, as a picture in a prompt would be
    listeners: int = 0  # streams that run beside, whose stalls are measured


@dataclass(slots=True)
class Outcome:
    """What came of it. Times are in seconds."""

    completed: int = 0
    failed: int = 0
    events: int = 0
    elapsed: float = 0.0
    first_bytes: list[float] = field(default_factory=list)
    durations: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)  # between chunks of the listeners
    failure: str = ""


class Client(asyncio.Protocol):
    """One connection that asks until it is told to stop."""

    def __init__(self, request: bytes, outcome: Outcome, may_ask: Callable[[], bool]) -> None:
        self.request = request
        self.outcome = outcome
        self.may_ask = may_ask
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.chunk_times: list[float] | None = None
        self.is_first = True
        self.asked_at: float | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask at once."""
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is none by its class
        self._ask()

    def connection_lost(self, exc: Exception | None) -> None:
        """The other side has closed, or we have."""
        if not self.done.done():
            if self.asked_at is not None:
                self._fail(f"connection lost: {exc}")
            self.done.set_result(None)

    def data_received(self, data: bytes) -> None:
        """Part of an answer."""
        now = time.perf_counter()
        if self.asked_at is None:
            return
        if self.is_first:
            self.is_first = False
            self.outcome.first_bytes.append(now - self.asked_at)
            self._read_head(data)
        if self.chunk_times is not None:
            self.chunk_times.append(now)
        self.outcome.events += data.count(b"data: ")
        self.length -= len(data)
        if self.length == 0 or (self.is_chunked and data.endswith(b"0\r\n\r\n")):
            self._completed(now)

    def _read_head(self, data: bytes) -> None:
        head, _, body = data.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            self._fail(data[:600].decode("latin-1"))
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        self.is_chunked = not length
        self.length = int(length) + len(data) - len(body) if length else -1

    def _completed(self, now: float) -> None:
        assert self.asked_at is not None
        self.outcome.completed += 1
        self.outcome.durations.append(now - self.asked_at)
        self._ask()

    def _ask(self) -> None:
        self.asked_at = None
        if not self.may_ask():
            self.transport.close()
            return
        self.is_first, self.length, self.is_chunked = True, -1, False
        self.asked_at = time.perf_counter()
        self.transport.write(self.request)

    def _fail(self, words: str) -> None:
        self.outcome.failed += 1
        self.outcome.failure = self.outcome.failure or words


def request_of(plan: Plan, *, is_stream: bool, padding: int = 0) -> bytes:
    """The bytes of one request."""
    body = {"model": "qwen", "stream": is_stream, "messages": _QUESTION, "user": "x" * padding}
    data = json.dumps(body).encode()
    head = f"POST {PATH} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {plan.key}\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
    return head.encode() + data


async def run(plan: Plan) -> Outcome:
    """Carry the plan out."""
    outcome, beside = Outcome(), Outcome()
    started = time.perf_counter()
    left = plan.requests
    is_over = False

    def may_ask() -> bool:
        nonlocal left
        left -= 1
        return left >= 0 if plan.requests else time.perf_counter() - started < plan.seconds

    listeners = [
        await _connect(plan, request_of(plan, is_stream=True), beside, lambda: not is_over)
        for _ in range(plan.listeners)
    ]
    for listener in listeners:
        listener.chunk_times = []
    if plan.listeners:
        await asyncio.sleep(0.3)
    request = request_of(plan, is_stream=plan.is_stream, padding=plan.body_bytes)
    clients = []
    for _ in range(plan.connections):
        clients.append(await _connect(plan, request, outcome, may_ask))
        if plan.is_stream:
            await asyncio.sleep(0.01)  # a burst of beginnings is not what is measured
    await asyncio.gather(*(client.done for client in clients))
    outcome.elapsed = time.perf_counter() - started
    is_over = True
    await asyncio.gather(*(listener.done for listener in listeners))
    outcome.gaps = [gap for one in listeners for gap in _gaps(one.chunk_times or [])]
    outcome.failed += beside.failed
    outcome.failure = outcome.failure or beside.failure
    return outcome


async def _connect(
    plan: Plan, request: bytes, outcome: Outcome, may_ask: Callable[[], bool]
) -> Client:
    loop = asyncio.get_running_loop()
    _, client = await loop.create_connection(
        lambda: Client(request, outcome, may_ask), "127.0.0.1", plan.port
    )
    return client


def _gaps(times: list[float]) -> list[float]:
    return [later - earlier for earlier, later in pairwise(times)]


def told(outcome: Outcome) -> dict[str, float | str]:
    """The outcome's figures."""
    gaps = sorted(outcome.gaps) or [0.0]
    return {
        "completed": outcome.completed,
        "failed": outcome.failed,
        "failure": outcome.failure,
        "per_second": outcome.completed / outcome.elapsed,
        "events_per_second": outcome.events / outcome.elapsed,
        "first_byte": statistics.median(outcome.first_bytes or [0.0]),
        "duration": statistics.median(outcome.durations or [0.0]),
        "longest_gap": gaps[-1],
        "gap_999": gaps[int(len(gaps) * 0.999)],
    }


if __name__ == "__main__":
    print(json.dumps(told(uvloop.run(run(Plan(**json.load(sys.stdin)))))))
