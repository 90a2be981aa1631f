"""A log as a stream of text that goes on while the server writes, for `curl -N` and its like.

It asks as pages do, twice a second, in the thread that Django gives the request. It ends when the
client leaves, when its right to read ends, and when there can be nothing more.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from importlib import import_module

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.utils import translation
from django.utils.translation import gettext as _

from gateway.models import ApiToken
from lanes import clock, log_reading
from lanes.log_reading import Piece
from lanes.models import Lane, Runtime
from lanes.refusals import Refusal
from wire.words import said

MOST_STREAMS = 64  # of one web process; each has a thread
PAUSE_SECONDS, AWAY_SECONDS = 0.5, 2.0  # with nothing new; while the host is away
CHECK_SECONDS = 5.0  # how soon who may not read any more is cut off
TOO_MANY = Refusal(
    "busy",
    said("{count} logs are being followed here: try again later.", count=MOST_STREAMS),
)
_open: set[object] = set()


@dataclass(slots=True)
class Place:
    """Where somebody is who follows a lane's log."""

    run: Runtime
    offset: int | None
    lines: int
    goes_on: bool  # to the runs that come after this one
    heading: str = ""  # to be said before the lines of another run
    told: str = ""  # the newest sentence about what is wrong
    checked_at: float = field(default_factory=time.monotonic)
    language: str | None = field(default_factory=translation.get_language)  # of who asked


def is_full() -> bool:
    """Whether this process follows as many logs as it may."""
    return len(_open) >= MOST_STREAMS


async def follow(lane: Lane, place: Place, may_read: Callable[[], bool]) -> AsyncIterator[str]:
    """The log from the place on."""
    _open.add(place_key := object())
    try:
        pause: float | None = 0.0
        while pause is not None:
            text, pause = await sync_to_async(_step_in_words)(lane, place, may_read)
            if text:
                yield text
            if pause:
                await asyncio.sleep(pause)
    finally:
        _open.discard(place_key)


def may_read(user: int, *, token: int | None, session: str | None) -> bool:
    """Whether the person is still an administrator, and what they came with still holds."""
    if not User.objects.filter(pk=user, is_active=True, is_staff=True).exists():
        return False
    if token is not None:
        return ApiToken.objects.usable(clock.database_now()).filter(pk=token).exists()
    engine = import_module(settings.SESSION_ENGINE)
    return session is None or bool(engine.SessionStore().exists(session))


def _step_in_words(
    lane: Lane, place: Place, may_read: Callable[[], bool]
) -> tuple[str, float | None]:
    """A step in the reader's language: what the request had in force is over."""
    with translation.override(place.language):
        return _step(lane, place, may_read)


def _step(lane: Lane, place: Place, may_read: Callable[[], bool]) -> tuple[str, float | None]:
    """What is new, and how long to wait before the next step; None: it is the last."""
    try:
        if time.monotonic() - place.checked_at > CHECK_SECONDS:
            place.checked_at = time.monotonic()
            if not may_read():
                return _said(_("this log may not be read any more")), None
        found = log_reading.fetch(lane, place.run, place.offset, lines=place.lines)
        if isinstance(found, Refusal):
            return _once(place, found.words), AWAY_SECONDS
        return _told(place, found), _pause(place, found)
    finally:
        connection.close()  # a stream holds none while it waits


def _told(place: Place, piece: Piece) -> str:
    heading, place.heading, place.offset = place.heading, "", piece.next
    lost = _("%(bytes)s bytes are not kept any more") % {"bytes": piece.skipped}
    skipped = _said(lost) if piece.skipped else ""
    lines = "".join(f"{line}\n" for line in piece.lines)
    return heading + skipped + lines + _once(place, piece.note)


def _pause(place: Place, piece: Piece) -> float | None:
    """Also goes over to the next run when this one is over."""
    if piece.has_more:
        return 0.0
    if not piece.is_over:
        return PAUSE_SECONDS
    following = log_reading.run_after(place.run) if place.goes_on else None
    if following is not None:
        place.run, place.offset = following, 0
        named = {"run": following.pk, "preset": following.revision.preset}
        place.heading = _said(_("run %(run)s of %(preset)s begins") % named)
        return 0.0
    return PAUSE_SECONDS if place.goes_on else None


def _once(place: Place, words: str) -> str:
    """The sentence, unless it was the newest one already."""
    is_new, place.told = words != place.told, words
    return _said(words) if words and is_new else ""


def _said(words: str) -> str:
    """A line of ours, told from the server's."""
    return f"[slotserve: {words}]\n"
