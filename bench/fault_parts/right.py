"""Whether a lane is as it should be: asked of the planner, the processes and the gateway.

Imported once Django is set up on the installation's database.
"""

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

import httpx
from django.db import Error, connection

from bench.fault_parts.installation import Installation
from bookings.facts import situations
from bookings.models import Booking
from bookings.planner import decide
from bookings.situation import Target
from lanes.backoff import retry_wait
from lanes.models import Lane, PresetFailure, Runtime
from lanes.processes import Stat

ANSWER_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Look:
    """One look at a lane."""

    wrong: str  # empty: it is as it should be
    aim: tuple[int | None, str] | None = None  # revision wanted, owner served; None: unknown
    rest: float = 0.0  # how long the target may rest, because its server was a victim


@dataclass(frozen=True, slots=True)
class Watcher:
    """Looks at an installation from outside."""

    site: Installation
    keys: dict[str, str]  # tokens by member

    def now(self) -> datetime:
        """By the product's clock."""
        return datetime.fromtimestamp(self.site.clock.at(_our_time()), UTC)

    def look(self, lane: Lane) -> Look:
        """What is not yet as it should be, what should be, and how long that may take."""
        try:
            now = self.now()
            target = decide(situations([lane], now)[lane.pk], now).target
            slot = Booking.objects.filter(lane=lane, start__lte=now, end__gt=now).first()
            owner = slot.owner.username if slot else ""
            wrong = self._wrong(lane, target, owner) or self._wrong_pages()
            aim = (target.revision_id if target else None, owner)
            return Look(wrong, aim, _rest(lane, target))
        except Error as error:
            connection.close()
            return Look(f"the database: {error}")

    def _wrong(self, lane: Lane, target: Target | None, owner: str) -> str:
        runtime = Runtime.objects.filter(lane=lane, ended_at=None).select_related("revision")
        alive = runtime.first()
        servers = self.site.model_servers(lane)
        if target is None:
            return _wrong_with_nothing(alive, servers)
        return _wrong_with(target, alive, servers) or self._wrong_answer(lane, owner)

    def _wrong_pages(self) -> str:
        """Whether the pages and the gateway answer."""
        for url in (
            f"{self.site.web_url}/accounts/login/",
            f"{self.site.gateway_url}/ready",
        ):
            try:
                answer = httpx.get(url, trust_env=False, timeout=ANSWER_SECONDS)
            except httpx.HTTPError as error:
                return f"{url}: {error}"
            if answer.status_code != httpx.codes.OK:
                return f"{url} answers {answer.status_code}: {answer.text[:300]}"
        return ""

    def _wrong_answer(self, lane: Lane, owner: str) -> str:
        """Whether who may call is answered: the owner of the slot in progress, else anybody."""
        user = owner or next(iter(self.keys))
        wish = {"model": "auto", "user": user, "id": uuid.uuid4().hex, "tokens": 1, "pace": 0.01}
        try:
            answer = httpx.post(
                f"{self.site.gateway_url}/lanes/{lane.slug}/v1/chat/completions",
                json={**wish, "messages": []},
                headers={"Authorization": f"Bearer {self.keys[user]}"},
                trust_env=False,
                timeout=ANSWER_SECONDS,
            )
        except httpx.HTTPError as error:
            return f"{user} gets no answer: {error!r}"
        is_served = answer.status_code == httpx.codes.OK
        return "" if is_served else f"{user} gets {answer.status_code} {answer.text[:200]}"


def _rest(lane: Lane, target: Target | None) -> float:
    revision = target.revision_id if target else None
    rows = PresetFailure.objects.filter(lane=lane, revision=revision, count__gt=0)
    return max((retry_wait(row.count) for row in rows), default=0.0)


def _wrong_with_nothing(alive: Runtime | None, servers: list[Stat]) -> str:
    if alive is not None:
        return f"nothing is wanted, and {alive.revision} is {alive.phase}"
    return f"nothing is wanted, and {_pids(servers)} run" if servers else ""


def _wrong_with(target: Target, alive: Runtime | None, servers: list[Stat]) -> str:
    if alive is None or alive.phase != "ready" or alive.revision_id != target.revision_id:
        found = f"{alive.revision} is {alive.phase}" if alive else "there is no server"
        return f"{target.preset} is wanted, and {found}"
    if [server.pid for server in servers] != [alive.pid]:
        return f"{alive.pid} is reported, and {_pids(servers)} run"
    return ""


def _pids(servers: list[Stat]) -> str:
    return " and ".join(f"process {server.pid}" for server in servers) or "no process"


def _our_time() -> float:
    return datetime.now(UTC).timestamp()
