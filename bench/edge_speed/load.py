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


@dataclass(slots=True)
class Outcome:
    """What came of it. Times are in seconds."""

    completed: int = 0
    failed: int = 0
    events: int = 0
    elapsed: float = 0.0
    first_bytes: list[float] = field(default_factory=list)
    durations: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)  # between chunks of one stream
    failure: str = ""


class Client(asyncio.Protocol):
    """One connection that asks until it is told to stop."""

    def __init__(self, request: bytes, outcome: Outcome, may_ask: Callable[[], bool]) -> None:
        self.request = request
        self.outcome = outcome
        self.may_ask = may_ask
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.chunk_at: float | None = None
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
        elif self.chunk_at is not None:
            self.outcome.gaps.append(now - self.chunk_at)
        self.chunk_at = now
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


def request_of(plan: Plan) -> bytes:
    """The bytes of one request."""
    body = {"model": "qwen", "stream": plan.is_stream, "messages": _QUESTION}
    body["user"] = "x" * plan.body_bytes
    data = json.dumps(body).encode()
    head = f"POST {PATH} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {plan.key}\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
    return head.encode() + data


async def run(plan: Plan) -> Outcome:
    """Carry the plan out."""
    outcome = Outcome()
    started = time.perf_counter()
    left = plan.requests

    def may_ask() -> bool:
        nonlocal left
        left -= 1
        return left >= 0 if plan.requests else time.perf_counter() - started < plan.seconds

    request = request_of(plan)
    clients = []
    for _ in range(plan.connections):
        clients.append(await _connect(plan, request, outcome, may_ask))
        if plan.is_stream:
            await asyncio.sleep(0.01)  # a burst of beginnings is not what is measured
    await asyncio.gather(*(client.done for client in clients))
    outcome.elapsed = time.perf_counter() - started
    return outcome


async def _connect(
    plan: Plan, request: bytes, outcome: Outcome, may_ask: Callable[[], bool]
) -> Client:
    loop = asyncio.get_running_loop()
    _, client = await loop.create_connection(
        lambda: Client(request, outcome, may_ask), "127.0.0.1", plan.port
    )
    return client


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
