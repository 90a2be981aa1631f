"""Static files under ASGI."""

from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.staticfiles import finders
from django.test import AsyncClient


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
