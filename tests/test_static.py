"""Static files under ASGI."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import pytest
from django.conf import settings
from django.contrib.staticfiles import finders
from django.test import AsyncClient
from whitenoise.responders import Response, StaticFile

from slotserve.asgi import application


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
