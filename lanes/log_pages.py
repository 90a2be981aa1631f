"""A run's log in Valkey, a page at a time: its host's worker puts pages there, the web reads them.

What is there lapses after KEPT_SECONDS; nothing is fetched but when somebody asks, and who asks for
the same page waits for the same fetch. So many followers of one run cost its host one reading.
"""

import json
from dataclasses import asdict, dataclass

from lanes import ticks
from lanes.logs import Segment, read
from wire.words import Kept

PAGE = 65536  # bytes; page n holds those from n times this on
TAIL = -1  # in place of a page's number: the newest
KEPT_SECONDS = 10
FRESH_MS = 400  # the newest bytes of a log are asked of its host this often at most
# Appends only at the length that was seen: a late or doubled fetch changes nothing.
_APPEND = """
if redis.call('STRLEN', KEYS[1]) == tonumber(ARGV[1]) and ARGV[2] ~= '' then
    redis.call('APPEND', KEYS[1], ARGV[2])
end
redis.call('EXPIRE', KEYS[1], ARGV[3])
"""


@dataclass(frozen=True, slots=True)
class State:
    """What a host says of a run's log."""

    first: int  # offset of the first byte that is kept
    end: int  # offset behind the last one
    is_over: bool  # nothing will be added
    note: str = ""  # a sentence about what is wrong with it
    words: Kept | None = None  # what it was made of


@dataclass(frozen=True, slots=True)
class Seen:
    """What is in Valkey now: perhaps an older state, perhaps fewer bytes than there are."""

    state: State | None
    is_fresh: bool
    data: bytes = b""


def put(run: int, page: int, found: list[Segment], state: State) -> None:
    """Bring the page and the one after it up to date, of its newest two when it is TAIL."""
    newest = max(0, state.end - 1) // PAGE
    page = max(newest - 1, 0) if page == TAIL else page
    client = ticks.valkey()
    append = client.register_script(_APPEND)
    for number in (page, page + 1):
        if number > newest:
            continue
        key = _page(run, number)
        client.expire(key, KEPT_SECONDS)  # it must not lapse between the next two
        held = int(client.strlen(key))
        start = number * PAGE + held
        append(keys=[key], args=[held, read(found, start, PAGE - held), KEPT_SECONDS])
    with client.pipeline() as pipe:
        pipe.set(_state(run), json.dumps(asdict(state)), ex=KEPT_SECONDS)
        pipe.set(_fresh(run), "1", px=FRESH_MS)
        pipe.execute()


def seen(run: int, offset: int | None) -> Seen:
    """The state, and at most a page of bytes from the offset on. One round trip."""
    page, begin = divmod(offset or 0, PAGE)
    with ticks.valkey().pipeline() as pipe:
        pipe.get(_state(run))
        pipe.exists(_fresh(run))
        if offset is not None:
            pipe.getrange(_page(run, page), begin, -1)
            pipe.getrange(_page(run, page + 1), 0, -1)
        raw, is_fresh, *parts = pipe.execute()
    state = State(**json.loads(raw)) if raw else None
    return Seen(state, bool(is_fresh), _joined(parts, PAGE - begin))


def ask(run: int, host_key: str, offset: int | None) -> None:
    """Have the host bring the offset's pages up to date; one pending request for all who ask."""
    ticks.request_log(run, host_key, TAIL if offset is None else offset // PAGE)


def _joined(parts: list[bytes], whole: int) -> bytes:
    """Both parts if the first reaches to its page's end, cut to one page."""
    if not parts:
        return b""
    first, second = parts
    return (first + second)[:PAGE] if len(first) == whole else first


def _state(run: int) -> str:
    return f"ss:log:{run}"


def _fresh(run: int) -> str:
    return f"ss:log:{run}:fresh"


def _page(run: int, number: int) -> str:
    return f"ss:log:{run}:{number}"
