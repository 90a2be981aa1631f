"""Static files under ASGI."""

import asyncio
import gzip
import re
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import pytest
from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import staticfiles_storage
from django.http import HttpResponse
from django.test import AsyncClient, RequestFactory
from pytest_django import Settings
from whitenoise.responders import Response, StaticFile

from slotserve.asgi import application
from slotserve.static import StaticFiles


@pytest.fixture
def style() -> None:
    source = finders.find("slotserve/slotserve.css")
    assert source is not None
    target = settings.STATIC_ROOT / "style.css"
    target.write_bytes(Path(source).read_bytes())


async def test_a_file_is_answered_whole_and_without_a_warning(style: None) -> None:
    answer = await AsyncClient().get("/static/style.css")
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/css")
    assert b".skip-link" in answer.content


async def test_what_is_no_static_file_is_a_404() -> None:
    answer = await AsyncClient().get("/static/../slotserve/settings.py")
    assert answer.status_code == 404


async def test_the_file_of_a_page_that_was_left_is_closed(
    style: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[IO[bytes]] = []
    is_open = asyncio.Event()
    loop, open_it = asyncio.get_running_loop(), StaticFile.get_response

    def opens(self: StaticFile, *asked: Any) -> Response:
        answer = open_it(self, *asked)
        opened.append(answer.file)
        loop.call_soon_threadsafe(is_open.set)
        return answer

    events = iter(["http.request", "http.disconnect"])

    async def receive() -> dict[str, Any]:
        event = next(events)
        if event == "http.disconnect":
            await is_open.wait()
        return {"type": event}

    async def send(_: Mapping[str, Any]) -> None:
        """Nobody listens."""

    monkeypatch.setattr(StaticFile, "get_response", opens)
    scope = {"type": "http", "method": "GET", "path": "/static/style.css", "headers": []}
    await application(scope, receive, send)
    assert [file.closed for file in opened] == [True]


@pytest.fixture
def collected(settings: Settings, tmp_path: Path) -> StaticFiles:
    """Static files as they are in production: collected, with hashed names and compressed."""
    backend = "whitenoise.storage.CompressedManifestStaticFilesStorage"
    settings.STORAGES = settings.STORAGES | {"staticfiles": {"BACKEND": backend}}
    settings.STATIC_ROOT = tmp_path
    settings.WHITENOISE_USE_FINDERS = settings.WHITENOISE_AUTOREFRESH = False
    for name in ("slotserve/slotserve.css", "slotserve/slotserve.js"):
        source = finders.find(name)
        assert isinstance(source, str)
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(Path(source).read_bytes())
    storage: Any = staticfiles_storage
    files = {name: (storage, name) for name in ("slotserve/slotserve.js",)}
    assert not [e for _, _, e in storage.post_process(files) if isinstance(e, Exception)]
    return StaticFiles(lambda request: HttpResponse(status=404))


def test_hashed_files_are_kept_for_ever_and_sent_compressed(collected: StaticFiles) -> None:
    url = staticfiles_storage.url("slotserve/slotserve.js")
    assert re.fullmatch(r"/static/slotserve/slotserve\.[0-9a-f]{12}\.js", url)
    small = collected(RequestFactory().get(url, headers={"Accept-Encoding": "gzip"}))
    whole = collected(RequestFactory().get(url))
    assert (small["Content-Encoding"], small["Vary"]) == ("gzip", "Accept-Encoding")
    assert gzip.decompress(small.content) == whole.content
    assert "Content-Encoding" not in whole
    for answer in (small, whole):
        assert answer["Cache-Control"] == "max-age=315360000, public, immutable"


def test_names_without_a_hash_are_asked_for_again(collected: StaticFiles) -> None:
    answer = collected(RequestFactory().get("/static/slotserve/slotserve.js"))
    assert answer["Cache-Control"] == "max-age=60, public"
    since = {"If-Modified-Since": answer["Last-Modified"]}
    assert (
        collected(RequestFactory().get("/static/slotserve/slotserve.js", headers=since)).status_code
        == 304
    )
