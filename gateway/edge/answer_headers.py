"""What the gateway says of itself on answers: which lane and preset, and for how long."""

from gateway.edge.clock import EdgeClock
from gateway.edge.headers import Headers
from gateway.edge.refusals import EdgeRefusal
from gateway.edge.routing import Route
from gateway.edge.table import Grant, LaneRoute
from gateway.edge.typical import TypicalTimes

NAMES = (
    b"x-slotserve-lane",
    b"x-slotserve-preset",
    b"x-slotserve-fallback",
    b"x-slotserve-booking-ends",
    b"x-slotserve-booked-in",
    b"x-slotserve-warning",
)
LONGEST_RETRY_SECONDS = 120  # what a program may sleep before it asks again by itself
_TIME_DOES_NOT_HELP = frozenset({"model_not_loaded", "no_model_loaded", "gpu_exclusive"})


class RouteNotes:
    """Describes where a request ran, by what is known at this moment."""

    def __init__(self, clock: EdgeClock, typical: TypicalTimes, drain_seconds: float) -> None:
        self._clock = clock
        self._typical = typical
        self._drain_seconds = drain_seconds

    def headers(self, route: Route, path: str) -> Headers:
        """Of an answer from a lane; `path` is the route's, for how long its answers take."""
        lane, preset = route.lane, route.upstream.preset
        named = [
            (b"x-slotserve-lane", lane.slug.encode()),
            (b"x-slotserve-preset", preset.encode()),
        ]
        if route.fallback is not None:
            named.append((b"x-slotserve-fallback", route.fallback.encode()))
        if not lane.grants:
            return named
        usual = self._typical.seconds((lane.slug, preset, path))
        return named + time_headers(route, self._clock.now(), usual, self._drain_seconds)


def time_headers(route: Route, now: float, usual: float | None, drain_seconds: float) -> Headers:
    """How long the caller may go on here; a warning where the usual answer takes longer. Pure."""
    if route.grant is not None:
        left = route.grant.end - now
        headers = [(b"x-slotserve-booking-ends", _whole(left))]
        warning = _slot_warning(_own_end(route, route.grant) - now, usual)
    elif (coming := _coming(route.lane, route.token.owner_id, now)) is not None:
        left = coming.start - now
        headers = [(b"x-slotserve-booked-in", _whole(left))]
        warning = _booked_warning(left, drain_seconds, usual)
    else:
        return []
    if warning is not None:
        headers.append((b"x-slotserve-warning", warning.encode()))
    return headers


def refusal_headers(refusal: EdgeRefusal) -> Headers:
    """Of a refusal: the lane it is about, when to ask again, and whether programs should.

    Clients in use ask again after 409, 429 and 5xx by themselves, one of them however long
    Retry-After is: it would sleep in silence until a booking of hours is over.
    """
    headers: Headers = []
    if refusal.lane or refusal.about:
        headers.append((b"x-slotserve-lane", (refusal.lane or refusal.about).encode()))
    if refusal.retry_after is not None:
        headers.append((b"retry-after", b"%d" % refusal.retry_after))
    if refusal.status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="SlotServe"'))
    if refusal.allow:
        headers.append((b"allow", ", ".join(refusal.allow).encode()))
    if refusal.status == 426:
        headers.append((b"upgrade", b"websocket"))
    is_long = (refusal.retry_after or 0) > LONGEST_RETRY_SECONDS
    if is_long or refusal.code in _TIME_DOES_NOT_HELP:
        headers.append((b"x-should-retry", b"false"))
    return headers


def _own_end(route: Route, grant: Grant) -> float:
    """When the slot really ends: the caller may have booked the time behind it, too."""
    end = grant.end
    for each in route.lane.grants:
        if each.start > end:
            break
        if each.admits(route.token.owner_id) and each.preset == grant.preset:
            end = max(end, each.end)
    return end


def _coming(lane: LaneRoute, owner_id: int, now: float) -> Grant | None:
    """The next booking of somebody else."""
    later = (each for each in lane.grants if each.start > now and not each.admits(owner_id))
    return next(later, None)


def _slot_warning(left: float, usual: float | None) -> str | None:
    if usual is None or usual <= left:
        return None
    return f"your booking ends in {left:.0f} s; answers like this one take about {usual:.0f} s"


def _booked_warning(left: float, drain_seconds: float, usual: float | None) -> str | None:
    if usual is None or usual <= left + drain_seconds:
        return None
    return (
        f"another member's booking begins in {left:.0f} s and answers then have {drain_seconds:.0f}"
        f" s to finish; answers like this one take about {usual:.0f} s"
    )


def _whole(seconds: float) -> bytes:
    return b"%d" % max(0, seconds)
