"""The web process's connections to PostgreSQL: kept from request to request, tried before use."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest

from slotserve.database import POSTGRES_ENGINE, SQLITE_ENGINE, pooled
from tests import fleet
from tests.web_process import web_process

MOST = 3
NAME = f"pool-of-{os.getpid()}"
on_postgres = pytest.mark.postgres


def test_sqlite_and_a_pool_of_none_are_left_as_they_are() -> None:
    sqlite = {"ENGINE": SQLITE_ENGINE, "OPTIONS": {}, "CONN_MAX_AGE": 600}
    postgres = {"ENGINE": POSTGRES_ENGINE, "OPTIONS": {"options": "-c a=b"}, "CONN_MAX_AGE": 600}
    assert pooled(sqlite, 20) is sqlite
    assert pooled(postgres, 0) is postgres
    shared = pooled(postgres, 20)
    assert (shared["CONN_MAX_AGE"], shared["OPTIONS"]["pool"]["max_size"]) == (0, 20)
    assert shared["OPTIONS"]["options"] == "-c a=b"


@pytest.fixture
def server() -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
    """A connection of our own to the server, beside the web's."""
    url = os.environ.get("SLOTSERVE_TEST_POSTGRES")
    if not url:
        pytest.skip("NOT TESTED ON POSTGRESQL: SLOTSERVE_TEST_POSTGRES is not set")
    address = urlsplit(url)._replace(scheme="postgresql").geturl()
    with psycopg.connect(address, autocommit=True) as connection:
        yield connection


@pytest.fixture
def web(server: object, tmp_path: Path) -> Iterator[httpx.Client]:
    """A web process of its own on that server; /ready/ asks the database."""
    url = urlsplit(os.environ["SLOTSERVE_TEST_POSTGRES"])
    (tmp_path / "static").mkdir()
    environment = os.environ | {
        "DATABASE_URL": url._replace(query=f"application_name={NAME}").geturl(),
        "DJANGO_SETTINGS_MODULE": "slotserve.settings",
        "SLOTSERVE_DATA": str(tmp_path),
        "SLOTSERVE_DATABASE_POOL": str(MOST),
    }
    with web_process(environment) as client:
        yield client


def reason(web: httpx.Client) -> str:
    """Why it is not ready: the database is empty, or there is none."""
    return str(web.get("/ready/").json()["reason"])


def backends(server: "psycopg.Connection[tuple[object, ...]]") -> set[object]:
    """The web's connections, by the server's processes."""
    asked = "SELECT pid FROM pg_stat_activity WHERE application_name = %s"
    return {pid for (pid,) in server.execute(asked, [NAME])}


@on_postgres
def test_requests_take_turns_on_the_same_connections(
    server: "psycopg.Connection[tuple[object, ...]]", web: httpx.Client
) -> None:
    assert "no database" not in reason(web)
    seen = backends(server)
    for _ in range(8):
        assert "no database" not in reason(web)
        seen |= backends(server)
    assert len(seen) <= 2  # one that asks early does not wait until the last one's is given back
    with ThreadPoolExecutor(12) as askers:
        told = list(askers.map(lambda _: reason(web), range(60)))
    assert not [each for each in told if "no database" in each]
    assert 1 <= len(backends(server)) <= MOST


@on_postgres
def test_connections_that_the_server_ended_are_no_error_for_who_comes_next(
    server: "psycopg.Connection[tuple[object, ...]]", web: httpx.Client
) -> None:
    with ThreadPoolExecutor(12) as askers:
        list(askers.map(lambda _: reason(web), range(24)))
    ended = backends(server)
    server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s", [NAME]
    )
    fleet.until(lambda: not backends(server) & ended)
    assert [told for told in (reason(web) for _ in range(5)) if "no database" in told] == []
    assert not backends(server) & ended
