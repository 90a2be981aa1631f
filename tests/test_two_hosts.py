"""Two machines, and a link that is cut and healed while a model loads, serves and drains.

Nobody is served wrongly, nothing is orphaned, nothing starts twice, and nothing is guessed.
"""

import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from bench import netns
from bench.two_hosts import SILENT, TwoHosts, two_hosts
from tests.far_servers import model_servers, starts, wrapper

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(bool(netns.why_not()), reason=netns.why_not() or "they can be used"),
]
LANES = {"a": "near", "b": "far"}
DRAIN = 4.0
SETTINGS = {"SLOTSERVE_DRAIN_SECONDS": str(DRAIN), "SLOTSERVE_STOP_TIMEOUT_SECONDS": "3"}
PRESETS = ("qwen", "smol", "slow-coder")


@pytest.fixture(scope="module")
def hosts() -> Iterator[TwoHosts]:
    """Both machines with a lane and three presets each, which people may call."""
    with tempfile.TemporaryDirectory(prefix="ssn-") as folder:
        Path(folder).chmod(0o755)  # PostgreSQL is another user
        with two_hosts(Path(folder), wrapper(Path(folder)), SETTINGS) as running:
            assert "database and Valkey answer" in running.join_b()
            running.start_worker_b()
            for key, slug in LANES.items():
                _furnish(running, key, slug)
            for name in ("owner", "stranger"):
                said = ("--create-user", "--scope", "inference", "--scope", "bookings")
                running.tokens[name] = running.manage("create_token", name, *said)
            running.until(lambda: running.is_phase("far", "stopped"))
            yield running


@pytest.fixture(autouse=True)
def _whole(hosts: TwoHosts) -> Iterator[None]:
    """Each test begins and ends with a whole network, and no server that nobody knows of."""
    yield
    hosts.b.heal()
    hosts.until(lambda: not hosts.is_unreachable("far"))
    for booking in hosts.rest("GET", "bookings/").json()["results"]:
        hosts.rest("POST", f"bookings/{booking['id']}/release/")
    for slug in LANES.values():
        hosts.until(partial(hosts.is_phase, slug, "stopped"))
    hosts.until(lambda: not model_servers(hosts))
    for slug in LANES.values():
        assert "DOUBLE" not in starts(hosts, slug)


def _furnish(hosts: TwoHosts, key: str, slug: str) -> None:
    file = hosts.folder / f"{key}.gguf"
    file.write_bytes(b"GGUF")
    said = {"host": key, "path": str(file), "name": f"file of {key}"}
    model = hosts.rest("POST", "models/", said).json()
    for name in PRESETS:
        preset = name if key == "b" else f"{name}-{key}"
        made = hosts.rest("POST", "presets/", {"slug": preset, "model_id": model["id"]})
        assert made.status_code == 201, made.text
    made = hosts.rest("POST", "lanes/", {"slug": slug, "host": key})
    assert made.status_code == 201, made.text


def book(hosts: TwoHosts, slug: str, preset: str, minutes: float = 30) -> dict[str, Any]:
    """A booking of the owner's from now on."""
    end = datetime.now(UTC) + timedelta(minutes=minutes)
    said = {"lane": slug, "end": end.isoformat(), "kind": "model", "preset": preset}
    answer = hosts.rest("POST", "bookings/", said, who="owner")
    assert answer.status_code == 201, answer.text
    booking: dict[str, Any] = answer.json()
    return booking


@dataclass
class Answers:
    """What callers of a lane were told: status, code or model, Retry-After, and when."""

    said: list[tuple[float, int, str, str | None]] = field(default_factory=list)

    def since(self, moment: float) -> list[tuple[int, str]]:
        """Status and code or model of each answer to what was asked after this moment."""
        return [(status, word) for at, status, word, _ in list(self.said) if at > moment]

    @property
    def served(self) -> set[str]:
        """The models that answered."""
        return {word for _, status, word, _ in self.said if status == 200}


@contextmanager
def calling(hosts: TwoHosts, slug: str, who: str) -> Iterator[Answers]:
    """Somebody on `a` who asks the gateway again and again."""
    answers, ended = Answers(), threading.Event()

    def ask() -> None:
        url = f"http://{hosts.a.address}:8001/lanes/{slug}/v1/chat/completions"
        headers = {"Authorization": f"Bearer {hosts.tokens[who]}"}
        with httpx.Client(headers=headers, timeout=60) as client:
            while not ended.is_set():
                at = time.monotonic()
                answer = client.post(url, json={"messages": []})
                body = answer.json()
                word = body["alias"] if answer.status_code == 200 else body["error"]["code"]
                wait = answer.headers.get("retry-after")
                answers.said.append((at, answer.status_code, word, wait))
                ended.wait(0.1)

    with hosts.a.threads() as pool:
        running = pool.submit(ask)
        try:
            yield answers
        finally:
            ended.set()
            running.result()


def is_told(hosts: TwoHosts, answers: Answers, status: int, word: str) -> None:
    """Wait until somebody hears this."""
    since = time.monotonic()
    hosts.until(lambda: (status, word) in answers.since(since))


def test_a_link_cut_while_a_model_serves_costs_no_server_and_serves_nobody_wrongly(
    hosts: TwoHosts,
) -> None:
    book(hosts, "far", "qwen")
    hosts.until(lambda: hosts.is_phase("far", "ready", "qwen"))
    (pid,) = model_servers(hosts)
    with calling(hosts, "far", "owner") as owner, calling(hosts, "far", "stranger") as stranger:
        is_told(hosts, owner, 200, "qwen")
        known_at = time.monotonic()  # by the gateway's table, too
        hosts.b.cut()
        is_told(hosts, owner, 503, "host_unreachable")
        hosts.until(lambda: hosts.is_unreachable("far"))
        assert hosts.is_phase("far", "ready", "qwen")  # as it was said last
        assert not hosts.is_unreachable("near")
        hosts.b.heal()
        hosts.until(lambda: not hosts.is_unreachable("far"))
        is_told(hosts, owner, 200, "qwen")
    assert set(model_servers(hosts)) == {pid}
    assert stranger.served == set()
    assert owner.served == {"qwen"}
    told = {(status, word) for status, word in owner.since(known_at) if status != 200}
    assert told == {(503, "host_unreachable")}
    assert all(wait for _, status, _, wait in owner.said if status == 503)


def test_a_model_that_loads_behind_a_cut_link_is_found_loaded(hosts: TwoHosts) -> None:
    before = len(starts(hosts, "far"))
    book(hosts, "far", "slow-coder")
    with calling(hosts, "far", "owner") as owner, calling(hosts, "far", "stranger") as stranger:
        hosts.until(lambda: hosts.is_phase("far", "starting", "slow-coder"))
        hosts.until(lambda: "slow-coder" in model_servers(hosts).values())
        (pid,) = model_servers(hosts)
        hosts.b.cut()
        hosts.until(lambda: hosts.is_unreachable("far"))
        is_told(hosts, owner, 503, "host_unreachable")
        hosts.b.heal()
        is_told(hosts, owner, 200, "slow-coder")
    assert set(model_servers(hosts)) == {pid}
    assert starts(hosts, "far")[before:] == ["slow-coder"]
    assert (owner.served, stranger.served) == ({"slow-coder"}, set())


def test_a_drain_behind_a_cut_link_ends_as_it_was_ordered(hosts: TwoHosts) -> None:
    before = len(starts(hosts, "far"))
    booking = book(hosts, "far", "qwen")
    hosts.until(lambda: hosts.is_phase("far", "ready", "qwen"))
    with ExitStack() as running:
        owner = running.enter_context(calling(hosts, "far", "owner"))
        is_told(hosts, owner, 200, "qwen")  # the gateway's table says it, too
        stream = running.enter_context(streaming(hosts, "far"))
        hosts.until(lambda: bool(stream))
        said = hosts.rest("PATCH", f"bookings/{booking['id']}/", {"preset": "smol"})
        assert said.status_code == 200, said.text
        hosts.until(lambda: hosts.is_phase("far", "draining"))
        hosts.b.cut()
        cut_at = time.monotonic()
        hosts.until(lambda: hosts.is_unreachable("far"))
        is_told(hosts, owner, 503, "host_unreachable")
        hosts.until(lambda: time.monotonic() > cut_at + DRAIN + SILENT)
        assert set(model_servers(hosts).values()) == {"qwen"}  # nobody could read the order
        hosts.b.heal()
        is_told(hosts, owner, 200, "smol")
        after = owner.since(cut_at)
    assert (200, "qwen") not in after
    assert starts(hosts, "far")[before:] == ["qwen", "smol"]
    assert set(model_servers(hosts).values()) == {"smol"}


@contextmanager
def streaming(hosts: TwoHosts, slug: str) -> Iterator[list[str]]:
    """The owner's long stream: its lines so far."""
    lines: list[str] = []

    def read() -> None:
        url = f"http://{hosts.a.address}:8001/lanes/{slug}/v1/chat/completions"
        headers = {"Authorization": f"Bearer {hosts.tokens['owner']}"}
        said = {"messages": [], "stream": True, "pieces": 600}
        with httpx.stream("POST", url, json=said, headers=headers, timeout=60) as answer:
            assert answer.status_code == 200
            lines.extend(line for line in answer.iter_lines() if line)

    with hosts.a.threads() as pool:
        reading = pool.submit(read)
        yield lines
        reading.result()


# what a host may not do in Valkey, and in the database
COMMANDS = [
    "CONFIG GET *",
    "ACL LIST",
    "FLUSHALL",
    "KEYS *",
    "CLIENT LIST",
    "MONITOR",
]
QUERIES = [
    "select * from gateway_apitoken",
    "select password from auth_user",
    "select * from bookings_booking",
    "update auth_user set is_staff = true",
    "create table of_host ()",
    "drop table lanes_host",
]


def test_a_host_has_the_rights_of_the_docs_and_no_others(hosts: TwoHosts) -> None:
    book(hosts, "far", "qwen")
    hosts.until(lambda: hosts.is_phase("far", "ready", "qwen"))
    assert hosts.refused_by_valkey() == []  # in all that the tests before did, too
    assert "permission denied" not in (hosts.folder / "postgres.log").read_text()
    for command in COMMANDS:
        assert "no permissions" in hosts.valkey(*command.split()), command
    for query in QUERIES:
        said = hosts.sql_of_host(query)
        assert "permission denied" in said or "must be owner" in said, query
    assert hosts.sql_of_host("select key from lanes_host order by key") == "a\nb"
    assert "admin" in hosts.sql_of_host("select username from auth_user")


@pytest.mark.parametrize(("user", "password"), [("slotserve_host", "wrong"), ("default", "any")])
def test_valkey_lets_nobody_in_without_a_password(
    hosts: TwoHosts, user: str, password: str
) -> None:
    assert "invalid username-password" in hosts.valkey("PING", user=user, password=password)


def listening(machine: netns.Machine) -> set[tuple[str, int]]:
    """Address and port of whatever listens on a machine."""
    shown = machine.run("ss", "-Hltn", env={"PATH": os.environ["PATH"]})
    pairs = (line.split()[3].rpartition(":") for line in shown.splitlines())
    return {(address, int(port)) for address, _, port in pairs}


def asked(hosts: TwoHosts, address: str, port: int, **headers: str) -> int:
    """The status that somebody on `a` gets from a model server."""
    url = f"http://{address}:{port}/v1/chat/completions"
    post = partial(httpx.post, url, json={"messages": []}, headers=headers, timeout=10)
    status: int = hosts.a.call(post).status_code
    return status


def test_a_server_listens_for_the_gateway_s_machine_alone_and_asks_for_its_key(
    hosts: TwoHosts,
) -> None:
    book(hosts, "far", "qwen")
    book(hosts, "near", "qwen-a")
    for slug in ("far", "near"):
        hosts.until(partial(hosts.is_phase, slug, "ready"))
    far, near = (hosts.lane(slug)["runtime"]["port"] for slug in ("far", "near"))
    assert {address for address, port in listening(hosts.b) if port == far} == {hosts.b.address}
    assert {address for address, port in listening(hosts.a) if port == near} == {"127.0.0.1"}
    assert asked(hosts, hosts.b.address, far) == 401
    assert asked(hosts, hosts.b.address, far, Authorization="Bearer wrong") == 401
    assert asked(hosts, "127.0.0.1", near) == 401


def is_asking_in_vain(hosts: TwoHosts, key: str, times: float) -> bool:
    """Whether this machine's worker has gone on asking a database that is away."""
    return asked_in_vain(hosts, key) > times


def asked_in_vain(hosts: TwoHosts, key: str) -> int:
    """How often this machine's worker has had no answer of the database."""
    log = (hosts.folder / f"worker-{key}.log").read_text()
    return log.count("not known whether this worker is the host")


def test_a_database_that_is_away_alone_costs_owners_nothing(hosts: TwoHosts) -> None:
    before = {slug: len(starts(hosts, slug)) for slug in LANES.values()}
    book(hosts, "far", "qwen")
    book(hosts, "near", "qwen-a")
    for slug in LANES.values():
        hosts.until(partial(hosts.is_phase, slug, "ready"))
    servers = model_servers(hosts)
    with ExitStack() as calls:
        owners = [calls.enter_context(calling(hosts, slug, "owner")) for slug in LANES.values()]
        stranger = calls.enter_context(calling(hosts, "far", "stranger"))
        for owner, model in zip(owners, ("qwen-a", "qwen"), strict=True):
            is_told(hosts, owner, 200, model)
        hosts.stop("postgres")
        away_at = time.monotonic()
        for key in LANES:  # each worker asks once a second: for longer than hosts may be silent
            so_far = asked_in_vain(hosts, key)
            hosts.until(partial(is_asking_in_vain, hosts, key, so_far + SILENT))
        hosts.start_again("postgres")
        hosts.until(hosts.is_database_up)
        hosts.until(lambda: not hosts.is_unreachable("far"))
        for owner, model in zip(owners, ("qwen-a", "qwen"), strict=True):
            is_told(hosts, owner, 200, model)
    for owner in owners:
        assert {status for status, _ in owner.since(away_at)} == {200}
    assert stranger.served == set()
    assert model_servers(hosts) == servers
    assert [len(starts(hosts, slug)) - n for slug, n in before.items()] == [1, 1]
