"""The German catalogue is whole: every text is in it, translated, with the same places and marks,
and what pages read is made of it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import allauth
import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.mofile import read_mo
from babel.messages.pofile import read_po
from django.utils import translation

from slotserve.stack.parts import ROOT
from tests.running import clean_environment

SOURCE = ROOT / "locale" / "de" / "LC_MESSAGES" / "django.po"
ACCOUNTS = ROOT / "locale" / "accounts" / "de" / "LC_MESSAGES" / "django.po"  # of allauth's texts
FRIENDS = re.compile(r"\b(du|dir|dich|dein\w*)\b", re.IGNORECASE)
HOW = "run `manage.py makemessages`, translate what is new, and `manage.py compilemessages`"
PLACES = re.compile(r"%%|%\(\w+\)[-.\d]*[a-z]|%[sd]|\{\w*(?:![rs])?(?::[^}]*)?\}|</?\w+")
Key = tuple[str | None, str]


def catalogue(path: Path) -> Catalog:
    """A .po as Babel reads it."""
    with path.open("rb") as file:
        return read_po(file, locale="de")


def key(message: Message) -> Key:
    """Context and text; of a plural the singular."""
    text = message.id if isinstance(message.id, str) else message.id[0]
    return message.context, text


def texts(message: Message) -> list[str]:
    """The translation, or that of each number."""
    strings = [message.string] if isinstance(message.string, str) else list(message.string)
    return [text or "" for text in strings]


def messages(source: Path = SOURCE) -> list[Message]:
    """All but the header."""
    return [message for message in catalogue(source) if message.id]


@pytest.mark.parametrize("po", [SOURCE, ACCOUNTS])
def test_every_text_is_translated_and_nobody_guessed(po: Path) -> None:
    bare = [key(m) for m in messages(po) if m.fuzzy or not all(texts(m))]
    assert not bare, HOW


@pytest.mark.parametrize("po", [SOURCE, ACCOUNTS])
def test_translations_have_the_same_places_and_marks(po: Path) -> None:
    wrong = []
    for message in messages(po):
        source = message.id if isinstance(message.id, str) else message.id[-1]
        wanted = sorted(PLACES.findall(source))
        # "1 minute" may be "a minute": of a plural's singular a place may be missing.
        for text in texts(message)[-1:]:
            if sorted(PLACES.findall(text)) != wanted:
                wrong.append((source, text))
    assert not wrong


def test_translations_begin_and_end_as_the_texts_do() -> None:
    """Sentences are put together: a space or a full stop too many would show."""
    wrong = []
    for message in messages():
        source = message.id if isinstance(message.id, str) else message.id[-1]
        for text in texts(message)[-1:]:
            if (source[:1].isspace(), source[-1:] in ".:!?", source.count("\n")) != (
                text[:1].isspace(),
                text[-1:] in ".:!?",
                text.count("\n"),
            ):
                wrong.append((source, text))
    assert not wrong


@pytest.mark.parametrize("po", [SOURCE, ACCOUNTS])
def test_what_pages_read_is_made_of_it(po: Path) -> None:
    with po.with_suffix(".mo").open("rb") as file:
        made = {key(m): texts(m) for m in read_mo(file) if m.id}
    assert made == {key(m): texts(m) for m in messages(po)}, HOW


def test_pages_of_accounts_say_sie_as_all_others_do() -> None:
    folder = Path(allauth.__file__).parent / "locale" / "de" / "LC_MESSAGES"
    shown = [m for m in messages(folder / "django.po") if not _is_of_a_provider(m)]
    assert len(shown) > 300
    with translation.override("de"):
        said = [
            translation.pgettext(m.context, key(m)[1])
            if m.context
            else translation.gettext(key(m)[1])
            for m in shown
        ]
    assert [text for text in said if FRIENDS.search(text)] == []


def _is_of_a_provider(message: Message) -> bool:
    """Of logging in elsewhere with an account of here, which there is not."""
    return all("idp/" in place for place, _ in message.locations)


def test_there_is_no_text_that_nobody_collected(tmp_path: Path) -> None:
    if not shutil.which("xgettext"):
        assert not os.environ.get("CI"), "CI needs gettext"
        pytest.skip("NOT TESTED: no xgettext on this machine")
    copy = copied(tmp_path / "copy")
    argv = [sys.executable, "-W", "ignore", "manage.py", "makemessages"]
    environment = clean_environment(SLOTSERVE_DATA=str(tmp_path), PYTHONPATH=str(copy))
    subprocess.run(argv, cwd=copy, env=environment, check=True, capture_output=True, timeout=300)
    found = catalogue(copy / SOURCE.relative_to(ROOT))
    new = {key(m) for m in found if m.id} - {key(m) for m in messages()}
    assert not new, HOW
    gone = {key(m) for m in messages()} - {key(m) for m in found if m.id}
    assert not gone, HOW


def copied(folder: Path) -> Path:
    """The sources, where makemessages may write."""
    unwanted = shutil.ignore_patterns(".*", "var", "__pycache__", "vendor", "tests", "docs")
    shutil.copytree(ROOT, folder, ignore=unwanted)
    return folder
