"""Members who ask all the time, each in their own way, and note what they were told."""

import asyncio
import contextlib
import json
import random
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp

_PAD = 2**20
_WAYS = {
    "short": 40,
    "stream": 25,
    "long stream": 6,
    "large body": 5,
    "waits": 12,
    "leaves": 8,
    "bad key": 2,
    "unknown model": 2,
}


@dataclass(slots=True)
class Asked:
    """One request and what came of it. Times are seconds since 1970."""

    id: str
    user: str
    way: str
    edge: int
    at: float
    end: float = 0.0
    status: int = 0  # 0: no answer
    code: str = ""  # of a refusal or of an error in the stream
    is_whole: bool = False
    trouble: str = ""
    model: str = ""  # that it named
    fallback: str = ""  # the preset that the answer says served in its place


@dataclass(slots=True)
class Members:
    """All of them. `edges` are the ports that answer now."""

    keys: dict[str, str]  # by user name
    lanes: list[str]
    models: list[str]
    edges: Callable[[], list[int]]
    at_once: int = 5  # for each member
    address: str = "127.0.0.1"  # of the edges
    asked: list[Asked] = field(default_factory=list)
    is_over: bool = False

    async def ask_until_over(self) -> None:
        """Everybody at once."""
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            users = [user for user in self.keys for _ in range(self.at_once)]
            askers = [self._ask_on(session, user) for user in users]
            await asyncio.gather(*askers)

    async def _ask_on(self, session: aiohttp.ClientSession, user: str) -> None:
        while not self.is_over:
            edges = self.edges()
            if edges:
                one = self._new(user, random.choice(edges))
                self.asked.append(one)
                await self._ask(session, one)
                one.end = time.time()
            await asyncio.sleep(random.uniform(0.0, 0.15))

    def _new(self, user: str, edge: int) -> Asked:
        way = random.choices(list(_WAYS), list(_WAYS.values()))[0]
        return Asked(uuid.uuid4().hex, user, way, edge, time.time())

    async def _ask(self, session: aiohttp.ClientSession, one: Asked) -> None:
        path = random.choice(["", *(f"/lanes/{lane}" for lane in self.lanes)])
        url = f"http://{self.address}:{one.edge}{path}/v1/chat/completions"
        wish = self._wish(one)
        one.model = wish["model"]
        headers = {"Authorization": f"Bearer {self.keys[one.user]}"}
        if one.way == "bad key":
            headers = {"Authorization": "Bearer ss_nobody"}
        if one.way == "waits":
            headers["Prefer"] = "wait=6"
        try:
            async with session.post(url, json=wish, headers=headers) as answer:
                one.status = answer.status
                one.fallback = answer.headers.get("X-SlotServe-Fallback", "")
                if one.way == "leaves" and answer.status == 200:
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(random.uniform(0.0, 0.4)):
                            await answer.read()
                    answer.close()
                    return
                self._read(one, await answer.read())
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            one.trouble = f"{type(error).__name__}: {error}"

    def _wish(self, one: Asked) -> dict[str, Any]:
        is_stream = one.way in ("stream", "long stream", "leaves") or random.random() < 0.2
        seconds = random.uniform(6, 12) if one.way == "long stream" else random.uniform(0.05, 1.5)
        model = "nobody" if one.way == "unknown model" else random.choice(["auto", *self.models])
        wish = {"model": model, "stream": is_stream, "user": one.user, "id": one.id}
        wish |= {"tokens": max(1, int(seconds / 0.05)), "pace": 0.05, "messages": []}
        if one.way == "large body":
            wish["padding"] = "x" * _PAD
        return wish

    def _read(self, one: Asked, body: bytes) -> None:
        """Whether the answer is whole, or which refusal it is."""
        if one.status == 200 and b'"error"' not in body:
            one.is_whole = body.endswith(b"data: [DONE]\n\n") or body.startswith(b"{")
            return
        start = body.rfind(b'{"error"')
        with contextlib.suppress(ValueError, KeyError, TypeError):
            one.code = json.loads(body[start:].strip())["error"]["code"]
