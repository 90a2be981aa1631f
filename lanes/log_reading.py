"""A model server's log for people, from whichever host it lies on: the web's side and the host's.

The web never opens the file. It asks the host's worker, which puts pages of it into Valkey, and
waits a moment; a host that does not answer is said to be away.
"""

import logging
import os
import time
from dataclasses import dataclass

import redis
from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import QuerySet

from lanes import log_pages, log_text
from lanes.log_pages import PAGE, Seen, State
from lanes.logs import segments
from lanes.models import Lane, Runtime
from lanes.refusals import Refusal
from wire.words import kept_of, marked, remade, said

log = logging.getLogger(__name__)

LINES, MOST_LINES = 400, 2000  # of a log's end: shown unless asked otherwise, and at most
WAIT_SECONDS = 2.0  # for the host
FIRST_LOOK, LAST_LOOK = 0.01, 0.1  # seconds between looks for its answer
ASK_SECONDS = 0.5
LEAST_ROOM = 65536  # bytes; with less a disk counts as full

BROKER_AWAY = Refusal(
    "broker_away", said("The broker does not answer, so no host can be asked for a log now.")
)


@dataclass(frozen=True, slots=True)
class Piece:
    """Lines of one run's log."""

    offset: int  # of the first byte of the lines
    next: int  # the offset to go on from
    lines: tuple[str, ...]
    unfinished: str  # the beginning of a line that is not whole yet
    skipped: int  # bytes asked for that are not kept any more
    has_more: bool  # more is there already
    is_over: bool  # the run has ended and this is all
    note: str  # what is wrong with the log, a sentence of `said`


def may_read(person: User) -> bool:
    """Whether this person may read servers' logs, and lines out of them: they can hold prompts and
    paths of others, so administrators alone may."""
    return person.is_active and person.is_staff


def runs(lane: Lane) -> QuerySet[Runtime]:
    """The lane's newest runs, whose logs are kept."""
    found = lane.runtimes.select_related("revision__preset").order_by("-pk")
    return found[: settings.SLOTSERVE_LOG_RUNS]


def run_after(run: Runtime) -> Runtime | None:
    """The run that followed on its lane."""
    later = Runtime.objects.filter(lane=run.lane_id, pk__gt=run.pk)
    return later.select_related("revision__preset").order_by("pk").first()


def fetch(
    lane: Lane, run: Runtime, offset: int | None = None, *, lines: int = LINES
) -> Piece | Refusal:
    """The lines from the offset on; without one the last `lines`. Waits for the host a moment."""
    began, pause, asked = time.monotonic(), FIRST_LOOK, 0
    try:
        while (piece := _look(run, offset, lines)) is None:
            waited = time.monotonic() - began
            if waited > WAIT_SECONDS:
                return _away(lane)
            if waited >= asked * ASK_SECONDS:  # again: a message, or what it brought, was lost
                log_pages.ask(run.pk, lane.host.key, offset)
                asked += 1
            time.sleep(pause)
            pause = min(2 * pause, LAST_LOOK)
    except redis.RedisError as error:
        log.warning("log not asked for run=%s reason=%s", run.pk, error)
        return BROKER_AWAY
    return piece


def put_pages(run_pk: int, page: int) -> None:
    """On the host: put these pages of the log where the web reads them."""
    run = Runtime.objects.select_related("lane__host").filter(pk=run_pk).first()
    if run is None or run.lane.host.key != settings.SLOTSERVE_HOST_KEY:
        return
    found = segments(run.log_path)  # after the row: what has ended writes no more
    first, end = (found[0].start, found[-1].end) if found else (0, 0)
    is_over = run.ended_at is not None
    note = _note(run, is_there=bool(found))
    log_pages.put(run_pk, page, found, State(first, end, is_over, note, kept_of(note)))


def start_of(state: State, offset: int | None) -> int:
    """Where to read from: the offset, or what is kept of the log, or its last page. Pure."""
    return max(state.first, state.end - PAGE if offset is None else offset)


def piece_of(seen: Seen, start: int, offset: int | None, lines: int) -> Piece | None:
    """What the bytes from `start` on tell who asked so; None: the host must be asked first. Pure.

    What is known to be there is told at once; that there is nothing more only while it is fresh.
    """
    state, data = seen.state, seen.data
    if state is None:
        return None
    is_all = seen.is_fresh and start + len(data) >= state.end
    used = log_text.whole(data, is_over=is_all and state.is_over, most=PAGE)
    if not is_all and (offset is None or not used):
        return None
    begin = 0
    if offset is None:
        begin = log_text.tail_start(data[:used], lines, is_cut=start > state.first)
    return Piece(
        offset=start + begin,
        next=start + used,
        lines=log_text.plain_lines(data[begin:used]),
        unfinished=log_text.plain(data[used:].decode(errors="replace")) if is_all else "",
        skipped=0 if offset is None else start - offset,
        has_more=start + len(data) < state.end,
        is_over=is_all and state.is_over,
        note=remade(state.note, state.words),
    )


def _look(run: Runtime, offset: int | None, lines: int) -> Piece | None:
    found = log_pages.seen(run.pk, offset)
    if found.state is None:
        return None
    start = start_of(found.state, offset)
    if start != offset:
        found = log_pages.seen(run.pk, start)
    return piece_of(found, start, offset, lines)


def _away(lane: Lane) -> Refusal:
    words = said(
        "{host} does not answer: its worker is not running, is busy, or cannot "
        "reach the broker. The log is on that machine.",
        host=lane.host.name,
    )
    return Refusal("host_unreachable", words)


def _note(run: Runtime, *, is_there: bool) -> str:
    host = run.lane.host.name
    if run.ended_at is None and _is_full(settings.SLOTSERVE_DATA):
        return said("The disk of {host} is full: what the server writes now is lost.", host=host)
    if is_there:
        return ""
    if run.ended_at is None:
        return said(
            "The server has written nothing yet, or its log on {host} was removed.", host=host
        )
    kept = settings.SLOTSERVE_LOG_RUNS
    text = marked(
        "The log of this run is not on {host}: the newest {kept} of a lane are kept there."
    )
    return said(text, host=host, kept=kept)


def _is_full(folder: object) -> bool:
    try:
        found = os.statvfs(str(folder))
    except OSError:
        return False
    return found.f_bavail * found.f_frsize < LEAST_ROOM
