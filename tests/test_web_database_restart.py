"""PostgreSQL is started again under the web process: pages are served, or say that they will be."""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from slotserve.stack.parts import ROOT
from tests import fleet, own_postgres
from tests.own_postgres import Cluster
from tests.web_process import web_process

pytestmark = pytest.mark.postgres
PASSWORD = "a long password"
PAGES = ("/", "/bookings/", "/tokens/", "/api/v1/me/", "/calendar/", "/preferences/")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """With all tables."""
    if not os.environ.get("SLOTSERVE_TEST_POSTGRES"):
        pytest.skip("NOT TESTED ON POSTGRESQL: SLOTSERVE_TEST_POSTGRES is not set")
    with own_postgres.running() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def environment(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Of the web process and of commands."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "static").mkdir()
    told = {
        "DATABASE_URL": cluster.url,
        "DJANGO_SETTINGS_MODULE": "slotserve.settings",
        "SLOTSERVE_DATA": str(folder),
        "SLOTSERVE_DATABASE_POOL": "4",
        "DJANGO_SUPERUSER_PASSWORD": PASSWORD,
    }
    return os.environ | told


def manage(environment: dict[str, str], *words: str) -> None:
    argv = [sys.executable, "manage.py", *words]
    subprocess.run(argv, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def web(environment: dict[str, str]) -> Iterator[httpx.Client]:
    """A browser with a session."""
    manage(environment, "migrate", "--verbosity=0")
    manage(environment, "collectstatic", "--no-input")
    manage(environment, "createsuperuser", "--no-input", "--username=x", "--email=x@example.org")
    with web_process(environment, answer_seconds=60, stop_seconds=30) as client:
        client.get("/accounts/login/")
        form = {"login": "x", "password": PASSWORD}
        head = {"X-CSRFToken": client.cookies["csrftoken"]}
        assert client.post("/accounts/login/", data=form, headers=head).status_code == 302
        yield client


def faults(answers: list[httpx.Response]) -> list[str]:
    """What is neither served nor a refusal that says when to try again."""
    found = []
    for answer in answers:
        is_told = answer.status_code == 503 and answer.headers.get("Retry-After")
        if answer.status_code != 200 and not is_told:
            found.append(f"{answer.request.url.path}: {answer.status_code} {answer.text[:500]}")
        if "Traceback" in answer.text or len(answer.text) < 20:
            found.append(f"{answer.request.url.path} says {answer.text[:500]!r}")
    return found


def all_pages(web: httpx.Client) -> list[httpx.Response]:
    """Each page, asked at once with the others."""
    with ThreadPoolExecutor(len(PAGES)) as askers:
        return list(askers.map(web.get, PAGES))


@pytest.mark.parametrize("mode", ["immediate", "fast"])
def test_pages_after_a_restart_are_served(web: httpx.Client, cluster: Cluster, mode: str) -> None:
    assert [answer.status_code for answer in all_pages(web)] == [200] * len(PAGES)
    cluster.stop(mode=mode)
    cluster.start()
    assert faults([web.get(path) for path in PAGES]) == []
    fleet.until(lambda: all(answer.status_code == 200 for answer in all_pages(web)))


def test_pages_say_when_to_try_again_while_it_is_away(web: httpx.Client, cluster: Cluster) -> None:
    assert web.get("/").status_code == 200
    cluster.stop()
    try:
        answers = all_pages(web)
    finally:
        cluster.start()
    assert faults(answers) == []
    assert 503 in [answer.status_code for answer in answers]
    fleet.until(lambda: all(answer.status_code == 200 for answer in all_pages(web)))
